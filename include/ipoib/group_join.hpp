// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The state machine of a group's join, without side effects: on() returns the next state and the action for GroupSet.
// Documentation/state-machines.md has the table.
#pragma once
#include <ipoib/state_machine.hpp>

namespace ipoib {

class GroupJoin {
public:
    enum class State {
        idle,    // not a member; a send-only group waits for a packet
        joining, // a join request is pending
        backoff, // refused or timed out; waits before the next request
        joined,  // a member
    };
    enum class Event {
        wanted,          // the stack listens to the group, or a packet waits for it
        granted,         // the SA granted the join; the queue pair is attached and the AH created
        refused,         // the SA refused, or attaching or the AH failed
        unanswered,      // the SA did not respond
        retry_due,       // the back-off is over
        membership_lost, // the SA may have lost the membership
    };
    enum class Action {
        none,
        join,         // send a join request
        arm_retry,    // report retry_due after delay_s
        send_waiting, // transmit the group's packets
        drop_waiting, // drop them, and unpublish the AH of an earlier membership
    };
    struct Step {
        State next;
        Action action;
        unsigned int delay_s;
    };

    static constexpr unsigned int first_backoff_s = 1;
    static constexpr unsigned int max_backoff_s = 16;
    // ib_core sends a join request ten times within 3 s. The longer back-off lets an overloaded SA catch up with the
    // requests of all hosts; an SA that was restarted sends CLIENT_REREGISTER.
    static constexpr unsigned int max_silent_backoff_s = 64;
    static constexpr unsigned int send_only_attempts = 2;

    explicit constexpr GroupJoin(bool send_only) : send_only_(send_only) {}

    constexpr State state() const { return state_; }
    constexpr bool send_only() const { return send_only_; }

    constexpr Step on(Event event) { return enter(state_, decide(event)); }

    static constexpr const char* name(State state)
    {
        switch (state) {
        case State::idle:
            return "idle";
        case State::joining:
            return "joining";
        case State::backoff:
            return "backoff";
        case State::joined:
            return "joined";
        }
        return "?";
    }

private:
    constexpr Step decide(Event event)
    {
        switch (state_) {
        case State::idle:
            return event == Event::wanted ? join() : stay();
        case State::joining:
            if (event == Event::granted)
                return succeed();
            if (event == Event::refused)
                return fail(max_backoff_s, send_only_);
            if (event == Event::unanswered)
                return fail(max_silent_backoff_s, send_only_ && !member_);
            return stay();
        case State::backoff:
            if (event == Event::retry_due || event == Event::membership_lost)
                return join();
            return stay();
        case State::joined:
            return event == Event::membership_lost ? join() : stay();
        }
        return stay();
    }
    constexpr Step stay() const { return {state_, Action::none, 0}; }
    constexpr Step join()
    {
        ++attempts_;
        return {State::joining, Action::join, 0};
    }
    constexpr Step succeed()
    {
        attempts_ = 0;
        backoff_s_ = first_backoff_s;
        member_ = true;
        return {State::joined, Action::send_waiting, 0};
    }
    // A send-only group gives up after send_only_attempts: packets that wait longer are useless to their receivers, and
    // the next packet sends a join again. If the group was a member, no packets wait: they are sent to the multicast
    // LID of that membership until the SA refuses a join. A full member uses its multicast LID even then, and joins
    // again: an SA that has just started may refuse at first. Members of another group to which the SA gave that LID
    // drop the packets, because they compare the MGID in the GRH (IBA 10.5).
    constexpr Step fail(unsigned int max_s, bool gives_up)
    {
        if (gives_up && attempts_ >= send_only_attempts) {
            attempts_ = 0;
            backoff_s_ = first_backoff_s;
            member_ = false;
            return {State::idle, Action::drop_waiting, 0};
        }
        const unsigned int delay = backoff_s_ > max_s ? max_s : backoff_s_;
        backoff_s_ = delay * 2;
        return {State::backoff, Action::arm_retry, delay};
    }

    State state_ = State::idle;
    bool send_only_;
    // Set while the last granted membership is in use.
    bool member_ = false;
    unsigned int attempts_ = 0;
    unsigned int backoff_s_ = first_backoff_s;
};

} // namespace ipoib
