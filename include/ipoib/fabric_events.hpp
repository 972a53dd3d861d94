// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Events of an interface's port. Each queues one of three work items, which read the port and report to the interface's
// state machine what changed:
//   light   the subnet manager wants reregistration
//   normal  the port went up or down, or has another LID
//   heavy   the P_Key or GID table changed, perhaps in other entries than the interface's; also repeats a reading that
//           failed
#pragma once
#include <cstdint>

#include <ipoib/interface_life.hpp>
#include <kernel/opaque.hpp>
#include <kernel/work.hpp>
#include <shim/device.h>

namespace ipoib {

class Interface;

// The queue of all interfaces' work items that take RTNL.
extern kernel::WorkQueue flush_queue;

class FabricEvents {
public:
    explicit FabricEvents(Interface& interface) : interface_(interface) {}

    // Events are received from now on; the port is read once for those before.
    void start() TA_REQUIRES(kernel::rtnl);
    // No event is received any more.
    void stop() TA_REQUIRES(kernel::rtnl);
    // Cancels the work items. CONTEXT: process, stopped.
    void cancel() TA_EXCLUDES(kernel::rtnl);
    // Rejoins the groups, as after a GID change. CONTEXT: any.
    void flush_light() { light_.queue(); }

private:
    static void on_event(void* context, unsigned int event, std::uint32_t port);
    void run_light() TA_REQUIRES(kernel::rtnl) { run("light", InterfaceLife::Event::reregister); }
    void run_normal() TA_REQUIRES(kernel::rtnl) { run("normal", InterfaceLife::Event::port_changed); }
    void run_heavy() TA_REQUIRES(kernel::rtnl) { run("heavy", InterfaceLife::Event::unchanged); }
    void run(const char* level, InterfaceLife::Event event) TA_REQUIRES(kernel::rtnl);
    // Reads the port; a failed reading is repeated later. Returns the event for the interface's state machine: event,
    // if nothing else changed.
    InterfaceLife::Event read_port(InterfaceLife::Event event) TA_REQUIRES(kernel::rtnl);

    Interface& interface_;
    // Index of the interface's GID in the port's table when it was last read, negative if absent: address handles of
    // groups contain it.
    int gid_index_ TA_GUARDED(kernel::rtnl) = -1;
    kernel::Opaque<shim_event_handler> handler_{};
    kernel::RtnlWork<&FabricEvents::run_light> light_{*this, flush_queue};
    kernel::RtnlWork<&FabricEvents::run_normal> normal_{*this, flush_queue};
    kernel::RtnlWork<&FabricEvents::run_heavy> heavy_{*this, flush_queue};
};

} // namespace ipoib
