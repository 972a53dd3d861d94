// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Offloads of sends: checksums and segmentation left to the HCA, or done by the driver.
#include "offload_test.hpp"

namespace ipoib {
namespace {

TEST_F(OffloadTest, checksum_is_left_to_the_hca)
{
    sk_buff* skb = world.packet(peer(1));
    skb->wants_checksum = true;
    world.transmit(skb, true);
    world.transmit(world.packet(peer(1)));
    ASSERT_EQ(world.sent.size(), 2U);
    EXPECT_TRUE(world.sent[0].checksum);
    EXPECT_FALSE(world.sent[1].checksum);
    // The last send of a burst is signaled, whatever its offloads.
    EXPECT_TRUE(world.sent[1].signaled);
    world.complete_sends(2);
}

TEST_F(OffloadTest, large_packet_is_posted_as_headers_and_data)
{
    sk_buff* skb = world.packet(peer(1), 0x0800, 5040);
    skb->segment_bytes = 1000;
    skb->header_bytes = 44;
    skb->wants_checksum = true;
    const std::uint64_t before = statistics().tx_bytes;
    world.transmit(skb);
    ASSERT_EQ(world.sent.size(), 1U);
    EXPECT_EQ(world.sent[0].segment_bytes, 1000U);
    EXPECT_EQ(world.sent[0].headers.size(), 44U);
    EXPECT_EQ(world.sent[0].headers[0], 0x08);
    EXPECT_EQ(world.sent[0].bytes.size(), 5000U);
    world.complete_sends(1);
    // Counted as on the wire.
    EXPECT_EQ(statistics().tx_packets, 1U + 5U);
    EXPECT_EQ(statistics().tx_bytes - before, 5000U + 5 * 40U);
    EXPECT_EQ(interface().tx[0].ring.segmented.value(), 5U);
    EXPECT_EQ(world.dev().queued_bytes, 0);
    // The next packet in the slot has no offloads.
    for (int i = 0; i < 128; ++i) {
        world.transmit(world.packet(peer(1)));
        EXPECT_EQ(world.sent.back().segment_bytes, 0U);
        world.complete_sends(1);
    }
}

TEST_F(OffloadTest, segments_longer_than_the_mtu_are_dropped_with_an_icmp_error)
{
    sk_buff* skb = world.packet(peer(1), 0x0800, 9040);
    skb->segment_bytes = 3000;
    skb->header_bytes = 44;
    world.transmit(skb);
    world.run_work();
    EXPECT_TRUE(world.sent.empty());
    EXPECT_EQ(world.rejected_mtus, std::vector<unsigned int>{2044});
}

TEST_F(OffloadTest, connected_mode_has_no_send_offloads)
{
    world.rtnl = true;
    EXPECT_TRUE(ipoib_offloads_sends(&world.dev()));
    EXPECT_TRUE(interface().settings.set_connected(true).ok());
    EXPECT_FALSE(ipoib_offloads_sends(&world.dev()));
    EXPECT_EQ(world.dev().feature_updates, 1U);
    EXPECT_TRUE(interface().settings.set_connected(false).ok());
    EXPECT_EQ(world.dev().feature_updates, 2U);
    world.rtnl = false;
}

TEST_F(OffloadTest, connected_mode_allows_larger_packets_of_the_stack)
{
    world.rtnl = true;
    // An HCA's rdma_netdev may have a limit of its own.
    world.dev().max_gso_bytes = 100000;
    EXPECT_TRUE(interface().settings.set_connected(true).ok());
    EXPECT_EQ(world.dev().max_gso_bytes, 524280U);
    EXPECT_TRUE(interface().settings.set_connected(false).ok());
    EXPECT_EQ(world.dev().max_gso_bytes, 100000U);
    world.rtnl = false;
}

TEST_F(OffloadTest, large_packet_with_unreadable_headers_is_dropped)
{
    sk_buff* skb = world.packet(peer(1), 0x0800, 5040);
    skb->segment_bytes = 1000;
    skb->header_bytes = 44;
    world.refused = "skb_pull_headers";
    world.transmit(skb);
    EXPECT_TRUE(world.sent.empty());
    EXPECT_EQ(world.drops, 1U);
}

// HCA without offloads

class DriverTsoTest : public OffloadTest {
protected:
    void SetUp() override
    {
        world.features = SHIM_FEATURE_SG;
        OffloadTest::SetUp();
    }
    // Packet with this much data in all, the first 20 bytes linear and the rest in fragments of frag_bytes.
    sk_buff* large(std::size_t data, std::size_t frag_bytes, unsigned int segment_bytes)
    {
        sk_buff* skb = world.packet(peer(1), 0x0800, 40 + 20);
        const auto bytes = frame({.flags = tcp_ack | tcp_psh, .data = data});
        std::copy_n(bytes.begin(), 44 + 20, skb->bytes.end() - 44 - 20);
        for (std::size_t at = 44 + 20; at < bytes.size(); at += frag_bytes)
            skb->frags.emplace_back(&bytes[at], &bytes[at] + std::min(frag_bytes, bytes.size() - at));
        skb->segment_bytes = segment_bytes;
        skb->header_bytes = 44;
        skb->wants_checksum = true;
        return skb;
    }
};

TEST_F(DriverTsoTest, large_packet_is_sent_as_segments_with_separate_headers)
{
    const std::uint64_t before = statistics().tx_bytes, packets = statistics().tx_packets;
    const unsigned int doorbells = world.doorbells;
    world.transmit(large(5000, 777, 999));
    ASSERT_EQ(world.sent.size(), 6U);
    EXPECT_EQ(world.doorbells, doorbells + 1);
    std::uint32_t sequence = 1000;
    for (const Sent& sent : world.sent) {
        const bool last = &sent == &world.sent.back();
        const std::size_t data = last ? 5 : 999;
        ASSERT_EQ(sent.bytes.size(), 44 + data);
        EXPECT_EQ(sent.segment_bytes, 0U);
        EXPECT_EQ(sent.signaled, last);
        EXPECT_FALSE(sent.checksum);
        const auto& ip = *reinterpret_cast<const Ipv4Header*>(&sent.bytes[4]);
        const auto& tcp = *reinterpret_cast<const TcpHeader*>(&ip + 1);
        EXPECT_EQ(ip.total_bytes.value(), 40 + data);
        EXPECT_EQ(tcp.sequence.value(), sequence);
        EXPECT_EQ(tcp.flags, last ? tcp_ack | tcp_psh : tcp_ack);
        std::vector<std::uint8_t> content(sent.bytes.begin() + 44, sent.bytes.end());
        EXPECT_EQ(content, [&] {
            const auto all = frame({.data = 5000});
            return std::vector<std::uint8_t>(&all[44 + sequence - 1000], &all[44 + sequence - 1000] + data);
        }());
        content.resize(content.size() + data % 2);
        EXPECT_EQ(tcp.checksum.value(), internet_checksum(content.data(), static_cast<unsigned int>(content.size())));
        sequence += static_cast<std::uint32_t>(data);
    }
    world.complete_sends(6);
    EXPECT_EQ(statistics().tx_packets - packets, 6U);
    EXPECT_EQ(statistics().tx_bytes - before, 5000U + 6 * 40U);
    EXPECT_EQ(interface().tx[0].ring.segmented.value(), 6U);
    EXPECT_EQ(world.dev().queued_bytes, 0);
}

TEST_F(DriverTsoTest, large_packet_that_cannot_be_mapped_is_dropped_whole)
{
    for (int i = 1; i <= 11; ++i) {
        const unsigned int drops = world.drops;
        world.fail_mapping = i;
        world.transmit(large(3000, 700, 1000));
        EXPECT_EQ(world.drops, drops + 1) << i;
        EXPECT_TRUE(world.sent.empty());
    }
    world.fail_mapping = 0;
    world.transmit(large(3000, 700, 1000));
    EXPECT_EQ(world.sent.size(), 3U);
    world.complete_sends(3);
}

TEST_F(DriverTsoTest, large_packet_on_a_queue_that_waits_for_its_restart_is_dropped)
{
    world.sends_until_failure = 0;
    world.transmit(world.packet(peer(1)));
    ASSERT_TRUE(world.dev().stopped);
    world.sends_until_failure = -1;
    const std::size_t sent = world.sent.size();
    world.transmit(large(3000, 700, 1000));
    EXPECT_EQ(world.sent.size(), sent);
    EXPECT_EQ(world.drops, 1U);
}

TEST_F(DriverTsoTest, segment_of_too_many_fragments_is_linearized)
{
    // The first segment has few fragments, the second too many.
    sk_buff* skb = large(2980, 980, 1000);
    const std::vector<std::uint8_t> second = skb->frags.at(1);
    skb->frags.erase(skb->frags.begin() + 1);
    for (std::size_t i = 0; i < second.size(); i += 10)
        skb->frags.emplace(skb->frags.begin() + 1 + static_cast<long>(i / 10), &second[i], &second[i] + 10);
    world.transmit(skb);
    ASSERT_EQ(world.sent.size(), 3U);
    const auto all = frame({.data = 2980});
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(world.sent[i].addresses.size(), 2U);
        const std::size_t from = 44 + i * 1000, bytes = std::min<std::size_t>(1000, all.size() - from);
        EXPECT_TRUE(std::equal(world.sent[i].bytes.begin() + 44, world.sent[i].bytes.end(), &all[from])) << i;
        EXPECT_EQ(world.sent[i].bytes.size(), 44 + bytes);
    }
    EXPECT_EQ(interface().tx[0].ring.segmented.value(), 3U);
    world.complete_sends(3);
    EXPECT_EQ(world.drops, 0U);
    EXPECT_EQ(world.dev().queued_bytes, 0);
}

TEST_F(DriverTsoTest, segment_of_too_many_fragments_is_dropped_without_memory)
{
    world.fail_allocation = 1;
    world.transmit(large(1000, 10, 1000));
    EXPECT_TRUE(world.sent.empty());
    EXPECT_EQ(world.drops, 1U);
    EXPECT_EQ(world.reasons, std::set{SHIM_DROP_NOMEM});
    EXPECT_EQ(interface().tx_dropped.value(), 1U);
    EXPECT_EQ(world.dev().queued_bytes, 0);
}

TEST_F(DriverTsoTest, larger_rings_allow_more_segments)
{
    world.rtnl = true;
    EXPECT_EQ(world.dev().max_segments, 32U);
    ASSERT_TRUE(interface().settings.set_ring_sizes({8192, 128}).ok());
    EXPECT_EQ(world.dev().segments_limit, 64U);
    EXPECT_EQ(world.dev().max_segments, 64U);
    ASSERT_TRUE(interface().settings.set_ring_sizes({128, 128}).ok());
    EXPECT_EQ(world.dev().max_segments, 32U);
    world.rtnl = false;
}

TEST_F(DriverTsoTest, users_segment_limit_survives_ring_changes)
{
    world.rtnl = true;
    ASSERT_TRUE(interface().settings.set_ring_sizes({8192, 128}).ok());
    // ip link set ib0 gso_max_segs 40
    world.dev().max_segments = 40;
    ASSERT_TRUE(interface().settings.set_ring_sizes({128, 128}).ok());
    EXPECT_EQ(world.dev().max_segments, 32U);
    ASSERT_TRUE(interface().settings.set_ring_sizes({256, 128}).ok());
    EXPECT_EQ(world.dev().max_segments, 40U);
    world.rtnl = false;
}

TEST_F(DriverTsoTest, queue_stops_without_space_for_the_largest_packet)
{
    EXPECT_EQ(world.dev().max_segments, 32U);
    for (int i = 0; i < 3; ++i)
        world.transmit(large(32000, 2000, 1000));
    EXPECT_FALSE(world.dev().stopped);
    world.transmit(world.packet(peer(1)));
    EXPECT_TRUE(world.dev().stopped);
    world.complete_sends(97);
    EXPECT_FALSE(world.dev().stopped);
    EXPECT_EQ(world.dev().queued_bytes, 0);
}

TEST_F(DriverTsoTest, partial_checksum_is_filled_in)
{
    sk_buff* skb = world.packet(peer(1));
    skb->wants_checksum = true;
    world.transmit(skb);
    EXPECT_FALSE(skb->wants_checksum);
    ASSERT_EQ(world.sent.size(), 1U);
    EXPECT_FALSE(world.sent[0].checksum);
    world.complete_sends(1);
}

// HCA whose sends have one element

class OneElementTest : public OffloadTest {
protected:
    void SetUp() override
    {
        world.ca.send_sges = 1;
        world.features = SHIM_FEATURE_IP_CSUM;
        OffloadTest::SetUp();
    }
};

TEST_F(OneElementTest, stack_is_offered_neither_fragments_nor_large_packets)
{
    EXPECT_EQ(world.dev().features, SHIM_FEATURE_IP_CSUM | SHIM_FEATURE_GRO_HW);
}

TEST_F(OneElementTest, packet_of_fragments_is_linearized)
{
    sk_buff* skb = world.packet(peer(1));
    skb->frags = {std::vector<std::uint8_t>(100, 1)};
    world.transmit(skb);
    ASSERT_EQ(world.sent.size(), 1U);
    EXPECT_EQ(world.sent[0].addresses.size(), 1U);
    EXPECT_EQ(world.sent[0].bytes.size(), 4U + 60 + 100);
    world.complete_sends(1);
}

} // namespace
} // namespace ipoib
