// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The state machines of a group's join, a path and an interface: every pair of state and event, against the tables in
// Documentation/state-machines.md.
#include <gtest/gtest.h>

#include <ipoib/group_join.hpp>
#include <ipoib/interface_life.hpp>
#include <ipoib/path_life.hpp>

namespace ipoib {
namespace {

// A group's join

using J = GroupJoin;

J join_in(J::State state, bool send_only)
{
    J join(send_only);
    if (state == J::State::idle)
        return join;
    join.on(J::Event::wanted);
    if (state == J::State::joined)
        join.on(J::Event::granted);
    if (state == J::State::backoff)
        join.on(J::Event::refused);
    return join;
}

constexpr J::State join_states[] = {J::State::idle, J::State::joining, J::State::backoff, J::State::joined};
constexpr J::Event join_events[] = {J::Event::wanted,     J::Event::granted,   J::Event::refused,
                                    J::Event::unanswered, J::Event::retry_due, J::Event::membership_lost};

TEST(GroupJoin, every_state_is_reachable)
{
    for (const auto state : join_states)
        for (const bool send_only : {false, true})
            EXPECT_EQ(join_in(state, send_only).state(), state);
}

TEST(GroupJoin, edges_match_the_table)
{
    struct Edge {
        J::State from;
        J::Event event;
        J::State to;
        J::Action action;
    };
    const Edge edges[] = {
        {J::State::idle, J::Event::wanted, J::State::joining, J::Action::join},
        {J::State::joining, J::Event::granted, J::State::joined, J::Action::send_waiting},
        {J::State::joining, J::Event::refused, J::State::backoff, J::Action::arm_retry},
        {J::State::joining, J::Event::unanswered, J::State::backoff, J::Action::arm_retry},
        {J::State::backoff, J::Event::retry_due, J::State::joining, J::Action::join},
        {J::State::backoff, J::Event::membership_lost, J::State::joining, J::Action::join},
        {J::State::joined, J::Event::membership_lost, J::State::joining, J::Action::join},
    };
    for (const auto state : join_states) {
        for (const auto event : join_events) {
            J join = join_in(state, false);
            const auto step = join.on(event);
            Edge expected{state, event, state, J::Action::none};
            for (const Edge& edge : edges)
                if (edge.from == state && edge.event == event)
                    expected = edge;
            EXPECT_EQ(step.next, expected.to) << J::name(state) << " on event " << static_cast<int>(event);
            EXPECT_EQ(step.action, expected.action) << J::name(state) << " on event " << static_cast<int>(event);
            EXPECT_EQ(join.state(), step.next);
        }
    }
}

TEST(GroupJoin, back_off_doubles_to_16_seconds)
{
    J join(false);
    join.on(J::Event::wanted);
    for (const unsigned int expected : {1U, 2U, 4U, 8U, 16U, 16U, 16U}) {
        EXPECT_EQ(join.on(J::Event::refused).delay_s, expected);
        join.on(J::Event::retry_due);
    }
}

TEST(GroupJoin, unanswered_joins_back_off_to_64_seconds)
{
    J join(false);
    join.on(J::Event::wanted);
    for (const unsigned int expected : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 64U}) {
        EXPECT_EQ(join.on(J::Event::unanswered).delay_s, expected);
        join.on(J::Event::retry_due);
    }
    // After another response the back-off is as before.
    EXPECT_EQ(join.on(J::Event::refused).delay_s, 16U);
}

TEST(GroupJoin, success_resets_the_back_off)
{
    J join = join_in(J::State::backoff, false);
    join.on(J::Event::retry_due);
    EXPECT_EQ(join.on(J::Event::refused).delay_s, 2U);
    join.on(J::Event::retry_due);
    join.on(J::Event::granted);
    join.on(J::Event::membership_lost);
    EXPECT_EQ(join.on(J::Event::refused).delay_s, 1U);
}

TEST(GroupJoin, send_only_group_gives_up_after_two_attempts)
{
    J join(true);
    join.on(J::Event::wanted);
    EXPECT_EQ(join.on(J::Event::refused).action, J::Action::arm_retry);
    join.on(J::Event::retry_due);
    const auto step = join.on(J::Event::refused);
    EXPECT_EQ(step.action, J::Action::drop_waiting);
    EXPECT_EQ(step.next, J::State::idle);
    // The next packet starts as the first one did.
    EXPECT_EQ(join.on(J::Event::wanted).action, J::Action::join);
    EXPECT_EQ(join.on(J::Event::refused).action, J::Action::arm_retry);
}

TEST(GroupJoin, refused_send_only_member_gives_up)
{
    J join = join_in(J::State::joined, true);
    join.on(J::Event::membership_lost);
    for (const unsigned int expected : {1U, 2U, 4U}) {
        EXPECT_EQ(join.on(J::Event::unanswered).delay_s, expected);
        join.on(J::Event::retry_due);
    }
    EXPECT_EQ(join.on(J::Event::refused).action, J::Action::drop_waiting);
    // The group is not a member any more.
    join.on(J::Event::wanted);
    join.on(J::Event::unanswered);
    join.on(J::Event::retry_due);
    EXPECT_EQ(join.on(J::Event::unanswered).action, J::Action::drop_waiting);
}

// A path

using P = PathLife;

P path_in(P::State state)
{
    P path;
    if (state == P::State::unknown)
        return path;
    path.on(P::Event::needed);
    if (state == P::State::querying)
        return path;
    path.on(P::Event::answered);
    if (state == P::State::known)
        return path;
    path.on(P::Event::invalidated);
    if (state == P::State::refreshing)
        path.on(P::Event::needed);
    return path;
}

TEST(PathLife, edges_match_the_table)
{
    constexpr P::State states[] = {P::State::unknown, P::State::querying, P::State::known, P::State::stale,
                                   P::State::refreshing};
    constexpr P::Event events[] = {P::Event::needed, P::Event::answered,    P::Event::failed, P::Event::unanswered,
                                   P::Event::unsent, P::Event::invalidated, P::Event::aged};
    struct Edge {
        P::State from;
        P::Event event;
        P::State to;
        P::Action action;
    };
    const Edge edges[] = {
        {P::State::unknown, P::Event::needed, P::State::querying, P::Action::query},
        {P::State::querying, P::Event::answered, P::State::known, P::Action::send_waiting},
        {P::State::querying, P::Event::failed, P::State::unknown, P::Action::drop_waiting},
        {P::State::querying, P::Event::unanswered, P::State::querying, P::Action::query},
        {P::State::querying, P::Event::unsent, P::State::unknown, P::Action::none},
        {P::State::querying, P::Event::invalidated, P::State::querying, P::Action::cancel},
        {P::State::known, P::Event::invalidated, P::State::stale, P::Action::none},
        {P::State::known, P::Event::aged, P::State::stale, P::Action::none},
        {P::State::stale, P::Event::needed, P::State::refreshing, P::Action::query},
        {P::State::refreshing, P::Event::answered, P::State::known, P::Action::send_waiting},
        {P::State::refreshing, P::Event::failed, P::State::unknown, P::Action::drop_waiting},
        {P::State::refreshing, P::Event::unanswered, P::State::refreshing, P::Action::query},
        {P::State::refreshing, P::Event::unsent, P::State::stale, P::Action::none},
        {P::State::refreshing, P::Event::invalidated, P::State::refreshing, P::Action::cancel},
    };
    for (const auto state : states) {
        ASSERT_EQ(path_in(state).state(), state);
        for (const auto event : events) {
            P path = path_in(state);
            const auto step = path.on(event);
            Edge expected{state, event, state, P::Action::none};
            for (const Edge& edge : edges)
                if (edge.from == state && edge.event == event)
                    expected = edge;
            EXPECT_EQ(step.next, expected.to) << P::name(state) << " on event " << static_cast<int>(event);
            EXPECT_EQ(step.action, expected.action) << P::name(state) << " on event " << static_cast<int>(event);
        }
    }
}

TEST(PathLife, response_from_before_an_invalidation_is_stale)
{
    for (const auto state : {P::State::querying, P::State::refreshing}) {
        P path = path_in(state);
        path.on(P::Event::invalidated);
        path.on(P::Event::needed);
        const auto step = path.on(P::Event::answered);
        EXPECT_EQ(step.next, P::State::stale);
        EXPECT_EQ(step.action, P::Action::send_waiting);
        path.on(P::Event::needed);
        EXPECT_EQ(path.on(P::Event::answered).next, P::State::known);
        // The query was cancelled, and sent anew.
        P repeated = path_in(state);
        repeated.on(P::Event::invalidated);
        EXPECT_EQ(repeated.on(P::Event::unanswered).action, P::Action::query);
        EXPECT_EQ(repeated.on(P::Event::answered).next, P::State::known);
    }
}

TEST(PathLife, query_timeout_doubles_up_to_the_maximum)
{
    for (const auto state : {P::State::querying, P::State::refreshing}) {
        const bool usable = state == P::State::refreshing;
        P path = path_in(state);
        for (const unsigned int limit_s : {1U, 2U, 4U, 8U}) {
            EXPECT_EQ(path.limit_s(), limit_s);
            EXPECT_EQ(path.on(P::Event::unanswered).action, P::Action::query);
            path.on(P::Event::needed);
        }
        // From here on each packet causes one query.
        for (int again = 0; again < 2; ++again) {
            EXPECT_EQ(path.limit_s(), P::max_limit_s);
            EXPECT_EQ(path.on(P::Event::unanswered).action, usable ? P::Action::none : P::Action::drop_waiting);
            EXPECT_EQ(path.state(), usable ? P::State::stale : P::State::unknown);
            EXPECT_EQ(path.on(P::Event::needed).action, P::Action::query);
        }
    }
}

TEST(PathLife, every_response_resets_the_query_timeout)
{
    for (const auto event : {P::Event::answered, P::Event::failed, P::Event::unsent, P::Event::invalidated}) {
        P path = path_in(P::State::querying);
        path.on(P::Event::unanswered);
        path.on(event);
        path.on(event == P::Event::invalidated ? P::Event::unanswered : P::Event::invalidated);
        path.on(P::Event::needed);
        EXPECT_EQ(path.limit_s(), P::first_limit_s) << static_cast<int>(event);
    }
}

TEST(PathLife, aged_record_is_kept_until_replaced)
{
    P path = path_in(P::State::known);
    EXPECT_FALSE(path.unconfirmed());
    for (int i = 0; i < 2; ++i) {
        path.on(P::Event::aged);
        path.on(P::Event::needed);
        const auto step = path.on(P::Event::failed);
        EXPECT_EQ(step.next, P::State::known);
        EXPECT_EQ(step.action, P::Action::keep);
        EXPECT_TRUE(path.unconfirmed());
    }
    path.on(P::Event::aged);
    path.on(P::Event::needed);
    path.on(P::Event::answered);
    EXPECT_FALSE(path.unconfirmed());
    // A new SA's response replaces the record.
    path.on(P::Event::aged);
    path.on(P::Event::invalidated);
    path.on(P::Event::needed);
    path.on(P::Event::invalidated);
    EXPECT_EQ(path.on(P::Event::failed).action, P::Action::drop_waiting);
}

TEST(PathLife, aged_invalidated_record_is_dropped_by_a_failed_query)
{
    P path = path_in(P::State::known);
    path.on(P::Event::invalidated);
    path.on(P::Event::aged);
    path.on(P::Event::needed);
    const auto step = path.on(P::Event::failed);
    EXPECT_EQ(step.next, P::State::unknown);
    EXPECT_EQ(step.action, P::Action::drop_waiting);
}

TEST(PathLife, known_path_is_usable_during_a_refresh)
{
    EXPECT_FALSE(path_in(P::State::unknown).usable());
    EXPECT_FALSE(path_in(P::State::querying).usable());
    EXPECT_TRUE(path_in(P::State::known).usable());
    EXPECT_TRUE(path_in(P::State::stale).usable());
    EXPECT_TRUE(path_in(P::State::refreshing).usable());
    EXPECT_TRUE(path_in(P::State::querying).query_pending());
    EXPECT_TRUE(path_in(P::State::refreshing).query_pending());
    EXPECT_FALSE(path_in(P::State::stale).query_pending());
}

// An interface

using L = InterfaceLife;

L life_in(L::State state)
{
    L life;
    if (state == L::State::waiting)
        life.on(L::Event::deferred);
    if (state == L::State::starting || state == L::State::running)
        life.on(L::Event::opened);
    if (state == L::State::running)
        life.on(L::Event::joined);
    return life;
}

TEST(InterfaceLife, edges_match_the_table)
{
    constexpr L::State states[] = {L::State::closed, L::State::waiting, L::State::starting, L::State::running};
    constexpr L::Event events[] = {L::Event::opened,     L::Event::deferred,     L::Event::closed,  L::Event::joined,
                                   L::Event::reregister, L::Event::port_changed, L::Event::restart, L::Event::pkey_gone,
                                   L::Event::pkey_found, L::Event::unchanged};
    struct Edge {
        L::State from;
        L::Event event;
        L::State to;
        int actions;
    };
    const int restart = L::bring_down | L::stop_queues | L::start_queues | L::bring_up;
    const Edge edges[] = {
        {L::State::closed, L::Event::opened, L::State::starting, L::start_queues | L::bring_up},
        {L::State::closed, L::Event::deferred, L::State::waiting, L::none},
        {L::State::waiting, L::Event::closed, L::State::closed, L::none},
        {L::State::waiting, L::Event::pkey_found, L::State::starting, L::start_queues | L::bring_up},
        {L::State::waiting, L::Event::restart, L::State::starting, L::start_queues | L::bring_up},
        {L::State::starting, L::Event::closed, L::State::closed, L::bring_down | L::stop_queues},
        {L::State::starting, L::Event::joined, L::State::running, L::carrier_on},
        {L::State::starting, L::Event::reregister, L::State::starting, L::invalidate_paths | L::rejoin_groups},
        {L::State::starting, L::Event::port_changed, L::State::starting, L::bring_down | L::bring_up},
        {L::State::starting, L::Event::restart, L::State::starting, restart},
        {L::State::starting, L::Event::pkey_gone, L::State::waiting, L::bring_down | L::stop_queues},
        {L::State::running, L::Event::closed, L::State::closed, L::bring_down | L::stop_queues},
        {L::State::running, L::Event::joined, L::State::running, L::carrier_on},
        {L::State::running, L::Event::reregister, L::State::running, L::invalidate_paths | L::rejoin_groups},
        {L::State::running, L::Event::port_changed, L::State::starting, L::bring_down | L::bring_up},
        {L::State::running, L::Event::restart, L::State::starting, restart},
        {L::State::running, L::Event::pkey_gone, L::State::waiting, L::bring_down | L::stop_queues},
    };
    for (const auto state : states) {
        ASSERT_EQ(life_in(state).state(), state);
        for (const auto event : events) {
            L life = life_in(state);
            const auto step = life.on(event);
            Edge expected{state, event, state, L::none};
            for (const Edge& edge : edges)
                if (edge.from == state && edge.event == event)
                    expected = edge;
            EXPECT_EQ(step.next, expected.to) << L::name(state) << " on event " << static_cast<int>(event);
            EXPECT_EQ(int(step.actions), expected.actions) << L::name(state) << " on event " << static_cast<int>(event);
        }
    }
}

} // namespace
} // namespace ipoib
