// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Whether an interface is up: moves the state machine InterfaceLife and performs its actions.
#pragma once
#include <ipoib/fabric_events.hpp>
#include <ipoib/interface_life.hpp>
#include <kernel/result.hpp>
#include <kernel/work.hpp>

namespace ipoib {

class Interface;

class InterfaceState {
public:
    explicit InterfaceState(Interface& interface) : interface_(interface), garbage_(*this) {}

    // Performs the actions of an event. On failure the interface has no queues; unless the event is that the user
    // opened it, they are started again later. CONTEXT: RTNL and the interface's ops_lock.
    kernel::Status perform(InterfaceLife::Event event);

    // Opens the interface for the user. On failure it is closed. CONTEXT: RTNL.
    kernel::Status open();
    // Closes the interface, for the user, or to change its settings, after which reopen() follows. Returns true if it
    // was open. CONTEXT: RTNL.
    bool close();
    // As open(), but on failure the queues are started again later. CONTEXT: RTNL.
    kernel::Status reopen();
    // Closes and opens the queues, from the flush queue. CONTEXT: any.
    void restart_queues() { restart_.queue(); }
    // CONTEXT: process, no RTNL.
    void cancel() { restart_.cancel(); }

    // The queues are in service. CONTEXT: RTNL.
    bool started() const { return life_.started(); }
    bool has_carrier() const { return life_.state() == InterfaceLife::State::running; }

private:
    kernel::Status start_queues();
    void stop_queues();
    // Starts the queues from the flush queue: there was no memory, or the HCA refused.
    void start_later();
    void bring_up();
    void bring_down();
    void run_restart();
    void run_garbage();

    Interface& interface_;
    // Under RTNL.
    InterfaceLife life_;
    kernel::RtnlWork<&InterfaceState::run_restart> restart_{*this, flush_queue};
    // On the interface's work queue, while it is up.
    kernel::Work<&InterfaceState::run_garbage> garbage_;
};

} // namespace ipoib
