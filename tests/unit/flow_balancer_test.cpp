// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Several connections to one peer, on scripted fakes.
#include "connected_test.hpp"

#include <bit>

#include <shim/cm.h>

namespace ipoib {
namespace {

class FlowBalancerTest : public WithQueues<ConnectedTest> {
protected:
    static constexpr std::size_t large = 65000;
    void SetUp() override
    {
        WithQueues::SetUp();
        first_ = connect(capable(1));
    }
    sk_buff* packet(unsigned int flow, std::size_t payload = 60)
    {
        sk_buff* skb = world.packet(capable(1), 0x0800, payload);
        skb->hash = flow;
        return skb;
    }
    void complete_all()
    {
        // Time passes at each, and queue pairs end.
        for (std::size_t i = 1; i < world.qps.size(); ++i)
            world.complete_messages(*world.qps[i], world.qps[i]->outstanding.size());
    }
    void backlog(unsigned int bytes)
    {
        for (auto& queue : world.dev().transmit_queues)
            queue.backlog = bytes;
    }
    // An interval in which flows up to count are busy.
    void interval(unsigned int count)
    {
        for (unsigned int flow = 0; flow < count; ++flow)
            world.transmit(packet(flow, large));
        complete_all();
        run_for(21);
        complete_all();
    }
    void intervals(unsigned int number, unsigned int count)
    {
        for (unsigned int i = 0; i < number; ++i)
            interval(count);
    }
    // Returns the REQ for a further connection.
    ib_cm_id* further_request(unsigned int flows)
    {
        intervals(FlowTable::min_crowded_intervals + 1, flows);
        return world.take_request();
    }
    // Makes a second connection for two flows, and begins to move one to it; returns that flow.
    unsigned int begin_move()
    {
        id_ = further_request(2);
        EXPECT_NE(id_, nullptr);
        world.reply(id_);
        second_ = world.qps.back();
        world.moves.clear();
        for (int i = 0; i < 30 && world.moves.empty(); ++i) {
            complete_all();
            world.transmit(packet(0, large));
            world.transmit(packet(1, large));
            world.advance(1);
        }
        EXPECT_EQ(world.moves.size(), 1U);
        world.complete_messages(*first_, first_->outstanding.size());
        return static_cast<unsigned int>(std::countr_zero(world.moves.at(0).flows));
    }
    std::size_t last_size() { return world.sent.back().bytes.size() - 4; }

    ib_qp *first_ = nullptr, *second_ = nullptr;
    ib_cm_id* id_ = nullptr;
};

TEST_F(FlowBalancerTest, one_busy_flow_uses_one_connection)
{
    intervals(10, 1);
    EXPECT_EQ(world.take_request(), nullptr);
    EXPECT_EQ(connections(), 1U);
}

TEST_F(FlowBalancerTest, second_busy_flow_gets_a_connection_of_its_own)
{
    ib_cm_id* const id = further_request(2);
    ASSERT_NE(id, nullptr);
    EXPECT_EQ(id->service_id, 0x1000000000000100U);
    world.reply(id);
    ib_qp* const second = world.qps.back();
    EXPECT_NE(second->send_cq, first_->send_cq);
    intervals(5, 2);
    world.transmit(packet(0));
    world.transmit(packet(1));
    EXPECT_EQ(first_->outstanding.size(), 1U);
    EXPECT_EQ(second->outstanding.size(), 1U);
    complete_all();
    EXPECT_EQ(world.take_request(), nullptr) << "two flows need two";
    EXPECT_EQ(statistics().tx_dropped, 0U);
}

TEST_F(FlowBalancerTest, one_queue_needs_no_flow_table)
{
    const auto allocations = [this](unsigned int queues) {
        EXPECT_EQ(set_channels(queues, 1), 0);
        const std::size_t before = world.memory.size();
        connect(capable(1));
        return world.memory.size() - before;
    };
    EXPECT_EQ(allocations(1) + 1, allocations(4));
}

TEST_F(FlowBalancerTest, many_flows_use_all_queues_evenly)
{
    for (int i = 0; i < 60; ++i) {
        interval(16);
        if (ib_cm_id* const id = world.take_request())
            world.reply(id);
    }
    EXPECT_EQ(connections(), 4U);
    std::set<ib_cq*> queues;
    for (unsigned int flow = 0; flow < 16; ++flow)
        world.transmit(packet(flow));
    for (std::size_t i = 1; i < world.qps.size(); ++i) {
        EXPECT_EQ(world.qps[i]->outstanding.size(), 4U);
        queues.insert(world.qps[i]->send_cq);
    }
    EXPECT_EQ(queues.size(), 4U);
    complete_all();
}

TEST_F(FlowBalancerTest, one_queue_has_one_connection)
{
    ASSERT_EQ(set_channels(1, 1), 0);
    first_ = connect(capable(1));
    intervals(10, 16);
    EXPECT_EQ(world.take_request(), nullptr);
}

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
    run_for(1);
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

TEST_F(FlowBalancerTest, request_to_a_former_lid_ends_and_is_repeated)
{
    ASSERT_NE(further_request(2), nullptr);
    ASSERT_EQ(connections(), 2U);
    reregister();
    // ARP has the path queried.
    world.transmit(world.packet(capable(1), 0x0806));
    world.answer_path(0, 9);
    run_for(30);
    EXPECT_EQ(connections(), 1U);
    ib_cm_id* const id = further_request(2);
    ASSERT_NE(id, nullptr);
    EXPECT_EQ(id->dlid, 9U);
    complete_all();
}

TEST_F(FlowBalancerTest, refused_connection_is_not_requested_again_for_a_minute)
{
    ib_cm_id* const id = further_request(2);
    ASSERT_NE(id, nullptr);
    world.message(id, SHIM_IB_CM_REJ_RECEIVED, SHIM_CM_REJ_NO_RESOURCES);
    intervals(10, 2);
    EXPECT_EQ(world.take_request(), nullptr);
    EXPECT_EQ(connections(), 1U);
    world.transmit(packet(1));
    EXPECT_EQ(first_->outstanding.size(), 1U) << "the first connection serves";
    complete_all();
    run_for(6000);
    EXPECT_NE(further_request(2), nullptr);
}

TEST_F(FlowBalancerTest, peer_that_ends_a_further_connection_is_not_asked_again_for_a_minute)
{
    begin_move();
    run_for(10);
    world.message(id_, SHIM_IB_CM_DREQ_RECEIVED);
    run_for(100);
    EXPECT_EQ(connections(), 1U);
    intervals(20, 2);
    EXPECT_EQ(world.take_request(), nullptr);
    run_for(6000);
    EXPECT_NE(further_request(2), nullptr);
}

// This driver without the feature took a further connection for a replacement of the first.
TEST_F(FlowBalancerTest, peer_that_allows_one_connection_keeps_it)
{
    ib_cm_id* const id = further_request(2);
    ASSERT_NE(id, nullptr);
    world.reply(id);
    shim_qp_to_error(first_);
    world.transmit(packet(0));
    complete_all();
    world.transmit(packet(0));
    run_for(100);
    ib_cm_id* const again = world.take_request();
    ASSERT_NE(again, nullptr);
    world.reply(again);
    complete_all();
    intervals(20, 2);
    EXPECT_EQ(world.take_request(), nullptr);
    EXPECT_EQ(connections(), 1U);
}

TEST_F(FlowBalancerTest, waiting_packets_outlive_the_first_connection)
{
    const unsigned int flow = begin_move();
    world.transmit_on(world.moves[0].from, packet(flow, 100));
    world.transmit(packet(flow, 101));
    world.complete_messages(*first_, 1, 5);
    EXPECT_EQ(last_size(), 100U);
    run_for(100);
    ib_cm_id* const again = world.take_request();
    ASSERT_NE(again, nullptr);
    world.reply(again);
    EXPECT_EQ(last_size(), 101U);
    complete_all();
    EXPECT_EQ(statistics().tx_dropped, 0U);
}

TEST_F(FlowBalancerTest, flows_return_to_the_first_connection_when_theirs_ends)
{
    const unsigned int flow = begin_move();
    world.transmit(packet(flow, 101));
    world.message(id_, SHIM_IB_CM_DREQ_RECEIVED);
    world.run_work();
    ASSERT_EQ(first_->outstanding.size(), 1U);
    EXPECT_EQ(last_size(), 101U);
    world.transmit(packet(flow, 102));
    EXPECT_EQ(first_->outstanding.size(), 2U);
    complete_all();
    run_for(100);
    EXPECT_EQ(connections(), 1U);
    EXPECT_EQ(statistics().tx_dropped, 0U);
}

TEST_F(FlowBalancerTest, all_end_with_the_first_connection)
{
    const unsigned int flow = begin_move();
    shim_qp_to_error(first_);
    world.transmit(packet(1 - flow));
    world.complete_messages(*first_, first_->outstanding.size(), 5);
    run_for(100);
    EXPECT_EQ(connections(), 0U);
    EXPECT_FALSE(shows("active  fe80:0000:0000:0000:0000:0000:0000:0001 qpn 0x000100 state established"));
}

TEST_F(FlowBalancerTest, unused_connection_is_ended)
{
    begin_move();
    run_for(10);
    EXPECT_EQ(connections(), 2U);
    // One flow remains in use.
    for (int i = 0; i < 32; ++i) {
        world.transmit(packet(first_->outstanding.empty() ? 0 : 1));
        complete_all();
        run_for(100);
    }
    run_for(100);
    EXPECT_EQ(connections(), 1U);
}

TEST_F(FlowBalancerTest, interface_is_closed_during_a_move)
{
    const unsigned int flow = begin_move();
    world.transmit(packet(flow));
    world.rtnl = true;
    ipoib_ndo_stop(&world.dev());
    world.rtnl = false;
    EXPECT_EQ(connections(), 0U);
    EXPECT_TRUE(world.skbs.empty());
    open();
}

TEST_F(FlowBalancerTest, failed_queue_leaves_the_flows_on_the_first_connection)
{
    world.refused = "cq_create";
    intervals(10, 2);
    EXPECT_EQ(world.take_request(), nullptr);
    world.transmit(packet(1));
    EXPECT_EQ(first_->outstanding.size(), 1U);
    complete_all();
    world.refused.clear();
}

} // namespace
} // namespace ipoib
