// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// TCP segments merged in receives, and packets that must not be merged.
#include "offload_test.hpp"

namespace ipoib {
namespace {

TEST_F(OffloadTest, consecutive_segments_are_merged)
{
    arrive({{.sequence = 1000}, {.sequence = 1300}, {.sequence = 1600, .flags = tcp_ack | tcp_psh}});
    EXPECT_EQ(received(), Sizes{900});
    EXPECT_EQ(ip_of(0).total_bytes.value(), 940);
    EXPECT_EQ(internet_checksum(&ip_of(0), sizeof(Ipv4Header)), 0);
    EXPECT_EQ(tcp_of(0).flags, tcp_ack | tcp_psh);
    const sk_buff& skb = *world.received[0];
    EXPECT_EQ(skb.segments, 3U);
    EXPECT_EQ(skb.segment_bytes, 300U);
    for (std::size_t i = 0; i < 900; ++i)
        ASSERT_EQ(skb.bytes[skb.start + 40 + i], static_cast<std::uint8_t>(1000 + i)) << i;
    EXPECT_EQ(statistics().rx_packets, 3U);
    EXPECT_EQ(statistics().rx_bytes, 3 * 340U);
    EXPECT_EQ(interface().rx[0].merged.value(), 2U);
}

TEST_F(OffloadTest, end_of_poll_delivers_merged_segments)
{
    arrive({{.sequence = 1000}});
    EXPECT_EQ(received(), Sizes{300});
    EXPECT_EQ(world.received[0]->segments, 0U);
    EXPECT_TRUE(world.received[0]->verified);
    arrive({{.sequence = 1300}});
    EXPECT_EQ(received(), (Sizes{300, 300}));
}

TEST_F(OffloadTest, segment_without_memory_for_its_packet_is_dropped)
{
    world.fail_allocation = 1;
    arrive({{.sequence = 1000}, {.sequence = 1300}, {.sequence = 1600}});
    EXPECT_EQ(received(), Sizes{600});
    EXPECT_EQ(statistics().rx_dropped, 1U);
}

TEST_F(OffloadTest, irregular_segments_are_delivered_alone_and_in_order)
{
    // A gap; a flag; another time to live; less data, then more; another acknowledgement number.
    arrive({{.sequence = 1000}, {.sequence = 1900}});
    arrive({{.sequence = 2000}, {.sequence = 2300, .flags = tcp_ack | 0x01}, {.sequence = 2601}});
    arrive({{.sequence = 3000}, {.sequence = 3300, .time_to_live = 63}});
    arrive({{.sequence = 4000, .data = 280}, {.sequence = 4280, .data = 290}});
    arrive({{.sequence = 5000}, {.sequence = 5300, .acknowledgement = 6}});
    EXPECT_EQ(received(), (Sizes{300, 300, 300, 300, 300, 300, 300, 280, 290, 300, 300}));
    for (std::size_t i = 0; i + 1 < world.received.size(); ++i)
        EXPECT_LT(tcp_of(i).sequence.value(), tcp_of(i + 1).sequence.value());
    EXPECT_EQ(interface().rx[0].merged.value(), 0U);
}

// Other packets of a flow are delivered behind its held segments: a segment with IP options, a fragment, one whose
// checksum the HCA did not verify.
TEST_F(OffloadTest, unmergeable_packets_stay_behind_the_segments_of_their_flow)
{
    arrive({{.sequence = 1000}, {.sequence = 1300}, {.sequence = 1600, .data = 10, .ip_options = true}});
    arrive({{.sequence = 2000}, {.sequence = 2300}, {.sequence = 2600, .data = 302, .fragment = 0x2000}});
    arrive({{.sequence = 3000}, {.sequence = 3300}, {.sequence = 3600, .data = 12, .unverified = true}});
    EXPECT_EQ(received(), (Sizes{600, 14, 600, 302, 600, 12}));
}

// UDP and TCP packets have no order among themselves.
TEST_F(OffloadTest, datagram_between_segments_does_not_end_merging)
{
    arrive({{.sequence = 1000}, {.data = 10, .protocol = 17}, {.sequence = 1300}});
    EXPECT_EQ(received(), (Sizes{10, 600}));
}

class ConnectedMergeTest : public OffloadTest {
protected:
    void SetUp() override
    {
        OffloadTest::SetUp();
        ASSERT_NE(world.request(gid(1), 0x100), nullptr);
        connection_ = world.qps.back();
    }
    void arrive_connected(std::initializer_list<Tcp> segments)
    {
        world.polls_later = true;
        for (const Tcp& segment : segments)
            ASSERT_TRUE(world.receive_message(*connection_, frame(segment)));
        world.polls_later = false;
        world.run_polls();
    }
    ib_qp* connection_ = nullptr;
};

TEST_F(ConnectedMergeTest, messages_are_checked_and_merged)
{
    arrive_connected({{.sequence = 1000, .summed = true},
                      {.sequence = 1300, .summed = true},
                      {.sequence = 1600},
                      {.sequence = 1900, .summed = true}});
    EXPECT_EQ(received(), (Sizes{600, 300, 300}));
    EXPECT_TRUE(world.received[0]->verified);
    EXPECT_FALSE(world.received[1]->verified);
    EXPECT_EQ(interface().rx[0].merged.value(), 1U);
}

TEST_F(ConnectedMergeTest, message_without_memory_for_its_packet_is_dropped)
{
    world.fail_allocation = 1;
    arrive_connected({{.sequence = 1000, .summed = true}, {.sequence = 1300, .summed = true}});
    EXPECT_EQ(received(), Sizes{300});
    EXPECT_EQ(statistics().rx_dropped, 1U);
}

TEST_F(ConnectedMergeTest, message_of_several_pieces_stays_behind_the_segments_of_its_flow)
{
    arrive_connected({{.sequence = 1000, .summed = true},
                      {.sequence = 1300, .summed = true},
                      {.sequence = 1600, .data = 9000, .summed = true}});
    EXPECT_EQ(received(), (Sizes{600, 9000}));
}

TEST_F(ConnectedMergeTest, message_without_a_new_buffer_is_dropped)
{
    world.polls_later = true;
    ASSERT_TRUE(world.receive_message(*connection_, frame({.sequence = 1000, .summed = true})));
    ASSERT_TRUE(world.receive_message(*connection_, frame({.sequence = 1300, .summed = true})));
    world.polls_later = false;
    // The first message's new buffer is mapped, the second one's is not.
    world.fail_mapping = 2;
    world.run_polls();
    EXPECT_EQ(received(), Sizes{300});
    EXPECT_EQ(statistics().rx_dropped, 1U);
    EXPECT_EQ(interface().rx[0].merged.value(), 0U);
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
    ASSERT_TRUE(world.receive(frame({.sequence = 1300})));
    ASSERT_TRUE(world.receive_message(*connection, frame({.sequence = 1600, .data = 1000})));
    world.polls_later = false;
    world.run_polls();
    EXPECT_EQ(received(), (Sizes{600, 1000}));
}

TEST_F(OffloadTest, segments_that_differ_in_reserved_bits_or_fragmentation_are_not_merged)
{
    arrive({{.sequence = 1000}, {.sequence = 1300, .reserved = 1}});
    arrive({{.sequence = 2000}, {.sequence = 2300, .fragment = 0}});
    arrive({{.sequence = 3000, .reserved = 1}, {.sequence = 3300, .reserved = 1}});
    EXPECT_EQ(received(), (Sizes{300, 300, 300, 300, 600}));
}

TEST_F(OffloadTest, segments_with_different_congestion_marks_are_not_merged)
{
    // RFC 3168: ECT(0) in the two low bits of the service, then CE, which a router set.
    arrive({{.sequence = 1000, .service = 2}, {.sequence = 1300, .service = 2}, {.sequence = 1600, .service = 3}});
    EXPECT_EQ(received(), (Sizes{600, 300}));
    EXPECT_EQ(ip_of(0).service, 2);
    EXPECT_EQ(ip_of(1).service, 3);
    // Another traffic class is no congestion mark, and differs from the flow's.
    arrive({{.sequence = 1900, .service = 2}, {.sequence = 2200, .service = 0x22}});
    EXPECT_EQ(received(), (Sizes{600, 300, 300, 300}));
    // Segments with ECE or CWR are delivered alone.
    arrive(
        {{.sequence = 2500}, {.sequence = 2800, .flags = tcp_ack | 0x40}, {.sequence = 3100, .flags = tcp_ack | 0x80}});
    EXPECT_EQ(received(), (Sizes{600, 300, 300, 300, 300, 300, 300}));
}

TEST_F(OffloadTest, fragments_are_not_merged)
{
    arrive({{.sequence = 1000, .fragment = 0x2000}, {.sequence = 1300, .fragment = 0x2000}});
    EXPECT_EQ(received(), (Sizes{300, 300}));
}

TEST_F(OffloadTest, shorter_segment_ends_a_merged_packet)
{
    arrive({{.sequence = 1000}, {.sequence = 1300, .data = 290}, {.sequence = 1590}});
    EXPECT_EQ(received(), (Sizes{590, 300}));
}

TEST_F(OffloadTest, segments_of_different_flows_are_not_merged)
{
    arrive({{.sequence = 1000, .port = 1}, {.sequence = 1300, .port = 2}, {.sequence = 1300, .port = 1}});
    EXPECT_EQ(received(), (Sizes{600, 300}));
}

TEST_F(OffloadTest, excess_flows_lose_no_data)
{
    world.polls_later = true;
    for (std::uint16_t round = 0; round < 2; ++round)
        for (std::uint16_t port = 0; port < 20; ++port)
            ASSERT_TRUE(world.receive(frame({.sequence = 1000U + 300U * round, .port = port})));
    world.polls_later = false;
    world.run_polls();
    std::size_t sum = 0;
    for (const std::size_t size : received())
        sum += size;
    EXPECT_EQ(sum, 40U * 300U);
}

TEST_F(OffloadTest, merged_packet_holds_at_most_16_segments)
{
    world.polls_later = true;
    for (std::uint32_t i = 0; i < 20; ++i)
        ASSERT_TRUE(world.receive(frame({.sequence = 1000 + 300 * i})));
    world.polls_later = false;
    world.run_polls();
    EXPECT_EQ(received(), (Sizes{4800, 1200}));
}

TEST_F(OffloadTest, segments_with_other_timestamps_are_not_merged)
{
    arrive({{.sequence = 1000, .times = true, .time = 5}, {.sequence = 1300, .times = true, .time = 5}});
    arrive({{.sequence = 2000, .times = true, .time = 5}, {.sequence = 2300, .times = true, .time = 6}});
    arrive({{.sequence = 3000, .times = true, .time = 6}, {.sequence = 3300}});
    EXPECT_EQ(received(), (Sizes{612, 312, 312, 312, 300}));
}

// Segmentation of the merged packet, by a router, counts identifications up and copies the window.
TEST_F(OffloadTest, segments_that_segmentation_would_change_are_not_merged)
{
    arrive({{.sequence = 1000, .identification = 7}, {.sequence = 1300, .identification = 7}});
    arrive({{.sequence = 2000, .identification = 7}, {.sequence = 2300, .identification = 9}});
    arrive({{.sequence = 3000}, {.sequence = 3300, .window = 1001}});
    arrive({{.sequence = 3000}, {.sequence = 3300, .urgent = 1}});
    EXPECT_EQ(received(), (Sizes{300, 300, 300, 300, 300, 300, 300, 300}));
    arrive({{.sequence = 4000, .identification = 0xffff}, {.sequence = 4300, .identification = 0}});
    EXPECT_EQ(received().back(), 600U);
}

TEST_F(OffloadTest, packet_that_comes_alone_is_not_checked)
{
    arrive({{.sequence = 1000, .unverified = true, .summed = true}});
    EXPECT_EQ(received(), Sizes{300});
    EXPECT_FALSE(world.received[0]->verified);
}

TEST_F(OffloadTest, segments_that_the_hca_did_not_verify_are_checked_and_merged)
{
    arrive({{.sequence = 1000, .unverified = true, .summed = true},
            {.sequence = 1300, .unverified = true, .summed = true},
            {.sequence = 1600, .unverified = true},
            {.sequence = 1900, .unverified = true, .summed = true}});
    EXPECT_EQ(received(), (Sizes{600, 300, 300}));
    EXPECT_TRUE(world.received[0]->verified);
    EXPECT_FALSE(world.received[1]->verified);
    EXPECT_TRUE(world.received[2]->verified);
}

// The merged packet's header has another checksum.
TEST_F(OffloadTest, wrong_checksums_of_headers_are_left_to_the_stack)
{
    arrive({{.sequence = 1000}, {.sequence = 1300, .wrong_header = 1}, {.sequence = 1600}});
    arrive({{.sequence = 2000, .wrong_header = 1}, {.sequence = 2300}});
    EXPECT_EQ(received(), (Sizes{300, 300, 300, 300, 300}));
}

TEST_F(OffloadTest, merging_can_be_turned_off)
{
    world.dev().rx_checksum = world.dev().gro_hw = false;
    arrive({{.sequence = 1600}, {.sequence = 1900}});
    EXPECT_FALSE(world.received.back()->verified);
    world.dev().rx_checksum = true;
    arrive({{.sequence = 2200}, {.sequence = 2500}});
    EXPECT_EQ(received(), (Sizes{300, 300, 300, 300}));
}

TEST_F(OffloadTest, small_packets_are_copied)
{
    arrive({{.sequence = 1000}, {.sequence = 1300, .data = 1}});
    EXPECT_EQ(received(), (Sizes{300, 1}));
    EXPECT_EQ(interface().rx[0].copied.value(), 1U);
}

TEST_F(OffloadTest, segments_with_other_options_are_not_merged)
{
    world.polls_later = true;
    for (const std::uint32_t sequence : {1000U, 1296U}) {
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
