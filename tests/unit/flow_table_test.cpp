// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <ipoib/flow_table.hpp>

#include <bit>

#include <gtest/gtest.h>

namespace ipoib {
namespace {

class FlowTableTest : public testing::Test {
protected:
    static constexpr unsigned long tick_ms = 10;
    // Flows from first to last send units each, in an interval, and the load is looked at.
    FlowTable::Plan interval(unsigned int first, unsigned int last, unsigned int units = FlowTable::busy_units)
    {
        now_ += FlowTable::interval_ms / tick_ms + 1;
        for (unsigned int flow = first; flow <= last; ++flow)
            for (unsigned int i = 0; i < units; ++i)
                (void)table_.count(flow, 0, now_);
        const FlowTable::Plan plan = table_.plan(open_, max_open_, may_move_, now_);
        for (unsigned int flow = 0; flow < FlowTable::max_flows; ++flow)
            if (plan.move.flows >> flow & 1)
                table_.set_queue(flow, plan.move.to);
        return plan;
    }
    // The plan after many such intervals.
    FlowTable::Plan intervals(unsigned int first, unsigned int last, unsigned int units = FlowTable::busy_units)
    {
        for (unsigned int i = 1; i < FlowTable::min_crowded_intervals; ++i)
            EXPECT_FALSE(interval(first, last, units).another);
        return interval(first, last, units);
    }
    unsigned int flows_of(unsigned int queue, unsigned int first, unsigned int last)
    {
        unsigned int count = 0;
        for (unsigned int flow = first; flow <= last; ++flow)
            count += table_.queue(flow) == queue;
        return count;
    }
    unsigned long now_ = 1000;
    unsigned int open_ = 1 << 2, max_open_ = 4;
    bool may_move_ = true;
    FlowTable table_{2, now_};
};

TEST_F(FlowTableTest, flows_begin_on_the_first_connection)
{
    EXPECT_EQ(flows_of(2, 0, FlowTable::max_flows - 1), FlowTable::max_flows);
    EXPECT_EQ(FlowTable::flow_of(64), 0U);
    EXPECT_EQ(FlowTable::flow_of(0xffffffff), 63U);
}

TEST_F(FlowTableTest, one_busy_flow_needs_one_connection)
{
    for (int i = 0; i < 10; ++i) {
        const FlowTable::Plan plan = interval(5, 5, 10000);
        EXPECT_FALSE(plan.another);
        EXPECT_EQ(plan.move.flows, 0U);
    }
}

TEST_F(FlowTableTest, flows_below_the_threshold_are_not_busy)
{
    EXPECT_FALSE(intervals(0, 63, FlowTable::busy_units - 1).another);
    EXPECT_TRUE(intervals(0, 1).another);
}

TEST_F(FlowTableTest, load_that_does_not_last_wants_no_connection)
{
    for (int round = 0; round < 5; ++round) {
        for (unsigned int i = 1; i < FlowTable::min_crowded_intervals; ++i)
            EXPECT_FALSE(interval(0, 15).another);
        now_ += 100;
        for (int i = 0; i < 4; ++i)
            (void)interval(2, 1);
    }
}

TEST_F(FlowTableTest, rare_plans_see_no_old_load)
{
    for (unsigned int i = 1; i < FlowTable::min_crowded_intervals; ++i)
        (void)interval(0, 15);
    for (int i = 0; i < 5; ++i) {
        now_ += 1000;
        EXPECT_FALSE(interval(2, 1).another);
    }
    // The load of many intervals is not that of one.
    for (int i = 0; i < 5; ++i) {
        now_ += 1000;
        EXPECT_FALSE(interval(0, 15, FlowTable::busy_units * 7).another);
    }
}

TEST_F(FlowTableTest, load_after_a_rare_plan_is_counted_from_one)
{
    for (unsigned int i = 1; i < FlowTable::min_crowded_intervals; ++i)
        EXPECT_FALSE(interval(0, 15).another);
    now_ += 1000;
    EXPECT_TRUE(intervals(0, 15, FlowTable::busy_units * 8).another);
}

TEST_F(FlowTableTest, bytes_count_as_packets_do)
{
    FlowTable::Plan plan;
    for (unsigned int i = 0; i < FlowTable::min_crowded_intervals; ++i) {
        (void)table_.count(0, 64 * 1024, now_);
        (void)table_.count(1, 64 * 1024, now_);
        plan = interval(2, 2, 1);
    }
    EXPECT_TRUE(plan.another);
}

TEST_F(FlowTableTest, there_are_no_more_connections_than_busy_flows_or_queues)
{
    open_ = 0b0101;
    may_move_ = false;
    EXPECT_FALSE(intervals(0, 1).another);
    EXPECT_TRUE(intervals(0, 2).another);
    open_ = 0b1111;
    EXPECT_FALSE(interval(0, 15).another);
}

TEST_F(FlowTableTest, busy_flows_are_distributed_evenly)
{
    for (open_ = 0b0100; const unsigned int further : {0U, 1U, 3U}) {
        open_ |= 1U << further;
        for (int i = 0; i < 40; ++i)
            (void)interval(10, 25);
    }
    for (const unsigned int queue : {0U, 1U, 2U, 3U})
        EXPECT_EQ(flows_of(queue, 10, 25), 4U) << queue;
    EXPECT_EQ(flows_of(2, 0, 9), 10U) << "idle flows";
}

TEST_F(FlowTableTest, empty_connection_gets_its_half_at_once)
{
    open_ = 0b0110;
    const FlowTable::Plan plan = interval(0, 15);
    EXPECT_EQ(plan.move.from, 2U);
    EXPECT_EQ(plan.move.to, 1U);
    EXPECT_EQ(std::popcount(plan.move.flows), 8);
    EXPECT_EQ(plan.move.flows >> 16, 0U);
}

TEST_F(FlowTableTest, connections_with_flows_get_more_after_a_while)
{
    open_ = 0b0110;
    (void)interval(0, 1);
    EXPECT_EQ(flows_of(1, 0, 1), 1U);
    // Four more on the first connection.
    EXPECT_EQ(interval(0, 5).move.flows, 0U);
    for (unsigned int ms = 0; ms < FlowTable::move_interval_ms; ms += FlowTable::interval_ms)
        (void)interval(0, 5);
    EXPECT_EQ(flows_of(1, 0, 5), 3U);
}

TEST_F(FlowTableTest, difference_of_one_moves_nothing)
{
    open_ = 0b0110;
    (void)interval(0, 2);
    EXPECT_EQ(flows_of(1, 0, 2), 1U);
    for (unsigned int ms = 0; ms < FlowTable::move_interval_ms; ms += FlowTable::interval_ms)
        EXPECT_EQ(interval(0, 2).move.flows, 0U);
    // These looks do not delay a move.
    EXPECT_NE(interval(0, 3).move.flows, 0U);
}

TEST_F(FlowTableTest, nothing_moves_during_a_move)
{
    open_ = 0b0110;
    may_move_ = false;
    EXPECT_EQ(interval(0, 15).move.flows, 0U);
    may_move_ = true;
    EXPECT_NE(interval(0, 15).move.flows, 0U);
}

TEST_F(FlowTableTest, flow_is_busy_for_four_intervals)
{
    open_ = 0b0110;
    may_move_ = false;
    (void)interval(0, 1);
    for (int i = 0; i < 3; ++i)
        (void)interval(2, 1);
    EXPECT_TRUE(interval(2, 1, 0).move.flows == 0);
    may_move_ = true;
    EXPECT_EQ(interval(2, 1).move.flows, 0U) << "both are idle";
}

TEST_F(FlowTableTest, idle_flow_is_reported_once)
{
    EXPECT_FALSE(table_.count(7, 100, now_));
    now_ += FlowTable::max_idle_ms / tick_ms + 1;
    EXPECT_FALSE(table_.count(7, 100, now_)) << "not longer than the limit";
    now_ += FlowTable::max_idle_ms / tick_ms + 2;
    EXPECT_TRUE(table_.count(7, 100, now_));
    EXPECT_FALSE(table_.count(7, 100, now_));
}

TEST_F(FlowTableTest, emptiest_queue_is_chosen_in_turns)
{
    open_ = 0b0110;
    (void)interval(0, 1);
    EXPECT_EQ(table_.emptiest(0b1110), 3U);
    EXPECT_EQ(table_.emptiest(0b1110), 1U);
    EXPECT_EQ(table_.emptiest(0b1110), 2U);
    EXPECT_EQ(table_.emptiest(0b1110), 3U);
    EXPECT_EQ(table_.emptiest(0b0100), 2U);
}

TEST_F(FlowTableTest, plan_is_due_once_in_an_interval)
{
    EXPECT_FALSE(table_.due(now_));
    now_ += FlowTable::interval_ms / tick_ms;
    EXPECT_FALSE(table_.due(now_));
    ++now_;
    EXPECT_TRUE(table_.due(now_));
    EXPECT_FALSE(table_.due(now_));
}

TEST_F(FlowTableTest, connection_without_flows_is_unused_after_half_a_minute)
{
    open_ = 0b0110;
    (void)interval(0, 1);
    ASSERT_EQ(flows_of(1, 0, 1), 1U);
    EXPECT_EQ(interval(3, 3, 1).unused, 0U);
    now_ += FlowTable::max_unused_s * 1000 / tick_ms;
    EXPECT_EQ(interval(3, 3, 1).unused, 0b0010U);
    now_ += kernel::seconds(FlowTable::max_unused_s);
    EXPECT_EQ(table_.plan(open_, max_open_, may_move_, now_).unused, 0b0010U);
    EXPECT_EQ(table_.plan(open_, max_open_, may_move_, now_ + 1).unused, 0b0110U);
}

} // namespace
} // namespace ipoib
