// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Paths and neighbours: queries, the packets that wait for them, and new queries after reregistration.
#include "path_test.hpp"

namespace ipoib {
namespace {

TEST_F(PathTest, first_packet_sends_one_query_and_waits)
{
    open();
    for (int i = 0; i < 5; ++i)
        world.transmit(world.packet(peer(1)));
    EXPECT_EQ(world.path_queries, 1U);
    EXPECT_TRUE(world.sent.empty());
    EXPECT_EQ(Gid::from(world.paths.front().asked.dgid), gid(1));
    EXPECT_EQ(world.paths.front().asked.traffic_class, 2);
}

TEST_F(PathTest, response_sends_waiting_packets_in_order)
{
    open();
    for (std::size_t i = 0; i < 5; ++i)
        world.transmit(world.packet(peer(1), 0x0800, 60 + i));
    world.answer_path(0, 77);
    ASSERT_EQ(world.sent.size(), 5U);
    for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(world.sent[i].bytes.size(), 64 + i);
        EXPECT_EQ(world.sent[i].ah->dlid, 77);
        EXPECT_EQ(world.sent[i].qpn, 0x100U);
        EXPECT_EQ(world.sent[i].qkey, 0xb1bU);
    }
}

TEST_F(PathTest, known_neighbour_sends_no_query)
{
    open();
    meet(peer(1));
    world.transmit(world.packet(peer(1)));
    EXPECT_EQ(world.path_queries, 1U);
    EXPECT_EQ(world.sent.size(), 2U);
}

TEST_F(PathTest, neighbours_behind_one_port_share_a_path)
{
    open();
    meet(peer(1, 0x100));
    world.transmit(world.packet(peer(1, 0x200)));
    EXPECT_EQ(world.path_queries, 1U);
    EXPECT_EQ(world.sent.back().qpn, 0x200U);
}

TEST_F(PathTest, failed_query_drops_waiting_packets_and_the_next_packet_retries)
{
    open();
    world.transmit(world.packet(peer(1)));
    world.answer_path(-22);
    EXPECT_EQ(world.drops, 1U);
    EXPECT_EQ(statistics().tx_dropped, 1U);
    world.transmit(world.packet(peer(1)));
    EXPECT_EQ(world.path_queries, 2U);
}

TEST_F(PathTest, unanswered_query_is_repeated_and_packets_wait)
{
    open();
    world.transmit(world.packet(peer(1)));
    for (unsigned int limit_ms = 1000; limit_ms < 16000; limit_ms *= 2) {
        EXPECT_EQ(world.paths.back().limit_ms, limit_ms);
        world.answer_path(-110);
    }
    EXPECT_EQ(world.path_queries, 5U);
    EXPECT_EQ(world.drops, 0U);
    world.answer_path();
    EXPECT_EQ(world.sent.size(), 1U);
    world.transmit(world.packet(peer(2)));
    for (int i = 0; i < 5; ++i)
        world.answer_path(-110);
    EXPECT_EQ(world.drops, 1U);
    EXPECT_EQ(world.open_paths(), 0U);
    world.transmit(world.packet(peer(2)));
    EXPECT_EQ(world.paths.back().limit_ms, 16000U);
    world.answer_path(-110);
    EXPECT_EQ(world.drops, 2U);
}

TEST_F(PathTest, invalidated_path_is_used_while_queries_time_out)
{
    open();
    meet(peer(1), 5);
    reregister();
    for (int i = 0; i < 3; ++i) {
        world.transmit(world.packet(peer(1)));
        EXPECT_EQ(world.sent.back().ah->dlid, 5);
        while (world.open_paths())
            world.answer_path(-110);
    }
    EXPECT_EQ(world.sent.size(), 4U);
    EXPECT_EQ(world.path_queries, 1U + 5 + 1 + 1);
    EXPECT_EQ(world.drops, 0U);
}

TEST_F(PathTest, reregistration_repeats_pending_queries)
{
    open();
    world.transmit(world.packet(peer(1)));
    for (int i = 0; i < 4; ++i)
        world.answer_path(-110);
    reregister();
    EXPECT_EQ(world.open_paths(), 1U);
    EXPECT_EQ(world.paths.back().limit_ms, 1000U);
    world.answer_path();
    EXPECT_EQ(world.sent.size(), 1U);
}

TEST_F(PathTest, packets_wait_until_an_sa_is_known)
{
    open();
    world.sa_unknown = true;
    world.transmit(world.packet(peer(1)));
    world.transmit(world.packet(peer(1)));
    EXPECT_EQ(world.drops, 0U);
    world.sa_unknown = false;
    world.transmit(world.packet(peer(1)));
    EXPECT_EQ(world.path_queries, 1U);
    EXPECT_EQ(world.paths.back().limit_ms, 1000U);
    world.answer_path();
    EXPECT_EQ(world.sent.size(), 3U);
}

TEST_F(PathTest, reregistration_queries_for_waiting_packets)
{
    open();
    world.sa_unknown = true;
    world.transmit(world.packet(peer(1)));
    world.sa_unknown = false;
    reregister();
    ASSERT_EQ(world.open_paths(), 1U);
    world.answer_path();
    EXPECT_EQ(world.sent.size(), 1U);
}

TEST_F(PathTest, garbage_collection_queries_for_waiting_packets)
{
    open();
    world.sa_unknown = true;
    world.transmit(world.packet(peer(1)));
    world.transmit(world.packet(peer(2), 0x0806));
    // The first collection finds no SA.
    world.advance(3010);
    EXPECT_EQ(world.drops, 0U);
    world.sa_unknown = false;
    world.advance(3000);
    ASSERT_EQ(world.open_paths(), 2U);
    world.answer_path();
    world.answer_path();
    EXPECT_EQ(world.sent.size(), 2U);
    EXPECT_EQ(world.drops, 0U);
    world.complete_sends(2);
}

TEST_F(PathTest, packets_wait_at_most_a_minute_for_an_sa)
{
    open();
    world.sa_unknown = true;
    for (int i = 0; i < 6; ++i) {
        world.transmit(world.packet(peer(1)));
        world.advance(1000);
    }
    EXPECT_EQ(world.drops, 0U);
    world.advance(100);
    world.transmit(world.packet(peer(1)));
    EXPECT_EQ(world.drops, 6U);
    EXPECT_TRUE(world.reasons.contains(SHIM_DROP_NEIGH_FAILED));
}

TEST_F(PathTest, waiting_packet_holds_no_user_space_pages)
{
    open();
    sk_buff* waiting = world.packet(peer(1));
    waiting->lent = true;
    world.transmit(waiting);
    EXPECT_FALSE(waiting->lent);
    sk_buff* dropped = world.packet(peer(1));
    dropped->lent = true;
    world.fail_allocation = 1;
    world.transmit(dropped);
    world.fail_allocation = 0;
    EXPECT_EQ(world.drops, 1U);
    EXPECT_FALSE(logged("queue length limit %u. Packet drop."));
    world.answer_path();
    EXPECT_EQ(world.sent.size(), 1U);
}

TEST_F(PathTest, close_ends_repeated_queries)
{
    open();
    world.transmit(world.packet(peer(1)));
    world.answer_path(-110);
    close();
    EXPECT_EQ(world.open_paths(), 0U);
    EXPECT_EQ(world.path_queries, 2U);
}

TEST_F(PathTest, the_65th_waiting_packet_is_dropped_and_counted)
{
    open();
    for (int i = 0; i < 65; ++i)
        world.transmit(world.packet(peer(1)));
    EXPECT_EQ(world.drops, 1U);
    EXPECT_EQ(statistics().tx_dropped, 1U);
    world.answer_path();
    EXPECT_EQ(world.sent.size(), 64U);
}

TEST_F(PathTest, address_resolution_creates_no_neighbour)
{
    open();
    world.transmit(world.packet(peer(1), 0x0806));
    world.answer_path();
    EXPECT_EQ(world.sent.size(), 1U);
    world.transmit(world.packet(peer(1), 0x0806));
    EXPECT_EQ(world.path_queries, 1U);
    EXPECT_EQ(world.sent.size(), 2U);
    ipoib_debug_show(&world.dev(), IPOIB_DEBUG_NEIGH, nullptr);
    EXPECT_EQ(world.seq_text, "");
}

TEST_F(PathTest, stop_cancels_a_pending_query)
{
    open();
    world.transmit(world.packet(peer(1)));
    close();
    EXPECT_EQ(world.open_paths(), 0U);
    EXPECT_EQ(world.drops, 1U);
}

TEST_F(PathTest, no_query_is_sent_after_stop)
{
    open();
    close();
    world.transmit(world.packet(peer(1)));
    EXPECT_EQ(world.path_queries, 0U);
    EXPECT_EQ(world.drops, 1U);
}

TEST_F(PathTest, invalidated_path_is_used_during_its_query)
{
    refresh_path();
    EXPECT_EQ(world.path_queries, 2U);
    EXPECT_EQ(lid_of_next_packet(), 5);
    EXPECT_EQ(world.path_queries, 2U);
    world.answer_path(0, 6);
    EXPECT_EQ(lid_of_next_packet(), 6);
    EXPECT_EQ(world.drops, 0U);
}

TEST_F(PathTest, response_from_before_a_fabric_event_is_not_final)
{
    refresh_path();
    // While the response is processed.
    world.meanwhile = [&] { reregister(); };
    world.answer_path(0, 6);
    EXPECT_EQ(lid_of_next_packet(), 6);
    EXPECT_EQ(world.path_queries, 3U);
    world.answer_path(0, 7);
    EXPECT_EQ(lid_of_next_packet(), 7);
    EXPECT_EQ(world.path_queries, 3U);
    EXPECT_EQ(world.drops, 0U);
}

TEST_F(PathTest, refusal_from_before_a_fabric_event_is_no_answer)
{
    refresh_path();
    world.meanwhile = [&] { reregister(); };
    world.answer_path(-22);
    EXPECT_EQ(world.path_queries, 3U);
    EXPECT_EQ(lid_of_next_packet(), 5) << "the record is used meanwhile";
    world.answer_path(0, 6);
    EXPECT_EQ(lid_of_next_packet(), 6);
    EXPECT_EQ(world.drops, 0U);
}

TEST_F(PathTest, old_address_handle_outlives_its_sends)
{
    open();
    meet(peer(1), 5);
    world.transmit(world.packet(peer(1)));
    ib_ah* old = world.sent.back().ah;
    reregister();
    world.transmit(world.packet(peer(1)));
    world.answer_path(0, 6);
    world.advance(100);
    EXPECT_TRUE(world.ahs.contains(old));
    world.complete_sends(2);
    world.advance(100);
    EXPECT_FALSE(world.ahs.contains(old));
}

TEST_F(PathTest, failed_allocations_drop_the_packet_and_leak_nothing)
{
    open();
    for (int nth = 1; nth <= 8; ++nth) {
        const auto address = peer(static_cast<std::uint8_t>(10 + nth));
        world.fail_allocation = nth;
        world.transmit(world.packet(address));
        if (world.open_paths())
            world.answer_path();
        world.fail_allocation = 0;
        // Without failures the packet is sent.
        const std::size_t before = world.sent.size();
        world.transmit(world.packet(address));
        if (world.open_paths())
            world.answer_path();
        EXPECT_GT(world.sent.size(), before) << "after failure " << nth;
    }
}

TEST_F(PathTest, waiting_packet_is_not_charged_to_its_socket)
{
    open();
    sk_buff* waiting = world.packet(peer(1));
    world.transmit(waiting);
    EXPECT_TRUE(waiting->orphaned);
    world.answer_path();
    sk_buff* sent = world.packet(peer(1));
    world.transmit(sent);
    EXPECT_FALSE(sent->orphaned);
    world.complete_sends(world.qp().outstanding.size());
}

} // namespace
} // namespace ipoib
