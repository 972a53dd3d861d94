// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// TCP segments merged in receives, and packets that must not be merged.
#include "offload_test.hpp"

namespace ipoib {
namespace {

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
    EXPECT_EQ(interface().rx[0].merged.value(), 2U);
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
    EXPECT_EQ(interface().rx[0].merged.value(), 0U);
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
