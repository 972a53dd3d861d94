// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The state machine of a connection's passive side, which receives, without side effects: on() returns the next state
// and the action for PassiveConnections. Documentation/state-machines.md has the table.
#pragma once
#include <ipoib/state_machine.hpp>

namespace ipoib {

class PassiveLife {
public:
    enum class State {
        accepting,   // a REQ was received and the queue pair created; the REP is not sent
        established, // the peer may send
        flushing,    // the queue pair is in ERROR; its receives are being flushed
        draining,    // the receives are flushed (IBA 10.3.1); the drain's completion comes after theirs
        done,        // nothing refers to it
    };
    enum class Event {
        replied,   // the REP was sent
        ended,     // the peer left, was idle for long, or uses too many others; or the interface stops
        flushed,   // "last WQE reached", or all receives of its own ring completed
        drained,   // the drain completed
        timed_out, // flushed or drained did not happen within flush_limit_s
    };
    enum class Action {
        none,
        flush,   // move the queue pair to ERROR
        drain,   // post a send, which completes after all receives
        destroy, // free it
    };
    struct Step {
        State next;
        Action action;
    };

    constexpr State state() const { return state_; }
    // True while it is being ended.
    constexpr bool ending() const { return state_ == State::flushing || state_ == State::draining; }

    constexpr Step on(Event event) { return enter(state_, decide(event)); }

    static constexpr const char* name(State state)
    {
        switch (state) {
        case State::accepting:
            return "accepting";
        case State::established:
            return "established";
        case State::flushing:
            return "flushing";
        case State::draining:
            return "draining";
        case State::done:
            return "done";
        }
        return "?";
    }

private:
    constexpr Step decide(Event event) const
    {
        switch (state_) {
        case State::accepting:
            if (event == Event::replied)
                return {State::established, Action::none};
            [[fallthrough]];
        case State::established:
            // An error of the queue pair flushes it, too.
            if (event == Event::flushed)
                return {State::draining, Action::drain};
            return event == Event::ended ? Step{State::flushing, Action::flush} : stay();
        case State::flushing:
            if (event == Event::flushed)
                return {State::draining, Action::drain};
            return event == Event::timed_out ? Step{State::done, Action::destroy} : stay();
        case State::draining:
            return event == Event::drained || event == Event::timed_out ? Step{State::done, Action::destroy} : stay();
        case State::done:
            break;
        }
        return stay();
    }
    constexpr Step stay() const { return {state_, Action::none}; }

    State state_ = State::accepting;
};

} // namespace ipoib
