// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The state machine of a connection's active side, which sends, without side effects: on() returns the next state and
// the action for ActiveConnections. Documentation/state-machines.md has the table.
#pragma once
#include <ipoib/state_machine.hpp>

namespace ipoib {

class ActiveLife {
public:
    enum class State {
        idle,        // no connection; no packet was sent since the last one ended
        wanted,      // packets wait; a REQ is to be sent
        requested,   // a REQ was sent; packets wait
        established, // packets are sent over the connection
        recovering,  // the connection broke, or the peer left; packets wait until it is released
        refused,     // packets that fit are sent as datagrams until the back-off ends
        closing,     // not needed any more
        gone,
    };
    enum class Event {
        needed,    // a packet is to be sent
        requested, // the REQ is about to be sent
        accepted,  // a valid REP was received, and the queue pair is in RTS
        failed,    // the REQ could not be sent, was rejected or got no response; a send failed or took too long; the
                   // peer left
        stale,     // REJ "stale connection" (reason 10), or the REQ went to a former LID: connect again once our former
                   // queue pair is destroyed
        released,  // queue pair and CM identifier are destroyed
        retry_due, // the back-off after a refusal is over
        abandoned, // the neighbour is removed, or the interface leaves connected mode
    };
    enum class Action {
        none,
        connect,   // create a queue pair, send a REQ
        send,      // publish the connection, transmit the packets that wait
        recover,   // unpublish and release it; packets wait
        fall_back, // release it; send the packets that wait as datagrams, if they fit
        back_off,  // report retry_due after the back-off
        resume,    // report needed if packets wait
        close,     // unpublish and release it, drop the packets that wait
        destroy,   // free it
    };
    struct Step {
        State next;
        Action action;
    };

    constexpr State state() const { return state_; }
    // Returns true from the first packet that needs the connection until it is established, and during a back-off.
    constexpr bool opening() const
    {
        return state_ == State::wanted || state_ == State::requested || state_ == State::recovering ||
               state_ == State::refused;
    }

    constexpr Step on(Event event) { return enter(state_, decide(event)); }

    static constexpr const char* name(State state)
    {
        switch (state) {
        case State::idle:
            return "idle";
        case State::wanted:
            return "wanted";
        case State::requested:
            return "requested";
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
            return event == Event::needed ? Step{State::wanted, Action::connect} : stay();
        case State::wanted:
            if (event == Event::requested)
                return {State::requested, Action::none};
            return event == Event::failed ? Step{State::refused, Action::fall_back} : stay();
        case State::requested:
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
                return {State::refused, Action::back_off};
            return event == Event::retry_due ? Step{State::idle, Action::resume} : stay();
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
