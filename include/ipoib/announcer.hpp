// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Announces an interface's changed hardware address to its neighbours, with gratuitous ARP and unsolicited neighbour
// advertisements, once the interface has carrier.
#pragma once
#include <ipoib/fabric_events.hpp>
#include <kernel/work.hpp>

namespace ipoib {

class Interface;

class Announcer {
public:
    explicit Announcer(Interface& interface) : interface_(interface) {}

    // The hardware address has another QPN. Reports it to the stack now (NETDEV_CHANGEADDR), and to neighbours once
    // there is carrier.
    void address_changed() TA_REQUIRES(kernel::rtnl);
    // There is carrier: announces the address if it changed.
    void carrier_on() TA_REQUIRES(kernel::rtnl);
    // CONTEXT: process, no RTNL.
    void cancel() { announce_.cancel(); }

private:
    void run() TA_REQUIRES(kernel::rtnl);

    // Announcements are repeated, because they may be lost.
    static constexpr unsigned int repetitions = 3;

    Interface& interface_;
    // Announcements still to be sent.
    unsigned int left_ TA_GUARDED(kernel::rtnl) = 0;
    kernel::RtnlWork<&Announcer::run> announce_{*this, flush_queue};
};

} // namespace ipoib
