// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The state machine of a path, without side effects: on() returns the next state and the action for PathTable.
// Documentation/state-machines.md has the table.
#pragma once

namespace ipoib {

class PathLife {
public:
    enum class State {
        unknown,    // no record, no query
        querying,   // a path record query is pending; packets wait
        known,      // the record is valid
        stale,      // the record was invalidated; it is used, and the next packet sends a query
        refreshing, // the record is used while a query is pending
    };
    enum class Event {
        needed,      // a packet is to be sent
        answered,    // the SA returned a record, and its AH was created
        failed,      // the SA returned no record, or the AH could not be created
        unanswered,  // the SA did not respond, or the query was cancelled
        unsent,      // the query could not be sent: there is no SA currently
        invalidated, // the fabric changed: the record may be stale, and a pending query may address a former SA
        aged,        // the record was not confirmed for long; nothing says that it is stale
    };
    enum class Action {
        none,
        query,        // send a query with a timeout of limit_s()
        cancel,       // cancel the pending query
        send_waiting, // use the new record, transmit the packets that wait
        drop_waiting, // remove the record, drop the packets that wait
        keep,         // continue to use the record
    };
    struct Step {
        State next;
        Action action;
    };

    // ib_core sends a query ten times within its timeout. The timeout doubles with each query without a response, so an
    // SA that a whole cluster queries at once has fewer repetitions to read.
    static constexpr unsigned int first_limit_s = 1;
    static constexpr unsigned int max_limit_s = 16;

    constexpr State state() const { return state_; }
    constexpr unsigned int limit_s() const { return limit_s_; }
    // True if packets can be sent.
    constexpr bool usable() const
    {
        return state_ == State::known || state_ == State::stale || state_ == State::refreshing;
    }
    constexpr bool query_pending() const { return state_ == State::querying || state_ == State::refreshing; }
    // True if the response to the pending query may be from before the fabric changed.
    constexpr bool outdated() const { return outdated_; }
    // True during the first query after the fabric changed, whose response may differ from the record.
    constexpr bool confirming() const { return state_ == State::refreshing && !aged_ && limit_s_ <= first_limit_s; }
    // True if a query for an aged record brought none.
    constexpr bool unconfirmed() const { return state_ == State::known && aged_; }
    // True if a further packet sends no query.
    constexpr bool settled() const { return state_ == State::known || query_pending(); }

    constexpr Step on(Event event)
    {
        // A record that the fabric's change invalidated remains so.
        if (event == Event::aged && state_ == State::known)
            aged_ = true;
        const Step step = decide(event);
        // A query may be past cancelling: its response is being processed.
        if (event == Event::invalidated)
            outdated_ = query_pending();
        else if (event != Event::needed)
            outdated_ = false;
        if (step.action == Action::query)
            limit_s_ = limit_s_ == 0 ? first_limit_s : longer(limit_s_);
        else if (event == Event::answered || event == Event::failed || event == Event::unsent ||
                 event == Event::invalidated)
            limit_s_ = 0;
        if (event == Event::answered || event == Event::invalidated)
            aged_ = false;
        state_ = step.next;
        return step;
    }

    static constexpr const char* name(State state)
    {
        switch (state) {
        case State::unknown:
            return "unknown";
        case State::querying:
            return "querying";
        case State::known:
            return "known";
        case State::stale:
            return "stale";
        case State::refreshing:
            return "refreshing";
        }
        return "?";
    }

private:
    static constexpr unsigned int longer(unsigned int limit_s)
    {
        return limit_s * 2 > max_limit_s ? max_limit_s : limit_s * 2;
    }
    constexpr Step decide(Event event) const
    {
        switch (state_) {
        case State::unknown:
            return event == Event::needed ? Step{State::querying, Action::query} : stay();
        case State::querying:
            return decide_queried(event);
        case State::known:
            return event == Event::invalidated || event == Event::aged ? Step{State::stale, Action::none} : stay();
        case State::stale:
            return event == Event::needed ? Step{State::refreshing, Action::query} : stay();
        case State::refreshing:
            // If the query fails, the old record is dropped too, and the next packet sends a query. A record that only
            // aged is kept: nothing says that it is stale.
            return decide_queried(event);
        }
        return stay();
    }
    constexpr Step decide_queried(Event event) const
    {
        if (event == Event::answered)
            return {outdated_ ? State::stale : State::known, Action::send_waiting};
        if (event == Event::unanswered && limit_s_ < max_limit_s)
            return {state_, Action::query};
        if (event == Event::unsent || (event == Event::unanswered && usable()))
            return {usable() ? State::stale : State::unknown, Action::none};
        // A port on which the SA does not run any more responds with an error: no reason to drop the record.
        if (event == Event::failed && usable() && aged_)
            return {State::known, Action::keep};
        if (event == Event::failed || event == Event::unanswered)
            return {State::unknown, Action::drop_waiting};
        if (event == Event::invalidated)
            return {state_, Action::cancel};
        return stay();
    }
    constexpr Step stay() const { return {state_, Action::none}; }

    State state_ = State::unknown;
    bool aged_ = false;
    // The fabric changed since the pending query was sent.
    bool outdated_ = false;
    // Timeout of the pending query, or of the last one if the SA did not respond, in seconds; else 0.
    unsigned int limit_s_ = 0;
};

} // namespace ipoib
