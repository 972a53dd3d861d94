// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The life of a connection on its passive side, which receives, as a pure state machine: on() says what comes next and
// what is to be done; Connections does it. Documentation/state-machines.md has the table.
#pragma once

namespace ipoib {

class PassiveLife {
public:
    enum class State {
        accepting,   // a REQ came; its queue pair is made, the REP not sent
        established, // the peer may send
        flushing,    // the queue pair is in its error state and gives its receives back
        draining,    // it has given them back; once the drain's completion is seen, so are all of them
        done,        // nothing refers to it
    };
    enum class Event {
        replied,   // the REP was sent
        ended,     // the peer left, was idle for long, has a newer connection in use, or the interface stops
        flushed,   // the last receive was given back
        drained,   // the drain's completion came
        timed_out, // either of them did not come
    };
    enum class Action {
        none,
        flush,   // move the queue pair to its error state
        drain,   // post a send that completes behind everything else
        destroy, // free it
    };
    struct Step {
        State next;
        Action action;
    };

    constexpr State state() const { return state_; }
    // On its way out.
    constexpr bool ending() const { return state_ == State::flushing || state_ == State::draining; }

    constexpr Step on(Event event)
    {
        const Step step = decide(event);
        state_ = step.next;
        return step;
    }

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
            // An error of its own flushes a queue pair too.
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
