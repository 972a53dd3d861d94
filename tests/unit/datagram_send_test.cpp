// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The send ring: doorbells, completions, a full ring, failures; packets that cannot be sent, hard headers.
#include "datagram_test.hpp"

namespace ipoib {
namespace {

TEST_F(DatagramTest, burst_rings_one_doorbell_and_signals_its_last_send)
{
    for (int i = 0; i < 10; ++i)
        world.transmit(world.packet(peer(1)), i < 9);
    EXPECT_EQ(world.doorbells, 1U);
    ASSERT_EQ(world.sent.size(), 10U);
    EXPECT_TRUE(world.sent.back().signaled);
    world.complete_sends(10);
    EXPECT_EQ(statistics().tx_packets, 11U);
    EXPECT_EQ(world.dev().queued_bytes, 0);
}

TEST_F(DatagramTest, burst_that_ends_with_a_dropped_packet_is_sent)
{
    world.transmit(world.packet(peer(1)), true);
    EXPECT_EQ(world.doorbells, 0U);
    world.transmit(world.packet(peer(1), 0x88cc), false);
    EXPECT_EQ(world.doorbells, 1U);
    EXPECT_EQ(world.drops, 1U);
}

TEST_F(DatagramTest, encapsulation_replaces_the_hard_header_on_the_wire)
{
    world.transmit(world.packet(peer(1), 0x86dd, 10));
    const auto& bytes = world.sent.back().bytes;
    ASSERT_EQ(bytes.size(), 14U);
    EXPECT_EQ(bytes[0], 0x86);
    EXPECT_EQ(bytes[1], 0xdd);
    EXPECT_EQ(bytes[2], 0);
    EXPECT_EQ(bytes[3], 0);
}

TEST_F(DatagramTest, full_ring_stops_the_queue_until_sends_complete)
{
    for (int i = 0; i < 128; ++i) {
        EXPECT_FALSE(world.dev().stopped);
        world.transmit(world.packet(peer(1)), true);
    }
    EXPECT_TRUE(world.dev().stopped);
    EXPECT_EQ(world.qp().outstanding.size(), 128U);
    world.complete_sends(63);
    EXPECT_TRUE(world.dev().stopped);
    world.complete_sends(65);
    EXPECT_FALSE(world.dev().stopped);
}

TEST_F(DatagramTest, half_free_ring_starts_the_queue)
{
    // Completions come for every 16th send.
    while (interface().tx[0].ring.index().head() % 16 != 0)
        world.transmit(world.packet(peer(1)));
    world.complete_sends(world.qp().outstanding.size());
    while (!world.dev().stopped)
        world.transmit(world.packet(peer(1)), true);
    world.complete_sends(48);
    EXPECT_TRUE(world.dev().stopped);
    world.complete_sends(16);
    EXPECT_EQ(interface().tx[0].ring.index().free(), 64U);
    EXPECT_FALSE(world.dev().stopped);
    world.complete_sends(64);
}

TEST_F(DatagramTest, few_sends_raise_no_event_and_are_reaped_by_the_receive_poll)
{
    const std::uint64_t before = statistics().tx_packets;
    world.transmit(world.packet(peer(1)));
    world.finish_sends(1);
    EXPECT_EQ(statistics().tx_packets, before);
    ASSERT_TRUE(world.receive(frame()));
    EXPECT_EQ(statistics().tx_packets, before + 1);
}

TEST_F(DatagramTest, few_sends_are_reaped_soon_without_received_packets)
{
    const std::uint64_t before = statistics().tx_packets;
    for (std::uint64_t i = 1; i <= 5; ++i) {
        world.transmit(world.packet(peer(1)));
        world.finish_sends(1);
        world.advance(1);
        world.run_polls();
        EXPECT_EQ(statistics().tx_packets, before + i);
    }
    // Sends that take longer are still reaped.
    world.transmit(world.packet(peer(1)));
    for (int i = 0; i < 3; ++i) {
        world.advance(1);
        world.run_polls();
    }
    world.finish_sends(1);
    world.advance(1);
    world.run_polls();
    EXPECT_EQ(statistics().tx_packets, before + 6);
}

TEST_F(DatagramTest, few_sends_that_never_complete_restart_the_queues)
{
    const unsigned int wakes = world.dev().wakes;
    world.transmit(world.packet(peer(1)));
    world.advance(10 * shim_hz());
    EXPECT_EQ(world.dev().wakes, wakes) << "the first look only remembers them";
    world.advance(10 * shim_hz());
    EXPECT_EQ(world.dev().wakes, wakes + 1);
    EXPECT_EQ(world.dev().queued_bytes, 0);
}

TEST_F(DatagramTest, sends_completed_in_time_restart_no_queue)
{
    const unsigned int wakes = world.dev().wakes;
    // Each check finds outstanding sends, but different ones.
    for (int look = 0; look < 5; ++look) {
        world.transmit(world.packet(peer(1)));
        world.advance(10 * shim_hz());
        world.transmit(world.packet(peer(1)));
        world.complete_sends(1);
    }
    EXPECT_EQ(world.dev().wakes, wakes);
    world.complete_sends(5);
    // An idle ring is not taken for a stalled one.
    world.advance(60 * shim_hz());
    EXPECT_EQ(world.dev().wakes, wakes);
}

TEST_F(DatagramTest, many_sends_raise_an_event)
{
    const std::uint64_t before = statistics().tx_packets;
    for (int i = 0; i < 33; ++i)
        world.transmit(world.packet(peer(1)));
    world.finish_sends(33);
    EXPECT_EQ(statistics().tx_packets, before + 33);
}

TEST_F(DatagramTest, many_bytes_raise_an_event)
{
    const std::uint64_t before = statistics().tx_packets;
    for (int i = 0; i < 9; ++i)
        world.transmit(world.packet(peer(1), 0x0800, 2000));
    world.finish_sends(9);
    EXPECT_EQ(statistics().tx_packets, before + 9);
    world.transmit(world.packet(peer(1), 0x0800, 2000));
    world.finish_sends(1);
    EXPECT_EQ(statistics().tx_packets, before + 9) << "those are handled";
}

TEST_F(DatagramTest, sends_at_the_byte_queue_limit_raise_an_event)
{
    const std::uint64_t before = statistics().tx_packets;
    world.dev().limited = true;
    world.transmit(world.packet(peer(1)));
    world.finish_sends(1);
    EXPECT_EQ(statistics().tx_packets, before + 1);
}

TEST_F(DatagramTest, ring_wraps_around)
{
    for (int round = 0; round < 50; ++round) {
        for (int i = 0; i < 100; ++i)
            world.transmit(world.packet(peer(1)), i % 7 != 6 && i != 99);
        world.complete_sends(100);
    }
    EXPECT_EQ(statistics().tx_packets, 5001U);
    EXPECT_EQ(statistics().tx_bytes, 5001U * 60);
    EXPECT_EQ(world.dev().queued_bytes, 0);
}

TEST_F(DatagramTest, failed_send_is_counted_and_the_queue_recovers)
{
    world.transmit(world.packet(peer(1)));
    world.qp().state = "sqe";
    world.complete_sends(1, 4);
    EXPECT_EQ(statistics().tx_errors, 1U);
    world.run_work();
    EXPECT_EQ(world.qp().state, "rts");
}

TEST_F(DatagramTest, stop_frees_sends_without_completions)
{
    for (int i = 0; i < 20; ++i)
        world.transmit(world.packet(peer(1)));
    close();
    EXPECT_EQ(world.qp().state, "reset");
    EXPECT_TRUE(world.skbs.empty());
}

TEST_F(DatagramTest, failed_post_restarts_the_queues)
{
    world.sends_until_failure = 0;
    world.transmit(world.packet(peer(1)));
    EXPECT_TRUE(world.dev().stopped);
    world.transmit(world.packet(peer(1)));
    EXPECT_EQ(world.drops, 1U);
    world.run_work();
    EXPECT_EQ(world.qp().state, "rts");
    EXPECT_FALSE(world.dev().stopped);
    world.answer_broadcast();
    world.run_work();
    meet(peer(1));
}

TEST_F(DatagramTest, refused_sends_are_not_waited_for)
{
    world.sends_until_failure = 1;
    for (int i = 0; i < 3; ++i)
        world.transmit(world.packet(peer(1)), i < 2);
    EXPECT_EQ(world.qp().outstanding.size(), 1U);
    EXPECT_EQ(world.skbs.size(), 3U) << "the first may be sent still, and who waits for it waits for them";
    world.run_work();
    EXPECT_TRUE(world.skbs.empty());
    EXPECT_EQ(world.log.size(), 1U) << "the failed post; no sends that were not completed";
}

TEST_F(DatagramTest, oversized_packet_is_dropped_with_an_icmp_error)
{
    world.transmit(world.packet(peer(1), 0x0800, 2045));
    EXPECT_EQ(world.updated_pmtus, std::vector<unsigned int>{2044});
    EXPECT_TRUE(world.rejected_mtus.empty()) << "not under the transmit lock";
    world.run_work();
    EXPECT_EQ(world.rejected_mtus, std::vector<unsigned int>{2044});
    EXPECT_EQ(statistics().tx_dropped, 1U);
    EXPECT_EQ(statistics().tx_errors, 1U);
    EXPECT_TRUE(logged("packet len %u (> %u) too long to send, dropping"));
    world.transmit(world.packet(peer(1), 0x0800, 2044));
    EXPECT_EQ(world.sent.size(), 1U);
}

TEST_F(DatagramTest, icmp_error_that_waits_when_the_hca_goes_is_not_sent)
{
    world.transmit(world.packet(peer(1), 0x0800, 2045));
    // An item of the interface's work queue takes long.
    world.busy_queues.push_back(interface().work_queue.native());
    world.stop();
    world.busy_queues.clear();
    world.run_work();
    EXPECT_TRUE(world.skbs.empty());
    EXPECT_TRUE(world.rejected_mtus.empty());
    world.start();
}

// A head and three fragments: if one mapping fails, the earlier ones are undone and the packet is dropped once.
TEST_F(DatagramTest, partly_mapped_packet_is_unmapped_and_dropped)
{
    const std::size_t before = world.mappings.size();
    const auto fragmented = [&] {
        sk_buff* skb = world.packet(peer(1), 0x0800, 60);
        skb->frags = {std::vector<std::uint8_t>(100, 1), std::vector<std::uint8_t>(200, 2),
                      std::vector<std::uint8_t>(300, 3)};
        return skb;
    };
    for (unsigned int failing = 1; failing <= 4; ++failing) {
        world.fail_mapping = failing;
        world.transmit(fragmented());
        EXPECT_EQ(world.mappings.size(), before);
        EXPECT_EQ(world.drops, failing);
    }
    EXPECT_TRUE(world.sent.empty());
    world.transmit(fragmented());
    ASSERT_EQ(world.sent.size(), 1U);
    EXPECT_EQ(world.sent.back().bytes.size(), 4 + 60 + 600U);
    EXPECT_EQ(world.mappings.size(), before + 4);
}

TEST_F(DatagramTest, packet_shorter_than_its_header_is_dropped)
{
    sk_buff* skb = world.packet(peer(1), 0x0800, 0);
    skb->bytes.resize(skb->bytes.size() - 1);
    world.transmit(skb);
    EXPECT_EQ(world.drops, 1U);
}

TEST_F(DatagramTest, packet_whose_linear_part_is_its_header_alone_is_sent)
{
    sk_buff* skb = world.packet(peer(1), 0x0800, 0);
    skb->frags = {std::vector<std::uint8_t>(100, 1)};
    world.transmit(skb);
    ASSERT_EQ(world.sent.size(), 1U);
    EXPECT_EQ(world.sent[0].bytes.size(), 4U + 100);
    world.complete_sends(1);
}

TEST_F(DatagramTest, packet_of_too_many_fragments_is_linearized_or_dropped)
{
    const auto in_pieces = [&] {
        sk_buff* skb = world.packet(peer(1));
        skb->frags.assign(30, std::vector<std::uint8_t>(10));
        return skb;
    };
    world.transmit(in_pieces());
    ASSERT_EQ(world.sent.size(), 1U);
    EXPECT_EQ(world.sent[0].bytes.size(), 4U + 60 + 300);
    world.complete_sends(1);
    world.fail_allocation = 1;
    world.transmit(in_pieces());
    EXPECT_EQ(world.sent.size(), 1U);
    EXPECT_EQ(world.drops, 1U);
    EXPECT_TRUE(world.reasons.contains(SHIM_DROP_NOMEM));
}

TEST_F(DatagramTest, completion_while_the_queue_is_being_stopped_starts_the_queue)
{
    for (int i = 0; i < 127; ++i)
        world.transmit(world.packet(peer(1)));
    ASSERT_FALSE(world.dev().stopped);
    // One free slot is too few to wake a stopped queue.
    world.meanwhile = [&] { world.finish_sends(1); };
    world.transmit(world.packet(peer(1)));
    EXPECT_EQ(interface().tx[0].stops.value(), 1U);
    EXPECT_FALSE(world.dev().stopped);
    world.complete_sends(127);
}

// Barrier in expect_completions(): a poll that ends there sees the send that was just posted, and the sender's later
// reads see the state after that poll.
TEST_F(DatagramTest, send_during_the_end_of_a_poll_is_reaped)
{
    world.transmit(world.packet(peer(1)));
    bool met = false;
    world.meanwhile = [&] {
        EXPECT_EQ(interface().tx[0].outstanding(), 2U);
        world.finish_sends(1);
        world.advance(2);
        world.run_polls();
        EXPECT_EQ(interface().tx[0].outstanding(), 1U);
        met = true;
    };
    world.transmit(world.packet(peer(1)));
    EXPECT_TRUE(met);
    world.finish_sends(1);
    world.advance(2);
    world.run_polls();
    EXPECT_EQ(interface().tx[0].outstanding(), 0U);
}

TEST_F(DatagramTest, netpoll_reaps_one_send_and_receives_nothing)
{
    for (int i = 0; i < 3; ++i)
        world.transmit(world.packet(peer(1)));
    world.finish_sends(3);
    EXPECT_EQ(interface().tx[0].poll(0), 0);
    EXPECT_EQ(interface().tx[0].outstanding(), 2U);
    EXPECT_EQ(interface().rx[0].poll(0), 0);
    world.advance(2);
    world.run_polls();
    EXPECT_EQ(interface().tx[0].outstanding(), 0U);
}

TEST_F(DatagramTest, header_create_without_a_destination_writes_nothing)
{
    sk_buff* skb = world.packet(peer(1));
    const auto before = skb->start;
    EXPECT_EQ(ipoib_header_create(skb, 0x0800, nullptr), -IPOIB_HEADER_BYTES);
    EXPECT_EQ(skb->start, before);
    world.transmit(skb);
    world.complete_sends(1);
}

// The hard header that the stack caches for a neighbour equals that of a packet.
TEST_F(DatagramTest, cached_header_matches_the_packets_header)
{
    sk_buff* skb = world.packet(peer(1));
    std::array<std::uint8_t, IPOIB_HEADER_BYTES> kept{};
    ipoib_header_write(kept.data(), 0x0800, peer(2).bytes);
    EXPECT_NE(std::memcmp(kept.data(), shim_skb_data(skb), kept.size()), 0);
    ipoib_header_set_destination(kept.data(), peer(1).bytes);
    EXPECT_EQ(std::memcmp(kept.data(), shim_skb_data(skb), kept.size()), 0);
    world.transmit(skb);
    world.complete_sends(1);
}

} // namespace
} // namespace ipoib
