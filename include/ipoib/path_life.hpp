// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A path's life, as a pure state machine: step() says what comes next and what is to be done; PathTable does it.
// Documentation/state-machines.md has the table.
#pragma once

namespace ipoib {

class PathLife {
public:
    enum class State {
        unknown,    // no record, and nobody asked
        asking,     // a path query is under way; packets wait
        known,      // the record is good
        doubtful,   // the record is used still, and the next packet asks anew
        refreshing, // the record is used while a new one is on its way
    };
    enum class Event {
        needed,     // a packet wants to go there
        answered,   // the SA gave a record, and its address handle is made
        failed,     // no record, or no address handle
        unanswered, // the SA said nothing
        doubted,    // the fabric changed: the record may be wrong
    };
    enum class Action {
        none,
        ask,          // send a path query
        send_waiting, // use the new record; packets that waited can go
        drop_waiting, // forget the record if there was one; they cannot
    };
    struct Step {
        State next;
        Action action;
    };

    // An SA that is busy, when a whole cluster starts, is asked so many times before packets are given up.
    static constexpr unsigned int most_tries = 4;

    constexpr State state() const { return state_; }
    // Packets can be sent now.
    constexpr bool usable() const
    {
        return state_ == State::known || state_ == State::doubtful || state_ == State::refreshing;
    }
    constexpr bool question_open() const { return state_ == State::asking || state_ == State::refreshing; }
    // Another packet asks nothing.
    constexpr bool settled() const { return state_ == State::known || question_open(); }

    constexpr Step on(Event event)
    {
        const Step step = decide(event);
        if (step.action == Action::ask)
            ++tries_;
        else if (!question_open() || step.action != Action::none)
            tries_ = 0;
        state_ = step.next;
        return step;
    }

    static constexpr const char* name(State state)
    {
        switch (state) {
        case State::unknown:
            return "unknown";
        case State::asking:
            return "asking";
        case State::known:
            return "known";
        case State::doubtful:
            return "doubtful";
        case State::refreshing:
            return "refreshing";
        }
        return "?";
    }

private:
    constexpr Step decide(Event event) const
    {
        switch (state_) {
        case State::unknown:
            return event == Event::needed ? Step{State::asking, Action::ask} : stay();
        case State::asking:
            return decide_asked(event);
        case State::known:
            return event == Event::doubted ? Step{State::doubtful, Action::none} : stay();
        case State::doubtful:
            return event == Event::needed ? Step{State::refreshing, Action::ask} : stay();
        case State::refreshing:
            // When it fails, the old record goes too: whoever can't be found now is better asked for again.
            return decide_asked(event);
        }
        return stay();
    }
    constexpr Step decide_asked(Event event) const
    {
        if (event == Event::answered)
            return {State::known, Action::send_waiting};
        if (event == Event::unanswered && tries_ < most_tries)
            return {state_, Action::ask};
        if (event == Event::failed || event == Event::unanswered)
            return {State::unknown, Action::drop_waiting};
        return stay();
    }
    constexpr Step stay() const { return {state_, Action::none}; }

    State state_ = State::unknown;
    unsigned int tries_ = 0;
};

} // namespace ipoib
