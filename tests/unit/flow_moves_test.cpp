// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Moves of flows from one connection of a peer to another, on scripted fakes.
#include "flow_balancer_test.hpp"

namespace ipoib {
namespace {

TEST_F(FlowBalancerTest, packets_of_a_moving_flow_wait_until_the_peer_has_the_earlier_ones)
{
    const unsigned int flow = begin_move();
    const std::size_t before = world.sent.size();
    world.transmit(packet(flow, 101));
    world.transmit(packet(flow, 102));
    // The other flow does not wait.
    world.transmit(packet(1 - flow, 100));
    EXPECT_EQ(world.sent.size(), before + 1);
    EXPECT_EQ(last_size(), 100U);
    run_for(5);
    ASSERT_EQ(second_->outstanding.size(), 2U);
    EXPECT_EQ(second_->outstanding[0].bytes.size(), 4U + 101);
    EXPECT_EQ(second_->outstanding[1].bytes.size(), 4U + 102);
    world.transmit(packet(flow, 103));
    EXPECT_EQ(second_->outstanding.size(), 3U);
    complete_all();
}

// netdev_xmit_more() is the stack's answer for the packets that it sends; a work item sends these.
TEST_F(FlowBalancerTest, end_of_a_move_posts_its_packets_at_once_and_reports_the_last)
{
    const unsigned int flow = begin_move(), to = world.moves[0].to;
    for (const std::size_t bytes : {101, 102, 103})
        world.transmit(packet(flow, bytes));
    const unsigned int before = world.doorbells;
    world.more = true;
    run_for(5);
    world.more = false;
    ASSERT_EQ(second_->outstanding.size(), 3U);
    EXPECT_FALSE(world.dev().transmit_queues[to].more);
    EXPECT_EQ(world.doorbells, before + 1);
    complete_all();
}

TEST_F(FlowBalancerTest, packets_of_a_moving_flow_wait_for_sends_of_the_former_connection)
{
    const unsigned int flow = begin_move();
    const unsigned int from = world.moves[0].from;
    // The stack had queued it before.
    world.transmit_on(from, packet(flow, 100));
    EXPECT_EQ(last_size(), 100U);
    EXPECT_EQ(first_->outstanding.size(), 1U);
    world.transmit(packet(flow, 101));
    run_for(20);
    EXPECT_TRUE(second_->outstanding.empty());
    world.complete_messages(*first_, 1);
    run_for(5);
    EXPECT_EQ(second_->outstanding.size(), 1U);
    complete_all();
}

// A packet is its queue's once it was given to it, and a dropped one is freed.
TEST_F(FlowBalancerTest, packet_of_a_moving_flow_is_dropped_by_the_former_queue)
{
    const unsigned int flow = begin_move();
    world.fail_mapping = 1;
    world.transmit_on(world.moves[0].from, packet(flow, 100));
    EXPECT_TRUE(first_->outstanding.empty());
    world.transmit(packet(flow, 101));
    run_for(20);
    ASSERT_EQ(second_->outstanding.size(), 1U);
    EXPECT_EQ(second_->outstanding[0].bytes.size(), 4U + 101);
    complete_all();
}

TEST_F(FlowBalancerTest, packets_of_a_moving_flow_wait_for_the_backlog_of_the_former_queue)
{
    backlog(300);
    const unsigned int flow = begin_move(), from = world.moves[0].from;
    // The qdisc sends what it had, and gets more for other flows.
    world.transmit(packet(flow, 101));
    for (const std::size_t bytes : {196, 90}) {
        run_for(10);
        EXPECT_TRUE(second_->outstanding.empty()) << "there may be earlier ones";
        world.transmit_on(from, packet(1 - flow, bytes));
        world.complete_messages(*first_, 1);
    }
    run_for(10);
    EXPECT_TRUE(second_->outstanding.empty()) << "294 of 300 bytes were sent";
    world.transmit_on(from, packet(1 - flow, 2));
    world.complete_messages(*first_, 1);
    run_for(1);
    EXPECT_TRUE(second_->outstanding.empty()) << "the peer is given time to receive them";
    run_for(6);
    EXPECT_EQ(second_->outstanding.size(), 1U);
    complete_all();
}

TEST_F(FlowBalancerTest, packets_of_a_moving_flow_wait_until_the_former_queue_was_empty_once)
{
    backlog(300);
    const unsigned int flow = begin_move();
    world.transmit(packet(flow, 101));
    run_for(20);
    EXPECT_TRUE(second_->outstanding.empty());
    backlog(0);
    run_for(kernel::milliseconds(FlowBalancer::settle_ms / 4));
    backlog(300);
    run_for(6);
    EXPECT_EQ(second_->outstanding.size(), 1U);
    complete_all();
}

TEST_F(FlowBalancerTest, move_waits_half_a_second_for_a_backlog)
{
    backlog(300);
    const unsigned int flow = begin_move();
    world.transmit(packet(flow, 101));
    run_for(45);
    EXPECT_TRUE(second_->outstanding.empty());
    run_for(10);
    EXPECT_EQ(second_->outstanding.size(), 1U);
    complete_all();
}

// Each look walks all connections under the lock that senders need.
TEST_F(FlowBalancerTest, move_is_looked_at_four_times_while_it_settles)
{
    backlog(300);
    const unsigned int flow = begin_move();
    world.transmit(packet(flow, 101));
    unsigned int unlocks = 0, looks = 0;
    world.softirqs = [&] { ++unlocks; };
    for (unsigned int tick = 0; tick < 40; ++tick) {
        const unsigned int before = unlocks;
        run_for(1);
        looks += unlocks != before;
    }
    world.softirqs = nullptr;
    EXPECT_EQ(looks, 40 / kernel::milliseconds(FlowBalancer::settle_ms / 4));
    backlog(0);
    run_for(8);
    EXPECT_EQ(second_->outstanding.size(), 1U);
    complete_all();
}

TEST_F(FlowBalancerTest, move_waits_for_sends_of_a_slow_connection)
{
    const unsigned int flow = begin_move();
    world.transmit_on(world.moves[0].from, packet(flow, 100));
    world.transmit(packet(flow, 101));
    run_for(100);
    EXPECT_TRUE(second_->outstanding.empty()) << "it would overtake the earlier one";
    world.transmit(packet(flow, 102));
    world.complete_messages(*first_, 1);
    run_for(5);
    EXPECT_EQ(second_->outstanding.size(), 2U) << "as few as these are kept as long as it takes";
    complete_all();
}

TEST_F(FlowBalancerTest, stack_keeps_what_exceeds_the_limit)
{
    const unsigned int flow = begin_move(), to = world.moves[0].to;
    for (unsigned int i = 0; i < FlowBalancer::max_held; ++i) {
        EXPECT_FALSE(world.dev().transmit_queues[to].stopped);
        world.transmit(packet(flow));
    }
    EXPECT_TRUE(world.dev().transmit_queues[to].stopped);
    run_for(5);
    EXPECT_EQ(second_->outstanding.size(), std::size_t{FlowBalancer::max_held});
    EXPECT_FALSE(world.dev().transmit_queues[to].stopped);
    complete_all();
    EXPECT_EQ(statistics().tx_dropped, 0U);
}

// The peer does not acknowledge what it was sent over the former connection. Others' packets are on the new queue, too.
TEST_F(FlowBalancerTest, queue_is_held_for_half_a_second_at_most)
{
    const unsigned int flow = begin_move(), to = world.moves[0].to;
    world.transmit_on(world.moves[0].from, packet(flow, 100));
    for (unsigned int i = 0; i < FlowBalancer::max_held; ++i)
        world.transmit(packet(flow, 101));
    run_for(45);
    EXPECT_TRUE(world.dev().transmit_queues[to].stopped);
    run_for(10);
    EXPECT_FALSE(world.dev().transmit_queues[to].stopped);
    const std::uint64_t dropped = statistics().tx_dropped;
    world.transmit(packet(flow, 102));
    EXPECT_FALSE(world.dev().transmit_queues[to].stopped);
    EXPECT_EQ(statistics().tx_dropped, dropped + 1);
    EXPECT_TRUE(second_->outstanding.empty());
    world.complete_messages(*first_, 1);
    run_for(5);
    EXPECT_EQ(second_->outstanding.size(), std::size_t{FlowBalancer::max_held});
    complete_all();
}

// On another processor wake_stack() decided to wake the queue before it was held.
TEST_F(FlowBalancerTest, held_queue_that_is_woken_is_stopped_again)
{
    const unsigned int flow = begin_move(), to = world.moves[0].to;
    for (unsigned int i = 0; i < FlowBalancer::max_held; ++i)
        world.transmit(packet(flow));
    for (unsigned int i = 0; i < 2 * FlowBalancer::max_held; ++i) {
        world.dev().transmit_queues[to].stopped = false;
        world.transmit(packet(flow));
        EXPECT_TRUE(world.dev().transmit_queues[to].stopped);
    }
    EXPECT_EQ(statistics().tx_dropped, std::uint64_t{FlowBalancer::max_held});
    run_for(5);
    EXPECT_EQ(second_->outstanding.size(), std::size_t{2 * FlowBalancer::max_held}) << "the pool has space for them";
    complete_all();
}

// place() of another processor stores a queue just after the move began.
TEST_F(FlowBalancerTest, flow_that_was_placed_while_it_is_moved_follows_the_move)
{
    const unsigned int flow = begin_move();
    {
        PathTable::Guard guard(interface().paths);
        interface().connections.active.list().front()->flows->table.set_queue(flow, world.moves[0].from);
    }
    for (int i = 0; i < 20; ++i) {
        world.transmit(packet(flow, 101));
        world.complete_messages(*first_, first_->outstanding.size());
        run_for(1);
    }
    EXPECT_FALSE(second_->outstanding.empty());
    complete_all();
}

// On another processor wake_stack() sees the queue stopped, and then whether it is held.
TEST_F(FlowBalancerTest, queue_is_held_before_it_is_stopped)
{
    const unsigned int flow = begin_move(), to = world.moves[0].to;
    unsigned int barriers = 0;
    std::function<void()> at_barrier = [&] {
        ++barriers;
        EXPECT_FALSE(world.dev().transmit_queues[to].stopped);
        world.meanwhile = at_barrier;
    };
    world.meanwhile = at_barrier;
    unsigned int usual = 0;
    for (unsigned int i = 1; i <= FlowBalancer::max_held; ++i) {
        usual = std::exchange(barriers, 0);
        world.transmit(packet(flow));
    }
    world.meanwhile = nullptr;
    EXPECT_EQ(barriers, usual + 1) << "before the queue is stopped";
    EXPECT_TRUE(world.dev().transmit_queues[to].stopped);
    run_for(5);
    complete_all();
}

} // namespace
} // namespace ipoib
