// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The two state machines of a connection, every pair of state and event, against the tables in
// Documentation/state-machines.md.
#include <gtest/gtest.h>

#include <vector>

#include <ipoib/active_life.hpp>
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
        ASSERT_EQ(after<Life>(way).state(), state) << Life::name(state);
        for (const auto event : events) {
            Edge<Life> expected{state, event, state, Life::Action::none};
            for (const auto& edge : edges)
                if (edge.from == state && edge.event == event)
                    expected = edge;
            Life life = after<Life>(way);
            const auto step = life.on(event);
            EXPECT_EQ(step.next, expected.to) << Life::name(state) << " on event " << static_cast<int>(event);
            EXPECT_EQ(step.action, expected.action) << Life::name(state) << " on event " << static_cast<int>(event);
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
        {S::asked, {E::needed, E::asked}},
        {S::established, {E::needed, E::asked, E::accepted}},
        {S::recovering, {E::needed, E::asked, E::accepted, E::failed}},
        {S::refused, {E::needed, E::asked, E::failed}},
        {S::closing, {E::abandoned}},
        {S::gone, {E::abandoned, E::released}},
    };
    std::vector<Edge<A>> edges = {
        {S::idle, E::needed, S::wanted, A::Action::ask},
        {S::wanted, E::asked, S::asked, A::Action::none},
        {S::wanted, E::failed, S::refused, A::Action::fall_back},
        {S::asked, E::accepted, S::established, A::Action::send},
        {S::asked, E::failed, S::refused, A::Action::fall_back},
        {S::asked, E::stale, S::recovering, A::Action::recover},
        {S::established, E::failed, S::recovering, A::Action::recover},
        {S::established, E::stale, S::recovering, A::Action::recover},
        {S::recovering, E::released, S::idle, A::Action::resume},
        {S::refused, E::released, S::refused, A::Action::rest},
        {S::refused, E::rested, S::idle, A::Action::resume},
        {S::closing, E::released, S::gone, A::Action::destroy},
    };
    for (const auto state : {S::idle, S::wanted, S::asked, S::established, S::recovering, S::refused})
        edges.push_back({state, E::abandoned, S::closing, A::Action::close});
    walk<A>(ways, {E::needed, E::asked, E::accepted, E::failed, E::stale, E::released, E::rested, E::abandoned}, edges);
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
