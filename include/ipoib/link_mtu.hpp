// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An interface's MTU (RFC 4391 section 7, RFC 4755 section 5). In datagram mode it is the user's choice, up to the MTU
// of the broadcast group's link; a choice of the link's MTU follows the link. Connected mode starts with the largest
// MTU of connections, which the user can lower; on return to datagram mode the current MTU becomes the user's choice.
// MTUs are bytes of IP, frames bytes with the encapsulation.
#pragma once
#include <algorithm>

#include <ipoib/encapsulation.hpp>
#include <kernel/lock.hpp>
#include <kernel/published.hpp>
#include <kernel/result.hpp>

namespace ipoib {

class Interface;

class LinkMtu {
public:
    explicit LinkMtu(Interface& interface) : interface_(interface) {}

    // Before registration. max_frame: the largest that the port may ever carry. wanted: the MTU that came with the
    // request for the interface, 0 if none did.
    void begin(unsigned int max_frame, unsigned int wanted) TA_REQUIRES(kernel::rtnl);
    // The broadcast group's link carries frames of this size. CONTEXT: process.
    void set_link(unsigned int frame);
    // The largest datagram of the link. CONTEXT: any.
    unsigned int max_frame() const { return max_frame_.load_relaxed(); }

    // ndo_change_mtu. -EINVAL: not between min_mtu and the largest of the mode.
    kernel::Status change(unsigned int mtu) TA_REQUIRES(kernel::rtnl);
    // Sets the netdev's MTU in datagram mode, after set_link().
    void apply() TA_REQUIRES(kernel::rtnl);
    // Sets the netdev's MTU for the mode that was just entered.
    void enter_connected_mode() TA_REQUIRES(kernel::rtnl);
    void enter_datagram_mode() TA_REQUIRES(kernel::rtnl);

private:
    unsigned int datagram_mtu() const TA_REQUIRES(kernel::rtnl) { return std::min(admin_mtu_, ip_mtu(max_frame())); }
    // Sets the netdev's MTU without taking it for the user's choice. If another subsystem refuses it, as notifiers may,
    // the MTU stays as it is.
    void set_netdev_mtu(unsigned int mtu) TA_REQUIRES(kernel::rtnl);

    Interface& interface_;
    unsigned int max_port_frame_ = 0;
    // The user's choice; and the link's at the last apply().
    unsigned int admin_mtu_ TA_GUARDED(kernel::rtnl) = 0;
    unsigned int link_mtu_ TA_GUARDED(kernel::rtnl) = 0;
    // The driver is changing the MTU: change() does not take it for the user's choice.
    bool setting_ TA_GUARDED(kernel::rtnl) = false;
    kernel::Published<unsigned int> max_frame_;
};

} // namespace ipoib
