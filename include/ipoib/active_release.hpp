// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The state machine that releases the queue pair and the CM identifier of an active connection, without side effects:
// on() returns the next state and the action for ActiveConnections. Documentation/state-machines.md has the table.
#pragma once
#include <ipoib/flush_limit.hpp>
#include <ipoib/state_machine.hpp>

namespace ipoib {

class ActiveRelease {
public:
    enum class State {
        none,       // nothing is to be released
        unneeded,   // unpublished; transmitters may still post sends
        broken,     // as unneeded, and the queue pair has failed or was never connected
        completing, // no transmitter posts any more once the grace period has ended; the posted sends may still arrive
        flushing,   // the queue pair is in ERROR; its sends are flushed (IBA 10.3.1)
        destroying, // no send is outstanding; queue pair and CM identifier are being destroyed
    };
    enum class Event {
        abandoned,    // the connection is not needed any more
        failed,       // the connection broke or was refused
        grace_period, // an RCU grace period begins; the owner reports no other event before it has ended
        completed,    // no send is outstanding
        timed_out,    // the limit of the state has passed
        destroyed,    // queue pair and CM identifier are destroyed
    };
    enum class Action {
        none,
        flush,   // move the queue pair to ERROR
        destroy, // destroy queue pair and CM identifier
    };
    struct Step {
        State next;
        Action action;
        // Time for the sends to complete in the next state.
        unsigned int limit_ms;
    };

    // Limit of sends on a connection that works but is not needed any more.
    static constexpr unsigned int max_completing_ms = 200;

    constexpr State state() const { return state_; }
    constexpr bool started() const { return state_ != State::none; }
    constexpr bool wants_grace_period() const { return state_ == State::unneeded || state_ == State::broken; }
    constexpr bool awaits_sends() const { return state_ == State::completing || state_ == State::flushing; }

    constexpr Step on(Event event) { return enter(state_, decide(event)); }

private:
    constexpr Step decide(Event event) const
    {
        switch (state_) {
        case State::none:
            if (event == Event::abandoned)
                return {State::unneeded, Action::none, 0};
            return event == Event::failed ? Step{State::broken, Action::none, 0} : stay();
        case State::unneeded:
            return event == Event::grace_period ? Step{State::completing, Action::none, max_completing_ms} : stay();
        case State::broken:
            return event == Event::grace_period ? Step{State::completing, Action::none, 0} : stay();
        case State::completing:
            if (event == Event::completed || event == Event::timed_out)
                return {State::flushing, Action::flush, flush_limit_s * 1000};
            return stay();
        case State::flushing:
            if (event == Event::completed || event == Event::timed_out)
                return {State::destroying, Action::destroy, 0};
            return stay();
        case State::destroying:
            return event == Event::destroyed ? Step{State::none, Action::none, 0} : stay();
        }
        return stay();
    }
    constexpr Step stay() const { return {state_, Action::none, 0}; }

    State state_ = State::none;
};

} // namespace ipoib
