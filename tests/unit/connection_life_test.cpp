// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The three state machines of connections, every pair of state and event, against the tables in
// Documentation/state-machines.md.
#include <gtest/gtest.h>

#include <vector>

#include <ipoib/active_life.hpp>
#include <ipoib/active_release.hpp>
#include <ipoib/passive_life.hpp>

namespace ipoib {
namespace {

template <class Life>
struct Edge {
    typename Life::State from;
    typename Life::Event event;
    typename Life::State to;
    typename Life::Action action;
};

template <class Life>
Life after(const std::vector<typename Life::Event>& events)
{
    Life life;
    for (const auto event : events)
        life.on(event);
    return life;
}

// Each state, reached by the events beside it, with each event.
template <class Life>
void walk(const std::vector<std::pair<typename Life::State, std::vector<typename Life::Event>>>& ways,
          const std::vector<typename Life::Event>& events, const std::vector<Edge<Life>>& edges)
{
    for (const auto& [state, way] : ways) {
        ASSERT_EQ(after<Life>(way).state(), state);
        for (const auto event : events) {
            Edge<Life> expected{state, event, state, Life::Action::none};
            for (const auto& edge : edges)
                if (edge.from == state && edge.event == event)
                    expected = edge;
            Life life = after<Life>(way);
            const auto step = life.on(event);
            EXPECT_EQ(step.next, expected.to)
                << "state " << static_cast<int>(state) << " on event " << static_cast<int>(event);
            EXPECT_EQ(step.action, expected.action)
                << "state " << static_cast<int>(state) << " on event " << static_cast<int>(event);
            EXPECT_EQ(life.state(), step.next);
        }
    }
}

using A = ActiveLife;
using S = A::State;
using E = A::Event;

TEST(ActiveLife, edges_match_the_table)
{
    const std::vector<std::pair<S, std::vector<E>>> ways = {
        {S::idle, {}},
        {S::wanted, {E::needed}},
        {S::requested, {E::needed, E::requested}},
        {S::established, {E::needed, E::requested, E::accepted}},
        {S::recovering, {E::needed, E::requested, E::accepted, E::failed}},
        {S::refused, {E::needed, E::requested, E::failed}},
        {S::closing, {E::abandoned}},
        {S::gone, {E::abandoned, E::released}},
    };
    std::vector<Edge<A>> edges = {
        {S::idle, E::needed, S::wanted, A::Action::connect},
        {S::wanted, E::requested, S::requested, A::Action::none},
        {S::wanted, E::failed, S::refused, A::Action::fall_back},
        {S::requested, E::accepted, S::established, A::Action::send},
        {S::requested, E::failed, S::refused, A::Action::fall_back},
        {S::requested, E::stale, S::recovering, A::Action::recover},
        {S::established, E::failed, S::recovering, A::Action::recover},
        {S::established, E::stale, S::recovering, A::Action::recover},
        {S::recovering, E::released, S::idle, A::Action::resume},
        {S::refused, E::released, S::refused, A::Action::back_off},
        {S::refused, E::retry_due, S::idle, A::Action::resume},
        {S::closing, E::released, S::gone, A::Action::destroy},
    };
    for (const auto state : {S::idle, S::wanted, S::requested, S::established, S::recovering, S::refused})
        edges.push_back({state, E::abandoned, S::closing, A::Action::close});
    walk<A>(ways, {E::needed, E::requested, E::accepted, E::failed, E::stale, E::released, E::retry_due, E::abandoned},
            edges);
}

using R = ActiveRelease;
using RS = R::State;
using RE = R::Event;

TEST(ActiveRelease, edges_match_the_table)
{
    const std::vector<std::pair<RS, std::vector<RE>>> ways = {
        {RS::none, {}},
        {RS::unneeded, {RE::abandoned}},
        {RS::broken, {RE::failed}},
        {RS::completing, {RE::abandoned, RE::grace_period}},
        {RS::flushing, {RE::failed, RE::grace_period, RE::timed_out}},
        {RS::destroying, {RE::abandoned, RE::grace_period, RE::completed, RE::completed}},
    };
    const std::vector<Edge<R>> edges = {
        {RS::none, RE::abandoned, RS::unneeded, R::Action::none},
        {RS::none, RE::failed, RS::broken, R::Action::none},
        {RS::unneeded, RE::grace_period, RS::completing, R::Action::none},
        {RS::broken, RE::grace_period, RS::completing, R::Action::none},
        {RS::completing, RE::completed, RS::flushing, R::Action::flush},
        {RS::completing, RE::timed_out, RS::flushing, R::Action::flush},
        {RS::flushing, RE::completed, RS::destroying, R::Action::destroy},
        {RS::flushing, RE::timed_out, RS::destroying, R::Action::destroy},
        {RS::destroying, RE::destroyed, RS::none, R::Action::none},
    };
    walk<R>(ways, {RE::abandoned, RE::failed, RE::grace_period, RE::completed, RE::timed_out, RE::destroyed}, edges);
}

TEST(ActiveRelease, sends_of_broken_connections_are_not_awaited)
{
    EXPECT_EQ(after<R>({RE::abandoned}).on(RE::grace_period).limit_ms, R::max_completing_ms);
    EXPECT_EQ(after<R>({RE::failed}).on(RE::grace_period).limit_ms, 0U);
    // A connection that broke before it was abandoned is still broken.
    EXPECT_EQ(after<R>({RE::failed, RE::abandoned}).on(RE::grace_period).limit_ms, 0U);
    EXPECT_EQ(after<R>({RE::failed, RE::grace_period}).on(RE::timed_out).limit_ms, flush_limit_s * 1000);
}

using P = PassiveLife;
using PS = P::State;
using PE = P::Event;

TEST(PassiveLife, edges_match_the_table)
{
    const std::vector<std::pair<PS, std::vector<PE>>> ways = {
        {PS::accepting, {}},
        {PS::established, {PE::replied}},
        {PS::flushing, {PE::replied, PE::ended}},
        {PS::draining, {PE::replied, PE::ended, PE::flushed}},
        {PS::done, {PE::replied, PE::ended, PE::timed_out}},
    };
    const std::vector<Edge<P>> edges = {
        {PS::accepting, PE::replied, PS::established, P::Action::none},
        {PS::accepting, PE::ended, PS::flushing, P::Action::flush},
        {PS::accepting, PE::flushed, PS::draining, P::Action::drain},
        {PS::established, PE::ended, PS::flushing, P::Action::flush},
        {PS::established, PE::flushed, PS::draining, P::Action::drain},
        {PS::flushing, PE::flushed, PS::draining, P::Action::drain},
        {PS::flushing, PE::timed_out, PS::done, P::Action::destroy},
        {PS::draining, PE::drained, PS::done, P::Action::destroy},
        {PS::draining, PE::timed_out, PS::done, P::Action::destroy},
    };
    walk<P>(ways, {PE::replied, PE::ended, PE::flushed, PE::drained, PE::timed_out}, edges);
}

} // namespace
} // namespace ipoib
