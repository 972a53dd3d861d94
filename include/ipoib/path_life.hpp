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
        unanswered, // the SA said nothing, or the question was called back
        unsent,     // the SA has no address at present
        doubted,    // the fabric changed: the record may be wrong, and the question may go to an SA that was
        aged,       // nobody has confirmed the record for long; nobody says that it is wrong either
    };
    enum class Action {
        none,
        ask,          // send a path query that is to be answered within limit_s()
        call_back,    // end the query that is under way
        send_waiting, // use the new record; packets that waited can go
        drop_waiting, // forget the record if there was one; they cannot
        keep,         // use the record on
    };
    struct Step {
        State next;
        Action action;
    };

    // ib_core sends a query ten times within its limit. An SA that is busy, as when a whole cluster starts, is given
    // twice the time with each one that it does not answer, so that it has fewer repetitions to read.
    static constexpr unsigned int first_limit_s = 1;
    static constexpr unsigned int longest_limit_s = 16;

    constexpr State state() const { return state_; }
    constexpr unsigned int limit_s() const { return limit_s_; }
    // Packets can be sent now.
    constexpr bool usable() const
    {
        return state_ == State::known || state_ == State::doubtful || state_ == State::refreshing;
    }
    constexpr bool question_open() const { return state_ == State::asking || state_ == State::refreshing; }
    // The SA was asked for a record that had aged, and gave none.
    constexpr bool unconfirmed() const { return state_ == State::known && aged_; }
    // Another packet asks nothing.
    constexpr bool settled() const { return state_ == State::known || question_open(); }

    constexpr Step on(Event event)
    {
        // A record that is in doubt for a better reason stays so.
        if (event == Event::aged && state_ == State::known)
            aged_ = true;
        const Step step = decide(event);
        if (step.action == Action::ask)
            limit_s_ = limit_s_ == 0 ? first_limit_s : longer(limit_s_);
        else if (event == Event::answered || event == Event::failed || event == Event::unsent ||
                 event == Event::doubted)
            limit_s_ = 0;
        if (event == Event::answered || event == Event::doubted)
            aged_ = false;
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
    static constexpr unsigned int longer(unsigned int limit_s)
    {
        return limit_s * 2 > longest_limit_s ? longest_limit_s : limit_s * 2;
    }
    constexpr Step decide(Event event) const
    {
        switch (state_) {
        case State::unknown:
            return event == Event::needed ? Step{State::asking, Action::ask} : stay();
        case State::asking:
            return decide_asked(event);
        case State::known:
            return event == Event::doubted || event == Event::aged ? Step{State::doubtful, Action::none} : stay();
        case State::doubtful:
            return event == Event::needed ? Step{State::refreshing, Action::ask} : stay();
        case State::refreshing:
            // When it fails, the old record goes too: whoever can't be found now is better asked for again. But one
            // that nobody says is wrong is used on.
            return decide_asked(event);
        }
        return stay();
    }
    constexpr Step decide_asked(Event event) const
    {
        if (event == Event::answered)
            return {State::known, Action::send_waiting};
        if (event == Event::unanswered && limit_s_ < longest_limit_s)
            return {state_, Action::ask};
        if (event == Event::unsent || (event == Event::unanswered && usable()))
            return {usable() ? State::doubtful : State::unknown, Action::none};
        // Where the SA was, its port answers for it (with an error) once it is gone: no reason to lose the record.
        if (event == Event::failed && usable() && aged_)
            return {State::known, Action::keep};
        if (event == Event::failed || event == Event::unanswered)
            return {State::unknown, Action::drop_waiting};
        if (event == Event::doubted)
            return {state_, Action::call_back};
        return stay();
    }
    constexpr Step stay() const { return {state_, Action::none}; }

    State state_ = State::unknown;
    bool aged_ = false;
    // Of the latest query, if the SA has said nothing since; otherwise 0.
    unsigned int limit_s_ = 0;
};

} // namespace ipoib
