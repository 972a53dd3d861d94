// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Whether an interface is up: moves the state machine InterfaceLife and performs its actions.
#pragma once
#include <ipoib/fabric_events.hpp>
#include <ipoib/interface_life.hpp>
#include <kernel/published.hpp>
#include <kernel/result.hpp>
#include <kernel/work.hpp>

namespace ipoib {

class Interface;

class InterfaceState {
public:
    explicit InterfaceState(Interface& interface) : interface_(interface), garbage_(*this) {}

    // Performs the actions of an event. On failure the queues are out of service; unless the event is that the user
    // opened the interface, they are started again after a second. CONTEXT: under the interface's ops_lock.
    kernel::Status perform(InterfaceLife::Event event) TA_REQUIRES(kernel::rtnl);

    // Opens the interface for the user. On failure it is closed.
    kernel::Status open() TA_REQUIRES(kernel::rtnl);
    // Closes the interface, for the user, or to change its settings, after which reopen() follows. Returns true if it
    // was open.
    bool close() TA_REQUIRES(kernel::rtnl);
    // As open(), but on failure the queues are started again later.
    kernel::Status reopen() TA_REQUIRES(kernel::rtnl);
    // Closes and opens the queues, from the flush queue. CONTEXT: any.
    void restart_queues()
    {
        stalled_.store(true);
        restart_.queue();
    }
    // CONTEXT: process, no RTNL.
    void cancel() { restart_.cancel(); }

    // The queues are in service.
    bool started() const TA_REQUIRES(kernel::rtnl) { return life_.started(); }
    bool has_carrier() const TA_REQUIRES(kernel::rtnl) { return life_.state() == InterfaceLife::State::running; }

private:
    kernel::Status start_queues() TA_REQUIRES(kernel::rtnl);
    void stop_queues() TA_REQUIRES(kernel::rtnl);
    // Starts the queues from the flush queue: there was no memory, or the HCA refused.
    void start_later() TA_REQUIRES(kernel::rtnl);
    void bring_up() TA_REQUIRES(kernel::rtnl);
    void bring_down() TA_REQUIRES(kernel::rtnl);
    void run_restart() TA_REQUIRES(kernel::rtnl);
    void run_garbage();

    Interface& interface_;
    InterfaceLife life_ TA_GUARDED(kernel::rtnl);
    // A restart was requested since the queues were started.
    kernel::Published<bool> stalled_;
    kernel::RtnlWork<&InterfaceState::run_restart> restart_{*this, flush_queue};
    // On the interface's work queue, while it is up.
    kernel::Work<&InterfaceState::run_garbage> garbage_;
};

} // namespace ipoib
