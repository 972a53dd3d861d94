// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Several connections to one peer, on scripted fakes.
#include "flow_balancer_test.hpp"

namespace ipoib {
namespace {

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

// For more than a second another flow is busy on the first connection, and flow 2, which sent a packet, is not.
class IdleFlowTest : public FlowBalancerTest {
protected:
    void let_flow_be_idle(bool peer_acknowledges)
    {
        const unsigned int busy = 1 - begin_move();
        run_for(10);
        complete_all();
        world.transmit(packet(2));
        for (int i = 0; i < 6; ++i) {
            world.transmit(packet(busy, large));
            run_for(21);
            if (peer_acknowledges)
                complete_all();
        }
        ASSERT_TRUE(second_->outstanding.empty());
        world.transmit(packet(2));
    }
};

TEST_F(IdleFlowTest, changes_to_the_connection_with_the_fewest_busy_flows)
{
    let_flow_be_idle(true);
    EXPECT_EQ(second_->outstanding.size(), 1U);
    complete_all();
}

TEST_F(IdleFlowTest, keeps_its_connection_until_the_peer_has_its_last_packet)
{
    let_flow_be_idle(false);
    EXPECT_TRUE(second_->outstanding.empty());
    complete_all();
}

TEST_F(FlowBalancerTest, one_queue_has_one_connection)
{
    ASSERT_EQ(set_channels(1, 1), 0);
    first_ = connect(capable(1));
    intervals(10, 16);
    EXPECT_EQ(world.take_request(), nullptr);
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
