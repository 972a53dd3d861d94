// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Several transmit queues for connections, on scripted fakes.
#include "connected_test.hpp"

#include <shim/queue_stats.h>

namespace ipoib {
namespace {

class TransmitQueuesTest : public WithQueues<ConnectedTest> {
protected:
    std::vector<ib_qp*> connect_to(unsigned int peers)
    {
        std::vector<ib_qp*> qps;
        for (unsigned int i = 1; i <= peers; ++i)
            qps.push_back(connect(capable(static_cast<std::uint8_t>(i))));
        return qps;
    }
    static std::set<ib_cq*> queues_of(const std::vector<ib_qp*>& qps)
    {
        std::set<ib_cq*> queues;
        for (const ib_qp* qp : qps)
            queues.insert(qp->send_cq);
        return queues;
    }
    std::uint64_t packets_of(unsigned int queue) { return interface().tx[queue].packets.value(); }
};

TEST_F(TransmitQueuesTest, there_are_several_in_connected_mode_by_default)
{
    EXPECT_EQ(world.dev().tx_queues, 4U);
    EXPECT_EQ(channels().transmits, 4U);
    EXPECT_EQ(channels().max_transmits, 8U);
    set_mode("datagram");
    EXPECT_EQ(world.dev().tx_queues, 1U);
    EXPECT_EQ(channels().transmits, 1U);
    set_mode("connected");
    EXPECT_EQ(world.dev().tx_queues, 4U);
}

TEST_F(TransmitQueuesTest, users_limit_of_bytes_is_kept_when_queues_are_created_again)
{
    auto& queues = world.dev().transmit_queues;
    for (const unsigned int queue : {0U, 1U, SHIM_MAX_TX_QUEUES - 1U}) {
        EXPECT_EQ(queues[queue].min_limit, TxQueue::prompt_bytes);
        queues[queue].min_limit = queue + 1;
    }
    connect_to(4);
    EXPECT_EQ(queues[1].min_limit, 2U);
    world.rtnl = true;
    EXPECT_TRUE(interface().settings.set_ring_sizes({256, 256}).ok());
    world.rtnl = false;
    EXPECT_EQ(queues[0].min_limit, 1U);
}

TEST_F(TransmitQueuesTest, connections_are_spread_over_queues_with_vectors_of_their_own)
{
    const auto qps = connect_to(8);
    const auto queues = queues_of({qps.begin(), qps.begin() + 4});
    EXPECT_EQ(queues.size(), 4U);
    EXPECT_EQ(queues_of(qps), queues);
    std::set<unsigned int> vectors;
    for (const ib_cq* cq : queues)
        vectors.insert(cq->vector);
    EXPECT_EQ(vectors.size(), 4U);
}

TEST_F(TransmitQueuesTest, connection_is_assigned_to_the_queue_with_the_fewest)
{
    connect_to(2);
    ib_cm_id* const id = ask(capable(3));
    world.reply(id);
    ib_qp* const qp = world.qps.back();
    const ib_cq* const freed = qp->send_cq;
    world.complete_messages(*qp, 1);
    connect(capable(4));
    // The peer ends its connection, and nothing is sent to it any more.
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    run_for(300);
    ASSERT_EQ(connections(), 3U);
    EXPECT_EQ(connect(capable(5))->send_cq, freed);
}

TEST_F(TransmitQueuesTest, packets_to_a_peer_go_by_the_queue_of_its_connection)
{
    const auto qps = connect_to(4);
    for (unsigned int i = 0; i < 4; ++i) {
        const std::uint64_t before = packets_of(i);
        for (int count = 0; count < 10; ++count)
            world.transmit(world.packet(capable(static_cast<std::uint8_t>(i + 1))));
        EXPECT_EQ(qps[i]->outstanding.size(), 10U);
        EXPECT_EQ(world.dev().transmit_queues[i].queued_bytes, 10 * 64);
        world.complete_messages(*qps[i], 10);
        EXPECT_EQ(packets_of(i), before + 10);
        EXPECT_EQ(world.dev().transmit_queues[i].queued_bytes, 0);
    }
    EXPECT_EQ(statistics().tx_packets, 44U);
    EXPECT_TRUE(shows("on 3"));
}

TEST_F(TransmitQueuesTest, statistics_of_queues_can_be_summed_up)
{
    connect_to(4);
    const auto stats_of = [&](shim_queue_direction direction, unsigned int first, unsigned int end) {
        shim_queue_stats stats;
        EXPECT_TRUE(ipoib_queue_stats(&world.dev(), direction, first, end, &stats));
        return stats;
    };
    while (!world.dev().transmit_queues[1].stopped)
        world.transmit(world.packet(capable(2)));
    world.complete_messages(*world.qps[2], world.qps[2]->outstanding.size());
    const shim_queue_stats second = stats_of(SHIM_QUEUE_TX, 1, 2);
    EXPECT_EQ(second.packets, packets_of(1));
    EXPECT_EQ(second.bytes, interface().tx[1].bytes.value());
    EXPECT_EQ(second.stops, 1U);
    EXPECT_EQ(stats_of(SHIM_QUEUE_TX, 0, SHIM_MAX_TX_QUEUES).packets, statistics().tx_packets);
    EXPECT_EQ(stats_of(SHIM_QUEUE_RX, 0, SHIM_MAX_RX_QUEUES).packets, statistics().rx_packets);
    EXPECT_EQ(stats_of(SHIM_QUEUE_TX, 4, SHIM_MAX_TX_QUEUES).packets, 0U);
}

TEST_F(TransmitQueuesTest, datagrams_multicast_and_arp_go_by_the_first_queue)
{
    connect_to(2);
    for (const std::uint16_t type : {0x0800, 0x0806}) {
        sk_buff* skb = world.packet(HwAddr::from(world.dev().broadcast.data()), type);
        EXPECT_EQ(ipoib_ndo_select_queue(skb, &world.dev()), 0);
        world.transmit(skb);
        skb = world.packet(capable(2), 0x0806);
        EXPECT_EQ(ipoib_ndo_select_queue(skb, &world.dev()), 0);
        world.transmit(skb);
        skb = world.packet(peer(7));
        EXPECT_EQ(ipoib_ndo_select_queue(skb, &world.dev()), 0);
        world.transmit(skb);
    }
    sk_buff* const shortest = world.packet(capable(2), 0x0800, 0);
    shortest->bytes.resize(shortest->bytes.size() - 1);
    EXPECT_EQ(ipoib_ndo_select_queue(shortest, &world.dev()), 0);
    world.transmit(shortest);
    world.answer_path();
    world.complete_sends(world.qp().outstanding.size());
}

TEST_F(TransmitQueuesTest, packet_on_another_queue_is_transmitted_on_the_right_one)
{
    const auto qps = connect_to(2);
    meet(peer(7));
    const HwAddr broadcast = HwAddr::from(world.dev().broadcast.data());
    world.transmit_on(0, world.packet(capable(2)));
    world.transmit_on(3, world.packet(capable(1)));
    world.transmit_on(3, world.packet(peer(7)));
    world.transmit_on(3, world.packet(broadcast));
    world.transmit_on(3, world.packet(capable(1), 0x0806));
    EXPECT_TRUE(qps[0]->outstanding.empty() && qps[1]->outstanding.empty() && world.qp().outstanding.empty());
    world.run_work();
    EXPECT_EQ(qps[0]->outstanding.size(), 1U);
    EXPECT_EQ(qps[1]->outstanding.size(), 1U);
    EXPECT_EQ(world.qp().outstanding.size(), 3U);
    EXPECT_EQ(statistics().tx_dropped, 0U);
    world.complete_messages(*qps[0], 1);
    world.complete_messages(*qps[1], 1);
    world.complete_sends(3);
}

TEST_F(TransmitQueuesTest, packet_whose_queue_was_selected_before_the_mode_changed_is_sent)
{
    connect_to(2);
    set_mode("datagram");
    world.run_work();
    meet(capable(2));
    world.transmit_on(1, world.packet(capable(2)));
    world.run_work();
    EXPECT_EQ(world.qp().outstanding.size(), 1U);
    EXPECT_EQ(statistics().tx_dropped, 0U);
    world.complete_sends(1);
}

TEST_F(TransmitQueuesTest, packets_on_another_queue_are_bounded_and_dropped_when_the_interface_goes)
{
    connect_to(1);
    for (int i = 0; i < 1100; ++i)
        world.transmit_on(3, world.packet(capable(1)));
    EXPECT_EQ(statistics().tx_dropped, 1100U - 1024);
    EXPECT_TRUE(world.reasons.contains(SHIM_DROP_FULL_RING));
    world.busy_queues.push_back(interface().work_queue.native());
    world.stop();
    world.busy_queues.clear();
    EXPECT_TRUE(world.skbs.empty());
    world.start();
}

TEST_F(TransmitQueuesTest, packet_for_a_full_queue_is_counted_as_dropped)
{
    const auto qps = connect_to(2);
    while (!world.dev().transmit_queues[1].stopped)
        world.transmit(world.packet(capable(2)));
    world.transmit_on(0, world.packet(capable(2)));
    world.run_work();
    EXPECT_EQ(statistics().tx_dropped, 1U);
    world.complete_messages(*qps[1], 128);
}

TEST_F(TransmitQueuesTest, packets_on_another_queue_are_dropped_when_the_interface_is_closed)
{
    connect_to(2);
    world.transmit_on(0, world.packet(capable(2)));
    close();
    EXPECT_EQ(statistics().tx_dropped, 1U);
    world.advance(10);
}

TEST_F(TransmitQueuesTest, further_queues_exist_from_their_first_connection_until_the_interface_is_closed)
{
    connect_to(2);
    EXPECT_NE(interface().tx[1].cq(), nullptr);
    EXPECT_EQ(interface().tx[2].cq(), nullptr);
    world.rtnl = true;
    ipoib_ndo_stop(&world.dev());
    EXPECT_EQ(interface().tx[1].cq(), nullptr);
    EXPECT_NE(interface().tx[0].cq(), nullptr);
    ipoib_ndo_open(&world.dev());
    world.rtnl = false;
    world.run_work();
    EXPECT_EQ(queues_of(connect_to(4)).size(), 4U);
}

TEST_F(TransmitQueuesTest, first_queue_serves_if_another_cannot_be_created)
{
    const ib_cq* const first = connect(capable(1))->send_cq;
    world.refused = "cq_create";
    EXPECT_EQ(connect(capable(2))->send_cq, first);
    EXPECT_TRUE(logged("failed to create %s queue %u, error %d"));
    EXPECT_EQ(interface().tx[1].cq(), nullptr);
    world.refused.clear();
    EXPECT_NE(connect(capable(3))->send_cq, first);
}

TEST_F(TransmitQueuesTest, full_queue_stops_alone)
{
    const auto qps = connect_to(2);
    while (!world.dev().transmit_queues[1].stopped)
        world.transmit(world.packet(capable(2)));
    EXPECT_EQ(qps[1]->outstanding.size(), 128U);
    EXPECT_FALSE(world.dev().transmit_queues[0].stopped);
    EXPECT_FALSE(world.dev().transmit_queues[2].stopped);
    world.transmit(world.packet(capable(1)));
    EXPECT_EQ(qps[0]->outstanding.size(), 1U);
    world.complete_messages(*qps[1], 128);
    EXPECT_FALSE(world.dev().transmit_queues[1].stopped);
    world.complete_messages(*qps[0], 1);
}

TEST_F(TransmitQueuesTest, number_can_be_changed_while_running)
{
    EXPECT_EQ(queues_of(connect_to(4)).size(), 4U);
    EXPECT_EQ(set_transmit_queues(2), 0);
    EXPECT_EQ(world.dev().tx_queues, 2U);
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(queues_of(connect_to(4)).size(), 2U);
    world.refused = "netdev_use_tx_queues";
    const unsigned int receives = interface().rx.count();
    EXPECT_EQ(set_channels(8, 1), -12);
    EXPECT_EQ(channels().transmits, 2U);
    EXPECT_EQ(interface().rx.count(), receives);
    EXPECT_EQ(world.dev().rx_queues, receives);
    world.refused.clear();
    EXPECT_EQ(set_transmit_queues(9), kernel::not_supported);
    EXPECT_EQ(set_transmit_queues(8), 0);
    EXPECT_EQ(queues_of(connect_to(8)).size(), 8U);
}

TEST_F(TransmitQueuesTest, transmit_timeout_of_a_further_queue_restarts_all)
{
    connect_to(2);
    ipoib_ndo_tx_timeout(&world.dev(), 1);
    world.run_work();
    EXPECT_EQ(connections(), 0U);
}

} // namespace
} // namespace ipoib
