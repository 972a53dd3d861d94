// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The receive ring: buffers, headers and types of received packets, polls.
#include "datagram_test.hpp"

namespace ipoib {
namespace {

TEST_F(DatagramTest, received_packet_loses_its_headers)
{
    ASSERT_TRUE(world.receive(frame(0x86dd, 33)));
    ASSERT_EQ(world.received.size(), 1U);
    const sk_buff& skb = *world.received[0];
    EXPECT_EQ(shim_skb_len(&skb), 33U);
    EXPECT_EQ(skb.protocol, 0x86dd);
    EXPECT_EQ(skb.type, SHIM_PACKET_HOST);
    // A sniffer sees no destination, and the encapsulation.
    ASSERT_EQ(skb.mac_header.size(), 24U);
    EXPECT_TRUE(std::all_of(skb.mac_header.begin(), skb.mac_header.begin() + 20, [](auto b) { return b == 0; }));
    EXPECT_EQ(skb.mac_header[20], 0x86);
    EXPECT_EQ(statistics().rx_packets, 1U);
    EXPECT_EQ(statistics().rx_bytes, 33U);
}

TEST_F(DatagramTest, packet_type_follows_from_the_destination)
{
    world.receive(frame(), true, gid(7));
    world.receive(frame(), true, broadcast_gid(PKey(0xffff)));
    world.receive(frame(), true, group(1));
    ASSERT_EQ(world.received.size(), 3U);
    EXPECT_EQ(world.received[0]->type, SHIM_PACKET_HOST);
    EXPECT_EQ(world.received[1]->type, SHIM_PACKET_BROADCAST);
    EXPECT_EQ(world.received[2]->type, SHIM_PACKET_MULTICAST);
    EXPECT_EQ(statistics().multicast, 1U);
}

TEST_F(DatagramTest, own_multicast_is_dropped)
{
    world.receive(frame(), true, group(1), 0x48, 3);
    EXPECT_TRUE(world.received.empty());
    // A packet of another queue pair of this port, or of another port with the same QPN.
    world.receive(frame(), true, group(1), 0x49, 3);
    world.receive(frame(), true, group(1), 0x48, 4);
    EXPECT_EQ(world.received.size(), 2U);
    // A port of another subnet, told apart by GID, with the same QPN and LID.
    world.ca.gid.raw[15] ^= 1;
    world.receive(frame(), true, group(1), 0x48, 3);
    world.ca.gid.raw[15] ^= 1;
    EXPECT_EQ(world.received.size(), 3U);
}

TEST_F(DatagramTest, truncated_frames_are_counted_and_their_buffers_reused)
{
    const std::size_t posted = world.qp().receives.size();
    for (std::size_t length = 0; length < 4; ++length)
        for (int i = 0; i < 16; ++i)
            world.receive(std::vector<std::uint8_t>(length));
    EXPECT_EQ(statistics().rx_errors, 64U);
    EXPECT_TRUE(world.received.empty());
    EXPECT_EQ(world.qp().receives.size(), posted);
}

TEST_F(DatagramTest, receive_errors_repost_the_buffer)
{
    for (int i = 0; i < 1024; ++i)
        ASSERT_TRUE(world.receive(frame(), false, {}, 99, 9, 1)) << i;
    EXPECT_EQ(statistics().rx_errors, 1024U);
}

TEST_F(DatagramTest, packet_without_memory_is_dropped_and_its_buffer_reposted)
{
    world.fail_pages = true;
    for (int i = 0; i < 1000; ++i)
        ASSERT_TRUE(world.receive(frame(0x0800, 1000))) << i;
    EXPECT_EQ(statistics().rx_dropped, 1000U);
    world.fail_pages = false;
    world.receive(frame(0x0800, 1000));
    EXPECT_EQ(world.received.size(), 1U);
}

TEST_F(DatagramTest, short_packets_are_copied_and_their_buffers_reposted)
{
    world.fail_pages = true;
    for (int i = 0; i < 1000; ++i)
        ASSERT_TRUE(world.receive(frame(0x0800, 252))) << i;
    ASSERT_EQ(world.received.size(), 1000U);
    EXPECT_EQ(world.received.back()->buffer, nullptr);
    EXPECT_EQ(shim_skb_len(world.received.back()), 252U);
    // The fake's NET_IP_ALIGN is 2, as on processors that need alignment.
    EXPECT_EQ(world.received.back()->start % 4, 0U) << "its IP header is misaligned";
    world.receive(frame(0x0800, 253));
    EXPECT_EQ(statistics().rx_dropped, 1U);
}

TEST_F(DatagramTest, short_packet_without_memory_is_dropped_and_its_buffer_reposted)
{
    const std::size_t posted = world.qp().receives.size();
    for (int i = 0; i < 64; ++i) {
        world.fail_allocation = 1;
        ASSERT_TRUE(world.receive(frame())) << i;
    }
    EXPECT_EQ(statistics().rx_dropped, 64U);
    EXPECT_EQ(world.qp().receives.size(), posted);
}

TEST_F(DatagramTest, receives_are_posted_in_batches)
{
    const unsigned int posts = world.receive_posts;
    for (int i = 0; i < 160; ++i)
        world.receive(frame());
    EXPECT_EQ(world.receive_posts - posts, 10U);
}

TEST_F(DatagramTest, refused_receives_are_not_waited_for)
{
    const std::size_t posted = world.qp().receives.size();
    world.receives_until_failure = 3;
    for (int i = 0; i < 16; ++i)
        ASSERT_TRUE(world.receive(frame()));
    EXPECT_EQ(world.qp().receives.size(), posted - 13);
    world.run_work();
    EXPECT_EQ(world.qp().receives.size(), posted);
    EXPECT_EQ(world.log.size(), 1U) << "the failed post; no receives that were not completed";
}

TEST_F(DatagramTest, single_packet_of_a_poll_bypasses_an_empty_gro)
{
    world.receive(frame());
    EXPECT_EQ(world.unmerged, 1U);
    world.gro_holds_packets = true;
    world.receive(frame());
    EXPECT_EQ(world.unmerged, 1U);
    world.gro_holds_packets = false;
    world.polls_later = true;
    for (int i = 0; i < 17; ++i)
        world.receive(frame());
    world.run_polls();
    EXPECT_EQ(world.received.size(), 19U);
    EXPECT_EQ(world.unmerged, 1U) << "nor the only one of the poll's second look";
}

TEST_F(DatagramTest, more_completions_than_one_poll_takes_are_handled)
{
    for (int i = 0; i < 200; ++i)
        world.qp().recv_cq->entries.push_back({static_cast<std::uint64_t>(i), 1, 0, 0, 0, false});
    for (int i = 0; i < 200; ++i)
        world.qp().receives.pop_front();
    interface().rx[0].napi().schedule();
    world.run_polls();
    EXPECT_TRUE(world.qp().recv_cq->entries.empty());
    EXPECT_TRUE(world.qp().recv_cq->armed);
}

TEST_F(DatagramTest, poll_handles_no_more_completions_than_its_budget)
{
    world.polls_later = true;
    for (int i = 0; i < 20; ++i)
        ASSERT_TRUE(world.receive(frame()));
    // A busy poll's budget is 8.
    EXPECT_EQ(interface().rx[0].poll(8), 8);
    EXPECT_EQ(world.received.size(), 8U);
    world.run_polls();
    EXPECT_EQ(world.received.size(), 20U);
}

TEST_F(DatagramTest, failed_arming_polls_again)
{
    world.fail_arming = 1;
    for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(world.receive(frame()));
    EXPECT_EQ(world.received.size(), 3U);
    world.fail_arming = 1;
    for (int i = 0; i < 127; ++i)
        world.transmit(world.packet(peer(1)));
    world.finish_sends(127);
    EXPECT_TRUE(interface().tx[0].ring.index().empty());
}

} // namespace
} // namespace ipoib
