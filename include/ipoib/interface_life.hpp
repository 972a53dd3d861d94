// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The state machine of an interface between open and stop, with the flushes that fabric events cause, without side
// effects: on() returns the next state and the actions for InterfaceState, in order. CONTEXT: RTNL.
// Documentation/state-machines.md has the table.
#pragma once
#include <cstdint>

#include <ipoib/state_machine.hpp>

namespace ipoib {

class InterfaceLife {
public:
    enum class State {
        closed,   // administratively down
        waiting,  // up; the P_Key is not in the port's table, or the queue pair could not be put into service
        starting, // the queue pair is in service; the broadcast group is not joined
        running,  // the broadcast group is joined: carrier
    };
    enum class Event {
        opened,       // by the user; the P_Key is in the port's table
        deferred,     // opened without that P_Key; or the start failed, and is tried again
        closed,       // by the user
        joined,       // the broadcast group, with the port active
        reregister,   // light flush: the SM requests reregistration; or heavy flush: another GID, or GID index
        port_changed, // normal flush: port up or down, or another LID
        restart,      // any flush: another P_Key, index or larger MTU; a stalled queue; the start failed before
        pkey_gone,    // heavy flush: the P_Key was removed from the port's table
        pkey_found,   // heavy flush: the P_Key was added to the port's table
        unchanged,    // heavy flush: nothing changed
    };
    // Performed in this order.
    enum Action : std::uint8_t {
        none = 0,
        bring_down = 1 << 0,       // carrier off, leave the groups, remove the paths
        stop_queues = 1 << 1,      // take the queue pair out of service, free its buffers
        start_queues = 1 << 2,     // put the queue pair into service
        bring_up = 1 << 3,         // start to join groups and to query paths
        invalidate_paths = 1 << 4, // query paths again when they are used
        rejoin_groups = 1 << 5,    // join groups again; meanwhile they continue to be used
        carrier_on = 1 << 6,
    };
    struct Step {
        State next;
        std::uint8_t actions;
    };

    constexpr State state() const { return state_; }
    constexpr bool started() const { return state_ == State::starting || state_ == State::running; }

    constexpr Step on(Event event) { return enter(state_, decide(event)); }

    static constexpr const char* name(State state)
    {
        switch (state) {
        case State::closed:
            return "closed";
        case State::waiting:
            return "waiting";
        case State::starting:
            return "starting";
        case State::running:
            return "running";
        }
        return "?";
    }

private:
    constexpr Step decide(Event event) const
    {
        switch (state_) {
        case State::closed:
            if (event == Event::opened)
                return {State::starting, start_queues | bring_up};
            if (event == Event::deferred)
                return {State::waiting, none};
            return stay();
        case State::waiting:
            if (event == Event::closed)
                return {State::closed, none};
            if (event == Event::pkey_found || event == Event::restart)
                return {State::starting, start_queues | bring_up};
            return stay();
        case State::starting:
        case State::running:
            return decide_started(event);
        }
        return stay();
    }
    constexpr Step decide_started(Event event) const
    {
        switch (event) {
        case Event::closed:
            return {State::closed, bring_down | stop_queues};
        case Event::joined:
            return {State::running, carrier_on};
        case Event::reregister:
            return {state_, invalidate_paths | rejoin_groups};
        case Event::port_changed:
            return {State::starting, bring_down | bring_up};
        case Event::restart:
            return {State::starting, bring_down | stop_queues | start_queues | bring_up};
        case Event::pkey_gone:
            return {State::waiting, bring_down | stop_queues};
        case Event::opened:
        case Event::deferred:
        case Event::pkey_found:
        case Event::unchanged:
            break;
        }
        return stay();
    }
    constexpr Step stay() const { return {state_, none}; }

    State state_ = State::closed;
};

} // namespace ipoib
