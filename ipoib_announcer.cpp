// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Announcements of a changed hardware address to neighbours: three, at intervals of 1 s, while there is carrier.
#include <ipoib/announcer.hpp>
#include <ipoib/interface.hpp>
#include <kernel/time.hpp>

namespace ipoib {

void Announcer::address_changed()
{
    left_ = repetitions;
    shim_helper_notify_changeaddr(interface_.dev());
}

void Announcer::carrier_on()
{
    if (left_ == 0)
        return;
    left_ = repetitions;
    announce_.queue();
}

void Announcer::run()
{
    // Without carrier: carrier_on() queues this again.
    if (!interface_.state.has_carrier())
        return;
    shim_netdev_notify_peers(interface_.dev());
    // The stack handles carrier changes with a delay, and drops announcements until then.
    if (--left_)
        announce_.queue(kernel::seconds(1));
}

} // namespace ipoib
