// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Several transmit queues in datagram mode, with send-only queue pairs, on scripted fakes.
#include "connected_test.hpp"
#include "datagram_test.hpp"

namespace ipoib {
namespace {

class DatagramQueuesTest : public WithQueues<DatagramTest> {
protected:
    static constexpr unsigned int count = 4;
    void SetUp() override
    {
        WithQueues::SetUp();
        ASSERT_EQ(set_transmit_queues(count), 0);
        world.answer_broadcast();
        world.run_work();
        meet(peer(1));
    }
    // A packet of a flow that goes by this queue.
    sk_buff* packet(unsigned int queue, const HwAddr& to = peer(1))
    {
        sk_buff* skb = world.packet(to);
        skb->hash = 0xffffffff / count * queue + 10;
        return skb;
    }
    ib_qp& sender(unsigned int queue) { return *world.qps.at(queue); }
    void complete_all()
    {
        for (ib_qp* qp : world.qps)
            world.complete_messages(*qp, qp->outstanding.size());
    }
    std::vector<std::size_t> outstanding() const
    {
        std::vector<std::size_t> sends;
        for (const ib_qp* qp : world.qps)
            sends.push_back(qp->outstanding.size());
        return sends;
    }
};

TEST_F(DatagramQueuesTest, flows_are_spread_over_queue_pairs_that_only_send)
{
    ASSERT_EQ(world.qps.size(), count);
    EXPECT_EQ(world.dev().tx_queues, count);
    std::set<unsigned int> vectors;
    for (unsigned int i = 0; i < count; ++i) {
        EXPECT_EQ(sender(i).state, "rts");
        EXPECT_EQ(sender(i).qkey, sender(0).qkey);
        EXPECT_EQ(sender(i).pkey_index, sender(0).pkey_index);
        EXPECT_EQ(sender(i).receives.empty(), i != 0);
        vectors.insert(sender(i).send_cq->vector);
        for (unsigned int packets = 0; packets <= i; ++packets)
            world.transmit(packet(i));
    }
    EXPECT_EQ(vectors.size(), count);
    EXPECT_EQ(outstanding(), (std::vector<std::size_t>{1, 2, 3, 4}));
    EXPECT_EQ(sender(3).outstanding.back().qkey, sender(0).qkey);
    EXPECT_EQ(sender(3).outstanding.back().qpn, 0x100U);
    const std::uint64_t before = interface().tx[3].packets.value();
    complete_all();
    EXPECT_EQ(interface().tx[3].packets.value(), before + 4);
    EXPECT_EQ(statistics().tx_dropped, 0U);
}

TEST_F(DatagramQueuesTest, queue_is_the_cores_choice_unless_fewer_queue_pairs_send)
{
    sk_buff* const skb = packet(3);
    EXPECT_EQ(ipoib_ndo_select_queue(skb, &world.dev()), -1);
    world.dev().tx_queues = count + 1;
    EXPECT_EQ(ipoib_ndo_select_queue(skb, &world.dev()), 3);
    world.dev().tx_queues = count;
    world.transmit(skb);
    EXPECT_EQ(outstanding(), (std::vector<std::size_t>{0, 0, 0, 1}));
    complete_all();
}

TEST_F(DatagramQueuesTest, address_resolution_and_groups_are_sent_by_the_queue_pair_of_the_address)
{
    set_groups({1});
    world.answer_join(world.join_of(group(1)));
    complete_all();
    for (const HwAddr& to : {HwAddr::from(world.dev().broadcast.data()), to_group(1)}) {
        sk_buff* const skb = world.packet(to);
        skb->hash = 0xffffffff;
        world.transmit(skb);
    }
    sk_buff* const arp = world.packet(peer(1), 0x0806);
    arp->hash = 0xffffffff;
    world.transmit(arp);
    EXPECT_EQ(outstanding(), (std::vector<std::size_t>{3, 0, 0, 0}));
    // Someone else chose the queue.
    world.transmit_on(3, world.packet(to_group(1)));
    world.run_work();
    EXPECT_EQ(outstanding(), (std::vector<std::size_t>{4, 0, 0, 0}));
    complete_all();
}

TEST_F(DatagramQueuesTest, packets_that_wait_for_a_path_are_sent_by_their_flows_queue)
{
    for (unsigned int i = 0; i < count; ++i)
        world.transmit(packet(i, peer(2)));
    world.answer_path();
    EXPECT_EQ(outstanding(), (std::vector<std::size_t>{1, 1, 1, 1}));
    complete_all();
}

TEST_F(DatagramQueuesTest, address_handle_lives_until_the_sends_of_all_queues_complete)
{
    world.transmit(packet(0));
    world.transmit(packet(2));
    const std::size_t before = world.ahs.size();
    // The path is queried again, and has another LID; the group of all hosts is joined again.
    world.event(SHIM_IB_EVENT_LID_CHANGE);
    world.run_work();
    world.answer_broadcast();
    world.transmit(packet(0));
    world.answer_path(0, 9);
    world.complete_sends(sender(0).outstanding.size());
    world.advance(shim_hz());
    EXPECT_GT(world.ahs.size(), before);
    complete_all();
    world.advance(shim_hz());
    EXPECT_EQ(world.ahs.size(), before);
}

TEST_F(DatagramQueuesTest, full_queue_stops_alone)
{
    while (!world.dev().transmit_queues[2].stopped)
        world.transmit(packet(2));
    EXPECT_EQ(sender(2).outstanding.size(), 128U);
    EXPECT_FALSE(world.dev().transmit_queues[0].stopped);
    EXPECT_FALSE(world.dev().transmit_queues[3].stopped);
    world.complete_messages(sender(2), 128);
    EXPECT_FALSE(world.dev().transmit_queues[2].stopped);
}

TEST_F(DatagramQueuesTest, queue_pairs_exist_while_the_interface_is_open_in_datagram_mode)
{
    close();
    EXPECT_EQ(world.qps.size(), 1U);
    EXPECT_EQ(interface().tx[1].cq(), nullptr);
    open();
    EXPECT_EQ(world.qps.size(), count);
    EXPECT_EQ(world.store(&world.dev(), IPOIB_ATTRIBUTE_MODE, "connected", 9), 9);
    world.run_work();
    EXPECT_EQ(world.qps.size(), 1U);
    EXPECT_EQ(channels().transmits, 4U);
    EXPECT_EQ(set_transmit_queues(2), 0);
    EXPECT_EQ(world.store(&world.dev(), IPOIB_ATTRIBUTE_MODE, "datagram", 8), 8);
    world.run_work();
    EXPECT_EQ(world.qps.size(), count) << "each mode has its own number";
    EXPECT_EQ(world.dev().tx_queues, count);
    EXPECT_EQ(set_transmit_queues(1), 0);
    EXPECT_EQ(world.qps.size(), 1U);
    EXPECT_EQ(world.dev().tx_queues, 1U);
}

TEST_F(DatagramQueuesTest, packet_whose_queue_was_selected_before_the_mode_changed_is_sent)
{
    sk_buff* const skb = packet(3);
    EXPECT_EQ(ipoib_ndo_select_queue(skb, &world.dev()), -1);
    EXPECT_EQ(world.store(&world.dev(), IPOIB_ATTRIBUTE_MODE, "connected", 9), 9);
    world.run_work();
    meet(peer(1));
    world.transmit_on(3, skb);
    world.run_work();
    EXPECT_EQ(sender(0).outstanding.size(), 1U);
    EXPECT_EQ(statistics().tx_dropped, 0U);
    complete_all();
}

// A program reads the number, the names and the values one after the other.
TEST_F(DatagramQueuesTest, number_of_statistics_does_not_depend_on_the_queues)
{
    ASSERT_EQ(set_channels(1, 1), 0);
    const unsigned int count = ipoib_ethtool_statistics_count(&world.dev());
    ASSERT_EQ(set_channels(8, 8), 0);
    EXPECT_EQ(ipoib_ethtool_statistics_count(&world.dev()), count);
}

TEST_F(DatagramQueuesTest, pending_sends_are_awaited_when_the_interface_is_closed)
{
    world.transmit(packet(3));
    world.transmit(packet(1));
    close();
    EXPECT_FALSE(logged("timing out; %u sends %u receives not completed"));
    EXPECT_TRUE(world.skbs.empty());
    open();
}

TEST_F(DatagramQueuesTest, flows_share_the_queues_that_could_be_created)
{
    close();
    world.fail_qps = 1;
    open();
    EXPECT_TRUE(logged("failed to create transmit queue %u, error %d"));
    EXPECT_EQ(world.qps.size(), 1U);
    EXPECT_EQ(interface().tx[1].cq(), nullptr);
    meet(peer(1));
    for (unsigned int i = 0; i < count; ++i)
        world.transmit(packet(i));
    EXPECT_EQ(outstanding(), (std::vector<std::size_t>{4}));
    world.transmit_on(3, packet(3));
    world.run_work();
    EXPECT_EQ(outstanding(), (std::vector<std::size_t>{5}));
    complete_all();
}

TEST_F(DatagramQueuesTest, queues_that_could_be_created_serve_without_the_others)
{
    const auto expect_with = [this](const char* refused, unsigned int granted, unsigned int further) {
        close();
        world.refused = refused;
        world.granted = granted;
        open();
        world.refused.clear();
        EXPECT_EQ(world.qps.size(), 1 + further);
        EXPECT_EQ(interface().queues.senders(), 1 + further);
    };
    for (unsigned int further = 0; further < count; ++further) {
        expect_with("cq_create", further, further);
        // The queue pair of the address is the first to be moved to RTS.
        expect_with("qp_to_rts", 1 + further, further);
    }
}

TEST_F(DatagramQueuesTest, queue_pair_that_cannot_be_reset_is_replaced)
{
    world.transmit(packet(2));
    world.refused = "qp_to_reset";
    close();
    world.refused.clear();
    EXPECT_TRUE(logged("failed to move the queue pair to RESET, error %d"));
    EXPECT_TRUE(world.qps.empty());
    EXPECT_TRUE(world.skbs.empty());
    open();
    EXPECT_EQ(world.qps.size(), count);
}

TEST_F(DatagramQueuesTest, failed_send_is_recovered_from_on_each_queue_pair)
{
    world.transmit(packet(2));
    sender(2).state = "sqe";
    world.complete_messages(sender(2), 1, 10);
    world.run_work();
    EXPECT_EQ(sender(2).state, "rts");
}

TEST_F(DatagramQueuesTest, changed_qkey_applies_to_all_queue_pairs)
{
    world.group_qkey = 0x80010000;
    reregister();
    world.answer_broadcast();
    for (unsigned int i = 0; i < count; ++i)
        EXPECT_EQ(sender(i).qkey, 0x80010000U);
}

TEST_F(DatagramQueuesTest, stalled_queue_restarts_all)
{
    world.transmit(packet(3));
    world.advance(20 * shim_hz());
    EXPECT_TRUE(logged("transmit timeout: latency %u msecs"));
    EXPECT_EQ(world.qps.size(), count);
    EXPECT_TRUE(world.skbs.empty());
}

TEST_F(DatagramTest, one_transmit_queue_is_the_default)
{
    shim_channels channels;
    ipoib_ethtool_get_channels(&world.dev(), &channels);
    EXPECT_EQ(channels.transmits, 1U);
    EXPECT_EQ(channels.max_transmits, 8U);
    EXPECT_EQ(world.qps.size(), 1U);
}

} // namespace
} // namespace ipoib
