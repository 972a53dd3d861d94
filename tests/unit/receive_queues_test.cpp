// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Several receive queues for connections, on scripted fakes.
#include "connected_passive_test.hpp"

namespace ipoib {
namespace {

class ReceiveQueuesTest : public WithQueues<PassiveTest> {
protected:
    void restart(unsigned int processors, unsigned int vectors)
    {
        world.stop();
        world.processors = processors;
        world.ca.comp_vectors = vectors;
        world.start();
    }
    int set_receive_queues(unsigned int count) { return set_channels(1, count); }
    std::set<ib_cq*> queues_of(unsigned int peers)
    {
        std::set<ib_cq*> queues;
        for (unsigned int i = 1; i <= peers; ++i)
            if (const ib_qp* qp = accept(static_cast<std::uint8_t>(i), 0x100))
                queues.insert(qp->recv_cq);
        return queues;
    }
};

TEST_F(ReceiveQueuesTest, there_is_one_for_each_processor_and_vector_up_to_eight)
{
    EXPECT_EQ(world.dev().rx_queues, 4U);
    for (const auto [processors, vectors, expected] :
         {std::array{2U, 8U, 2U}, {16U, 3U, 3U}, {64U, 64U, 8U}, {4U, 0U, 1U}}) {
        restart(processors, vectors);
        EXPECT_EQ(world.dev().rx_queues, expected);
        EXPECT_EQ(interface().rx.count(), expected);
    }
}

TEST_F(ReceiveQueuesTest, hca_without_shared_receive_queues_has_one)
{
    world.have_srq = false;
    restart(4, 8);
    EXPECT_EQ(world.dev().rx_queues, 1U);
    EXPECT_EQ(channels().max_receives, 1U);
    EXPECT_EQ(set_receive_queues(2), kernel::not_supported);
}

TEST_F(ReceiveQueuesTest, connections_are_spread_over_queues_with_vectors_of_their_own)
{
    const std::set<ib_cq*> queues = queues_of(4);
    EXPECT_EQ(queues.size(), 4U);
    std::set<unsigned int> vectors;
    for (const ib_cq* cq : queues)
        vectors.insert(cq->vector);
    EXPECT_EQ(vectors.size(), 4U);
    EXPECT_EQ(queues_of(8).size(), 4U);
}

TEST_F(ReceiveQueuesTest, connection_is_assigned_to_the_queue_with_the_fewest)
{
    std::vector<ib_cm_id*> ids;
    std::vector<ib_cq*> queues;
    for (std::uint8_t i = 1; i <= 4; ++i) {
        queues.push_back(accept(i, 0x100)->recv_cq);
        ids.push_back(id);
    }
    world.message(ids[2], SHIM_IB_CM_DREQ_RECEIVED);
    run_for(200);
    ASSERT_EQ(connections(), 3U);
    EXPECT_EQ(accept(5, 0x100)->recv_cq, queues[2]);
}

TEST_F(ReceiveQueuesTest, connections_of_a_peer_use_queues_of_their_own)
{
    std::vector<ib_cm_id*> ids;
    for (std::uint8_t i = 1; i <= 8; ++i) {
        ASSERT_NE(accept(i, 0x100), nullptr);
        ids.push_back(id);
    }
    // The last queue has no connection then.
    for (const unsigned int ended : {3, 7})
        world.message(ids[ended], SHIM_IB_CM_DREQ_RECEIVED);
    run_for(200);
    std::map<ib_cq*, int> connections;
    for (int i = 0; i < 8; ++i)
        ++connections[accept(9, 0x100)->recv_cq];
    EXPECT_EQ(connections.size(), 4U);
    for (const auto& [_, count] : connections)
        EXPECT_EQ(count, 2);
}

TEST_F(ReceiveQueuesTest, messages_arrive_with_the_number_of_their_queue)
{
    for (std::uint8_t i = 1; i <= 4; ++i) {
        ib_qp* const qp = accept(i, 0x100);
        ASSERT_TRUE(world.receive_message(*qp, message(100)));
        EXPECT_EQ(world.received.back()->rx_queue, i - 1);
        ASSERT_TRUE(world.receive_message(*qp, message(6000)));
        EXPECT_EQ(world.received.back()->rx_queue, i - 1);
        EXPECT_EQ(interface().rx[i - 1U].packets.value(), 2U);
    }
    EXPECT_EQ(statistics().rx_packets, 8U);
}

TEST_F(ReceiveQueuesTest, further_queues_exist_from_their_first_connection_until_the_interface_is_closed)
{
    EXPECT_EQ(world.srqs.size(), 1U);
    queues_of(2);
    EXPECT_EQ(world.srqs.size(), 2U);
    EXPECT_NE(interface().rx[1].cq(), nullptr);
    EXPECT_EQ(interface().rx[2].cq(), nullptr);
    world.rtnl = true;
    ipoib_ndo_stop(&world.dev());
    EXPECT_TRUE(world.srqs.empty());
    EXPECT_EQ(interface().rx[1].cq(), nullptr);
    ipoib_ndo_open(&world.dev());
    world.rtnl = false;
    world.run_work();
    EXPECT_EQ(queues_of(4).size(), 4U);
}

TEST_F(ReceiveQueuesTest, kernel_knows_the_napi_contexts_of_the_queues_that_exist)
{
    const auto& shown = world.dev().napis;
    EXPECT_EQ(shown[0], interface().rx[0].napi().native());
    queues_of(2);
    world.run_work();
    EXPECT_EQ(shown[1], interface().rx[1].napi().native());
    EXPECT_EQ(shown[2], nullptr);
    for (unsigned int i : {0U, 1U})
        EXPECT_EQ(interface().rx[i].srq.pool(MessageBuffer::small_piece).native()->napi, shown[i]);
    close();
    EXPECT_NE(shown[0], nullptr);
    EXPECT_EQ(shown[1], nullptr);
}

TEST_F(ReceiveQueuesTest, further_queues_share_the_buffers_of_a_ring)
{
    queues_of(4);
    std::multiset<std::size_t> sizes;
    for (const ib_srq* srq : world.srqs)
        sizes.insert(srq->receives.size());
    EXPECT_EQ(sizes, (std::multiset<std::size_t>{64, 64, 64, 256}));
}

TEST_F(ReceiveQueuesTest, first_queue_serves_if_another_cannot_be_created)
{
    ib_cq* const first = accept(1, 0x100)->recv_cq;
    for (const bool completions : {true, false}) {
        world.refused = completions ? "cq_create" : "";
        world.refuse_srq = !completions;
        ASSERT_NE(accept(2, 0x100), nullptr);
        EXPECT_EQ(world.qps.back()->recv_cq, first);
        EXPECT_TRUE(logged("failed to create %s queue %u, error %d"));
        EXPECT_EQ(interface().rx[1].cq(), nullptr);
    }
    world.refuse_srq = false;
    EXPECT_NE(accept(3, 0x100)->recv_cq, first);
}

TEST_F(ReceiveQueuesTest, moderation_applies_to_queues_that_exist_and_to_later_ones)
{
    queues_of(2);
    const shim_moderation wanted{17, 23, false};
    world.rtnl = true;
    EXPECT_EQ(ipoib_ethtool_set_moderation(&world.dev(), &wanted), 0);
    world.rtnl = false;
    for (const ib_cq* cq : queues_of(4))
        EXPECT_EQ(std::pair(cq->usecs, cq->frames), std::pair(17U, 23U));
}

TEST_F(ReceiveQueuesTest, each_queue_has_its_own_moderation)
{
    const auto set = [&](unsigned int queue, unsigned int usecs) {
        const shim_moderation wanted{usecs, 5, queue == 3};
        world.rtnl = true;
        const int error = ipoib_ethtool_set_queue_moderation(&world.dev(), queue, &wanted);
        world.rtnl = false;
        return error;
    };
    // One that exists, and one that does not yet.
    ASSERT_EQ(queues_of(2).size(), 2U);
    EXPECT_EQ(set(1, 11), 0);
    EXPECT_EQ(set(3, 13), 0);
    EXPECT_EQ(set(1, 0x10000), kernel::invalid);
    EXPECT_EQ(set(4, 14), kernel::invalid);
    EXPECT_TRUE(logged("receive queue %u, of %u, cannot be moderated"));
    queues_of(4);
    shim_moderation shown;
    EXPECT_EQ(ipoib_ethtool_get_queue_moderation(&world.dev(), 4, &shown), kernel::invalid);
    const unsigned int expected[] = {0, 11, 0, 13};
    for (unsigned int i = 0; i < 4; ++i) {
        EXPECT_EQ(ipoib_ethtool_get_queue_moderation(&world.dev(), i, &shown), 0);
        EXPECT_EQ(shown.usecs, expected[i]);
        EXPECT_EQ(shown.adaptive, i == 3);
        EXPECT_EQ(interface().rx[i].cq()->usecs, expected[i]);
    }
    ipoib_ethtool_get_moderation(&world.dev(), &shown);
    EXPECT_EQ(shown.usecs, 0U);
}

TEST_F(ReceiveQueuesTest, number_can_be_changed_while_running)
{
    EXPECT_EQ(queues_of(4).size(), 4U);
    EXPECT_EQ(set_receive_queues(2), 0);
    EXPECT_EQ(world.dev().rx_queues, 2U);
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(queues_of(4).size(), 2U);
    world.refused = "netdev_use_rx_queues";
    EXPECT_EQ(set_receive_queues(8), -12);
    EXPECT_EQ(interface().rx.count(), 2U);
    world.refused.clear();
    EXPECT_EQ(set_receive_queues(8), 0);
    EXPECT_EQ(queues_of(8).size(), 8U);
}

TEST_F(ReceiveQueuesTest, failed_post_to_a_further_queue_restarts_the_queues)
{
    accept(1, 0x100);
    ib_qp* const qp = accept(2, 0x100);
    world.receives_until_failure = 0;
    for (int i = 0; i < 16; ++i)
        ASSERT_TRUE(world.receive_message(*qp, message(10)));
    world.run_work();
    EXPECT_EQ(connections(), 0U);
    accept(1, 0x100);
    ib_qp* const later = accept(2, 0x100);
    ASSERT_NE(later, nullptr);
    EXPECT_EQ(later->srq->receives.size(), 64U);
}

} // namespace
} // namespace ipoib
