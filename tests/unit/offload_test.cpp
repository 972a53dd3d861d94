// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Offloads: checksums and segmentation left to the HCA in sends, and TCP segments merged in receives.
#include "driver_test.hpp"

namespace ipoib {
namespace {

class OffloadTest : public DriverTest {
protected:
    void SetUp() override
    {
        DriverTest::SetUp();
        open();
        meet(peer(1));
        world.sent.clear();
        world.verified = true;
        world.dev().lro = true;
    }

    struct Tcp {
        std::uint32_t sequence = 1000, acknowledgement = 5;
        std::uint8_t flags = tcp_ack;
        std::size_t data = 100;
        std::uint16_t port = 7;
        bool times = false;
        std::uint32_t time = 0;
        std::uint8_t time_to_live = 64;
        std::uint16_t fragment = 0x4000;
        // TCP's reserved bits, of which the lowest is accurate ECN's AE.
        std::uint8_t reserved = 0;
        // The HCA did not verify the checksum; the packet has 4 bytes of IP options.
        bool unverified = false, ip_options = false;
        std::uint8_t service = 0, protocol = 6;
    };
    static std::vector<std::uint8_t> frame(const Tcp& tcp)
    {
        const std::size_t tcp_bytes = sizeof(TcpHeader) + (tcp.times ? sizeof(TcpTimestamps) : 0);
        std::vector<std::uint8_t> bytes(sizeof(Encapsulation) + sizeof(Ipv4Header) + tcp_bytes + tcp.data);
        bytes[0] = 0x08;
        auto& ip = *reinterpret_cast<Ipv4Header*>(&bytes[4]);
        ip.version_and_length = 0x45;
        ip.service = tcp.service;
        ip.total_bytes = kernel::Be16(static_cast<std::uint16_t>(bytes.size() - 4));
        ip.fragment = kernel::Be16(tcp.fragment);
        ip.time_to_live = tcp.time_to_live;
        ip.protocol = tcp.protocol;
        ip.source = kernel::Be32(0x0a000001);
        ip.destination = kernel::Be32(0x0a000002);
        auto& header = *reinterpret_cast<TcpHeader*>(&ip + 1);
        header.source = kernel::Be16(tcp.port);
        header.sequence = kernel::Be32(tcp.sequence);
        header.acknowledgement = kernel::Be32(tcp.acknowledgement);
        header.length = static_cast<std::uint8_t>(tcp_bytes / 4 << 4 | tcp.reserved);
        header.flags = tcp.flags;
        header.window = kernel::Be16(static_cast<std::uint16_t>(tcp.sequence));
        if (tcp.times)
            *reinterpret_cast<TcpTimestamps*>(&header + 1) = {kernel::Be32(TcpTimestamps::usual_preamble),
                                                              kernel::Be32(tcp.time), kernel::Be32(0)};
        for (std::size_t i = 0; i < tcp.data; ++i)
            bytes[bytes.size() - tcp.data + i] = static_cast<std::uint8_t>(tcp.sequence + i);
        if (tcp.ip_options) {
            ip.version_and_length = 0x46;
            ip.total_bytes = kernel::Be16(static_cast<std::uint16_t>(bytes.size()));
            bytes.insert(bytes.begin() + sizeof(Encapsulation) + sizeof(Ipv4Header), 4, 1);
        }
        return bytes;
    }
    void arrive(std::initializer_list<Tcp> segments)
    {
        world.polls_later = true;
        for (const Tcp& segment : segments) {
            world.verified = !segment.unverified;
            ASSERT_TRUE(world.receive(frame(segment)));
        }
        world.verified = true;
        world.polls_later = false;
        world.run_polls();
    }
    // Sizes of the data in the packets that reached the stack.
    std::vector<std::size_t> received()
    {
        std::vector<std::size_t> sizes;
        for (const sk_buff* skb : world.received)
            sizes.push_back(skb->bytes.size() - skb->start - sizeof(Ipv4Header) - sizeof(TcpHeader));
        return sizes;
    }
    const Ipv4Header& ip_of(std::size_t n)
    {
        return *reinterpret_cast<const Ipv4Header*>(&world.received.at(n)->bytes[world.received.at(n)->start]);
    }
    const TcpHeader& tcp_of(std::size_t n) { return *reinterpret_cast<const TcpHeader*>(&ip_of(n) + 1); }
    using Sizes = std::vector<std::size_t>;
};

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
    EXPECT_EQ(interface().tx.ring.segmented.value(), 5U);
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

// HCA without offloads

class DriverTsoTest : public OffloadTest {
protected:
    void SetUp() override
    {
        world.abilities = SHIM_CAN_GATHER;
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
    EXPECT_EQ(interface().tx.ring.segmented.value(), 6U);
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
    EXPECT_EQ(interface().tx.ring.segmented.value(), 3U);
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
    EXPECT_EQ(world.reasons, std::set{SHIM_DROP_NO_MEMORY});
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

TEST_F(OffloadTest, consecutive_segments_are_merged)
{
    arrive({{.sequence = 1000},
            {.sequence = 1100, .acknowledgement = 9},
            {.sequence = 1200, .acknowledgement = 9, .flags = 0x18}});
    EXPECT_EQ(received(), Sizes{300});
    EXPECT_EQ(ip_of(0).total_bytes.value(), 340);
    EXPECT_EQ(internet_checksum(&ip_of(0), sizeof(Ipv4Header)), 0);
    EXPECT_EQ(tcp_of(0).acknowledgement.value(), 9U);
    EXPECT_EQ(tcp_of(0).window.value(), 1200);
    EXPECT_EQ(tcp_of(0).flags, tcp_ack | tcp_psh);
    const sk_buff& skb = *world.received[0];
    EXPECT_EQ(skb.segments, 3U);
    EXPECT_EQ(skb.segment_bytes, 100U);
    for (std::size_t i = 0; i < 300; ++i)
        ASSERT_EQ(skb.bytes[skb.start + 40 + i], static_cast<std::uint8_t>(1000 + i)) << i;
    EXPECT_EQ(statistics().rx_packets, 3U);
    EXPECT_EQ(statistics().rx_bytes, 3 * 140U);
    EXPECT_EQ(interface().rx.merged.value(), 2U);
}

TEST_F(OffloadTest, end_of_poll_delivers_merged_segments)
{
    arrive({{.sequence = 1000}});
    EXPECT_EQ(received(), Sizes{100});
    EXPECT_EQ(world.received[0]->segments, 0U);
    EXPECT_TRUE(world.received[0]->verified);
    arrive({{.sequence = 1100}});
    EXPECT_EQ(received(), (Sizes{100, 100}));
}

TEST_F(OffloadTest, irregular_segments_are_delivered_alone_and_in_order)
{
    // A gap; a flag; another time to live; less data, then more; a lower acknowledgement number.
    arrive({{.sequence = 1000}, {.sequence = 1300}});
    arrive({{.sequence = 2000}, {.sequence = 2100, .flags = tcp_ack | 0x01}, {.sequence = 2201}});
    arrive({{.sequence = 3000}, {.sequence = 3100, .time_to_live = 63}});
    arrive({{.sequence = 4000, .data = 50}, {.sequence = 4050, .data = 60}});
    arrive({{.sequence = 5000}, {.sequence = 5100, .acknowledgement = 4}});
    EXPECT_EQ(received(), (Sizes{100, 100, 100, 100, 100, 100, 100, 50, 60, 100, 100}));
    for (std::size_t i = 0; i + 1 < world.received.size(); ++i)
        EXPECT_LT(tcp_of(i).sequence.value(), tcp_of(i + 1).sequence.value());
    EXPECT_EQ(interface().rx.merged.value(), 0U);
}

// Other packets of a flow are delivered behind its held segments: a segment with IP options, a fragment, one whose
// checksum the HCA did not verify.
TEST_F(OffloadTest, unmergeable_packets_stay_behind_the_segments_of_their_flow)
{
    arrive({{.sequence = 1000}, {.sequence = 1100}, {.sequence = 1200, .data = 10, .ip_options = true}});
    arrive({{.sequence = 2000}, {.sequence = 2100}, {.sequence = 2200, .data = 11, .fragment = 0x2000}});
    arrive({{.sequence = 3000}, {.sequence = 3100}, {.sequence = 3200, .data = 12, .unverified = true}});
    EXPECT_EQ(received(), (Sizes{200, 14, 200, 11, 200, 12}));
}

// UDP and TCP packets have no order among themselves.
TEST_F(OffloadTest, datagram_between_segments_does_not_end_merging)
{
    arrive({{.sequence = 1000}, {.data = 10, .protocol = 17}, {.sequence = 1100}});
    EXPECT_EQ(received(), (Sizes{10, 200}));
}

// Shared receive queues with few SGEs, so that packets of connections are not built in their page.
class FewSgesTest : public OffloadTest {
protected:
    void SetUp() override
    {
        world.srq_sges = 4;
        OffloadTest::SetUp();
    }
};

TEST_F(FewSgesTest, connected_messages_stay_behind_the_segments_of_their_flow)
{
    ASSERT_NE(world.request(gid(1), 0x100), nullptr);
    ib_qp* const connection = world.qps.back();
    world.polls_later = true;
    ASSERT_TRUE(world.receive(frame({.sequence = 1000})));
    ASSERT_TRUE(world.receive(frame({.sequence = 1100})));
    ASSERT_TRUE(world.receive_message(*connection, frame({.sequence = 1200, .data = 1000})));
    world.polls_later = false;
    world.run_polls();
    EXPECT_EQ(received(), (Sizes{200, 1000}));
}

TEST_F(OffloadTest, segments_that_differ_in_reserved_bits_or_fragmentation_are_not_merged)
{
    arrive({{.sequence = 1000}, {.sequence = 1100, .reserved = 1}});
    arrive({{.sequence = 2000}, {.sequence = 2100, .fragment = 0}});
    arrive({{.sequence = 3000, .reserved = 1}, {.sequence = 3100, .reserved = 1}});
    EXPECT_EQ(received(), (Sizes{100, 100, 100, 100, 200}));
}

TEST_F(OffloadTest, segments_with_different_congestion_marks_are_not_merged)
{
    // RFC 3168: ECT(0) in the two low bits of the service, then CE, which a router set.
    arrive({{.sequence = 1000, .service = 2}, {.sequence = 1100, .service = 2}, {.sequence = 1200, .service = 3}});
    EXPECT_EQ(received(), (Sizes{200, 100}));
    EXPECT_EQ(ip_of(0).service, 2);
    EXPECT_EQ(ip_of(1).service, 3);
    // Another traffic class is no congestion mark, and differs from the flow's.
    arrive({{.sequence = 1300, .service = 2}, {.sequence = 1400, .service = 0x22}});
    EXPECT_EQ(received(), (Sizes{200, 100, 100, 100}));
    // Segments with ECE or CWR are delivered alone.
    arrive(
        {{.sequence = 1500}, {.sequence = 1600, .flags = tcp_ack | 0x40}, {.sequence = 1700, .flags = tcp_ack | 0x80}});
    EXPECT_EQ(received(), (Sizes{200, 100, 100, 100, 100, 100, 100}));
}

TEST_F(OffloadTest, fragments_are_not_merged)
{
    arrive({{.sequence = 1000, .fragment = 0x2000}, {.sequence = 1100, .fragment = 0x2000}});
    EXPECT_EQ(received(), (Sizes{100, 100}));
}

TEST_F(OffloadTest, shorter_segment_ends_a_merged_packet)
{
    arrive({{.sequence = 1000}, {.sequence = 1100, .data = 30}, {.sequence = 1130}});
    EXPECT_EQ(received(), (Sizes{130, 100}));
}

TEST_F(OffloadTest, segments_of_different_flows_are_not_merged)
{
    arrive({{.sequence = 1000, .port = 1}, {.sequence = 1100, .port = 2}, {.sequence = 1100, .port = 1}});
    EXPECT_EQ(received(), (Sizes{200, 100}));
}

TEST_F(OffloadTest, excess_flows_lose_no_data)
{
    world.polls_later = true;
    for (std::uint16_t round = 0; round < 2; ++round)
        for (std::uint16_t port = 0; port < 20; ++port)
            ASSERT_TRUE(world.receive(frame({.sequence = 1000U + 100U * round, .port = port})));
    world.polls_later = false;
    world.run_polls();
    std::size_t sum = 0;
    for (const std::size_t size : received())
        sum += size;
    EXPECT_EQ(sum, 40U * 100U);
}

TEST_F(OffloadTest, merged_packet_holds_at_most_17_segments)
{
    world.polls_later = true;
    for (std::uint32_t i = 0; i < 20; ++i)
        ASSERT_TRUE(world.receive(frame({.sequence = 1000 + 100 * i})));
    world.polls_later = false;
    world.run_polls();
    EXPECT_EQ(received(), (Sizes{1700, 300}));
}

TEST_F(OffloadTest, segments_with_older_timestamps_are_not_merged)
{
    arrive({{.sequence = 1000, .times = true, .time = 5}, {.sequence = 1100, .times = true, .time = 6}});
    arrive({{.sequence = 2000, .times = true, .time = 6}, {.sequence = 2100, .times = true, .time = 5}});
    arrive({{.sequence = 3000, .times = true, .time = 6}, {.sequence = 3100}});
    EXPECT_EQ(received(), (Sizes{212, 112, 112, 112, 100}));
    EXPECT_EQ(reinterpret_cast<const TcpTimestamps*>(&tcp_of(0) + 1)->value.value(), 6U);
}

TEST_F(OffloadTest, merging_needs_lro_and_verified_checksums)
{
    arrive({{.sequence = 1000, .unverified = true}, {.sequence = 1100, .unverified = true}});
    world.dev().rx_checksum = false;
    arrive({{.sequence = 1200}, {.sequence = 1300}});
    EXPECT_FALSE(world.received.back()->verified);
    world.dev().rx_checksum = true;
    world.dev().lro = false;
    arrive({{.sequence = 1400}, {.sequence = 1500}});
    EXPECT_EQ(received(), (Sizes{100, 100, 100, 100, 100, 100}));
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

TEST_F(OffloadTest, segments_with_other_options_are_not_merged)
{
    world.polls_later = true;
    for (const std::uint32_t sequence : {1000U, 1096U}) {
        auto bytes = frame({.sequence = sequence});
        // The first four bytes of the data become options.
        auto& ip = *reinterpret_cast<Ipv4Header*>(&bytes[sizeof(Encapsulation)]);
        reinterpret_cast<TcpHeader*>(&ip + 1)->length = (sizeof(TcpHeader) + 4) / 4 << 4;
        ASSERT_TRUE(world.receive(bytes));
    }
    world.polls_later = false;
    world.run_polls();
    EXPECT_EQ(world.received.size(), 2U);
}

} // namespace
} // namespace ipoib
