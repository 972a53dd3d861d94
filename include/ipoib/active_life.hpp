// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The life of a connection on its active side, which sends, as a pure state machine: on() says what comes next and what
// is to be done; Connections does it. Documentation/state-machines.md has the table.
#pragma once

namespace ipoib {

class ActiveLife {
public:
    enum class State {
        idle,        // nobody has sent anything since the last connection ended
        wanted,      // packets wait; a REQ is to be sent
        asked,       // a REQ was sent; packets wait
        established, // packets go by the connection
        recovering,  // it broke or the peer left; packets wait until it is released
        refused,     // there is none to be had; packets go as datagrams, if they fit, until it is worth asking again
        closing,     // nobody needs it any more
        gone,
    };
    enum class Event {
        needed,    // a packet wants to go
        asked,     // the REQ is about to be sent
        accepted,  // a good REP came, and the queue pair is ready to send
        failed,    // no REQ could be sent, it was rejected or not answered, a send failed, the peer left
        stale,     // the peer takes us for a connection that it still has: as soon as that is gone, all is well
        released,  // queue pair and identifier are no more
        rested,    // after a refusal: it is worth asking again
        abandoned, // the neighbour is forgotten, or the interface leaves connected mode
    };
    enum class Action {
        none,
        ask,       // create a queue pair, send a REQ
        send,      // publish the connection; packets that waited can go
        recover,   // unpublish it and release what it has; packets wait
        fall_back, // release what it has; packets that waited go as datagrams, if they fit
        rest,      // come back with rested in a while
        resume,    // if packets wait, it is needed
        close,     // unpublish it, drop what waits, release what it has
        destroy,   // free it
    };
    struct Step {
        State next;
        Action action;
    };

    constexpr State state() const { return state_; }

    constexpr Step on(Event event)
    {
        const Step step = decide(event);
        state_ = step.next;
        return step;
    }

    static constexpr const char* name(State state)
    {
        switch (state) {
        case State::idle:
            return "idle";
        case State::wanted:
            return "wanted";
        case State::asked:
            return "asked";
        case State::established:
            return "established";
        case State::recovering:
            return "recovering";
        case State::refused:
            return "refused";
        case State::closing:
            return "closing";
        case State::gone:
            return "gone";
        }
        return "?";
    }

private:
    constexpr Step decide(Event event) const
    {
        if (event == Event::abandoned && state_ != State::closing && state_ != State::gone)
            return {State::closing, Action::close};
        switch (state_) {
        case State::idle:
            return event == Event::needed ? Step{State::wanted, Action::ask} : stay();
        case State::wanted:
            if (event == Event::asked)
                return {State::asked, Action::none};
            return event == Event::failed ? Step{State::refused, Action::fall_back} : stay();
        case State::asked:
            if (event == Event::accepted)
                return {State::established, Action::send};
            if (event == Event::stale)
                return {State::recovering, Action::recover};
            return event == Event::failed ? Step{State::refused, Action::fall_back} : stay();
        case State::established:
            return event == Event::failed || event == Event::stale ? Step{State::recovering, Action::recover} : stay();
        case State::recovering:
            return event == Event::released ? Step{State::idle, Action::resume} : stay();
        case State::refused:
            if (event == Event::released)
                return {State::refused, Action::rest};
            return event == Event::rested ? Step{State::idle, Action::resume} : stay();
        case State::closing:
            return event == Event::released ? Step{State::gone, Action::destroy} : stay();
        case State::gone:
            break;
        }
        return stay();
    }
    constexpr Step stay() const { return {state_, Action::none}; }

    State state_ = State::idle;
};

} // namespace ipoib
