// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Active side of connections, on scripted fakes: requests, rejections, failures and release, and the packets that wait
// meanwhile.
#include "connected_test.hpp"

#include <shim/cm.h>
#include <shim/device.h>
#include <shim/ethtool.h>
#include <shim/ndo.h>

namespace ipoib {
namespace {

TEST_F(ConnectedTest, mode_changes_set_the_mtu)
{
    EXPECT_EQ(world.dev().mtu, 65520U);
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 9000), 0);
    EXPECT_EQ(world.dev().mtu, 9000U);
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 65521), -22);
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 71), -22);
    set_mode("datagram");
    EXPECT_EQ(world.dev().mtu, 2044U);
    set_mode("connected");
    EXPECT_EQ(world.dev().mtu, 65520U);
}

TEST_F(ConnectedTest, mtu_follows_a_larger_group_after_connected_mode)
{
    set_mode("datagram");
    EXPECT_EQ(world.dev().mtu, 2044U);
    world.event(SHIM_IB_EVENT_LID_CHANGE);
    world.run_work();
    world.answer_broadcast(0, 5);
    world.run_work();
    EXPECT_EQ(world.dev().mtu, 4092U);
}

TEST_F(ConnectedTest, first_packet_sends_one_request_and_waits_for_the_reply)
{
    ib_cm_id* id = ask(capable(1), 100);
    ASSERT_NE(id, nullptr);
    EXPECT_EQ(id->service_id, 0x1000000000000100U);
    EXPECT_TRUE(shows("state requested"));
    EXPECT_FALSE(shows("icrc")) << "which the peer has not agreed to yet";
    const std::vector<std::uint8_t> introduction{0, 0, 0, 0x48, 0, 0, 0xff, 0xf4};
    EXPECT_EQ(id->private_data, introduction);
    for (std::size_t i = 1; i < 5; ++i)
        world.transmit(world.packet(capable(1), 0x0800, 100 + i));
    world.run_work();
    EXPECT_EQ(world.take_request(), nullptr);
    EXPECT_TRUE(world.sent.empty());
    world.reply(id);
    EXPECT_EQ(id->sent, (std::vector<std::string>{"REQ", "RTU"}));
    ASSERT_EQ(world.sent.size(), 5U);
    for (std::size_t i = 0; i < 5; ++i)
        EXPECT_EQ(world.sent[i].bytes.size(), 104 + i);
    EXPECT_EQ(world.qps.back()->outstanding.size(), 5U);
    EXPECT_TRUE(shows("state established mtu 65520 queue    5"));
    world.complete_messages(*world.qps.back(), 5);
    EXPECT_EQ(statistics().tx_packets, 5U);
    EXPECT_EQ(world.dev().queued_bytes, 0);
}

TEST_F(ConnectedTest, peers_without_the_connected_flag_get_datagrams)
{
    meet(peer(1));
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(world.sent.size(), 1U);
}

TEST_F(ConnectedTest, datagram_mode_sends_no_request)
{
    set_mode("datagram");
    meet(capable(1));
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(world.sent.size(), 1U);
}

TEST_F(ConnectedTest, burst_rings_one_doorbell_and_signals_its_last_send)
{
    ib_qp* qp = connect(capable(1));
    const unsigned int before = world.doorbells;
    for (int i = 0; i < 10; ++i)
        world.transmit(world.packet(capable(1)), i < 9);
    EXPECT_EQ(world.doorbells, before + 1);
    ASSERT_EQ(qp->outstanding.size(), 10U);
    for (std::size_t i = 0; i < 9; ++i)
        EXPECT_FALSE(qp->outstanding[i].signaled) << i;
    EXPECT_TRUE(qp->outstanding[9].signaled);
    world.complete_messages(*qp, 10);
    EXPECT_EQ(statistics().tx_packets, 11U);
}

TEST_F(ConnectedTest, burst_to_several_peers_rings_each_doorbell)
{
    ib_qp* one = connect(capable(1));
    ib_qp* two = connect(capable(2));
    for (int i = 0; i < 6; ++i)
        world.transmit(world.packet(capable(i % 2 ? 2 : 1)), i < 5);
    EXPECT_EQ(one->outstanding.size(), 3U);
    EXPECT_EQ(two->outstanding.size(), 3U);
    world.complete_messages(*two, 3);
    world.complete_messages(*one, 3);
    EXPECT_EQ(statistics().tx_packets, 8U);
}

TEST_F(ConnectedTest, pending_sends_are_posted_when_datagrams_stop_the_queue)
{
    ib_qp* qp = connect(capable(1));
    meet(peer(2));
    world.transmit(world.packet(capable(1)), true);
    EXPECT_TRUE(qp->outstanding.empty());
    while (!world.dev().stopped)
        world.transmit(world.packet(peer(2)), true);
    EXPECT_EQ(world.qp().outstanding.size(), 128U);
    EXPECT_EQ(qp->outstanding.size(), 1U);
}

TEST_F(ConnectedTest, send_pool_limits_all_connections_together)
{
    ib_qp* one = connect(capable(1));
    ib_qp* two = connect(capable(2));
    for (int i = 0; i < 128; ++i)
        world.transmit(world.packet(capable(i % 2 ? 2 : 1)));
    EXPECT_TRUE(world.dev().stopped);
    world.transmit(world.packet(capable(1)));
    EXPECT_EQ(world.drops, 1U);
    world.complete_messages(*one, 64);
    EXPECT_FALSE(world.dev().stopped);
    world.complete_messages(*two, 64);
    // Slots return in another order than they were taken.
    for (int i = 0; i < 128; ++i)
        world.transmit(world.packet(capable(1)));
    world.complete_messages(*one, 128);
    EXPECT_EQ(statistics().tx_packets, 2U + 256U);
}

TEST_F(ConnectedTest, packet_longer_than_the_peers_mtu_gets_an_icmp_error)
{
    world.reply(ask(capable(1)), 4096);
    world.transmit(world.packet(capable(1), 0x0800, 4093));
    world.run_work();
    EXPECT_EQ(world.rejected_mtus, std::vector<unsigned int>{4092});
    world.transmit(world.packet(capable(1), 0x0800, 4092));
    EXPECT_EQ(world.sent.back().bytes.size(), 4096U);
}

TEST_F(ConnectedTest, at_most_64_icmp_errors_are_pending)
{
    world.reply(ask(capable(1)), 4096);
    for (int i = 0; i < 70; ++i)
        world.transmit(world.packet(capable(1), 0x0800, 4093));
    EXPECT_EQ(world.drops, 6U);
    world.run_work();
    EXPECT_EQ(world.rejected_mtus.size(), 64U);
}

TEST_F(ConnectedTest, packets_beyond_the_full_queue_are_sent_as_datagrams_if_short_enough)
{
    ib_cm_id* id = ask(capable(1));
    for (int i = 0; i < 63; ++i)
        world.transmit(world.packet(capable(1)));
    EXPECT_TRUE(world.sent.empty());
    world.transmit(world.packet(capable(1)));
    EXPECT_EQ(world.sent.size(), 1U);
    EXPECT_EQ(world.qp().outstanding.size(), 1U);
    world.transmit(world.packet(capable(1), 0x0800, 9000));
    EXPECT_EQ(world.drops, 1U);
    world.reply(id);
    EXPECT_EQ(world.sent.size(), 65U);
}

// A softirq runs whenever the work item unlocks, also between its last check of the connections and its delayed
// requeue.
TEST_F(ConnectedTest, packet_during_the_work_item_is_served_at_once)
{
    world.message(ask(capable(1)), SHIM_IB_CM_REJ_RECEIVED, 8);
    world.run_work();
    ASSERT_TRUE(shows("state refused")) << "it has the work come back in a second or so";
    unsigned int moment = 0, unlocks = 0;
    do {
        ++moment;
        unlocks = 0;
        world.softirqs = [&] {
            if (++unlocks != moment)
                return;
            world.transmit(world.packet(capable(static_cast<std::uint8_t>(1 + moment))));
            world.answer_path();
        };
        interface().connections.service_soon();
        world.run_work();
        world.softirqs = nullptr;
        EXPECT_EQ(world.take_request() != nullptr, unlocks >= moment) << moment;
    } while (unlocks >= moment);
    EXPECT_GE(moment, 5U);
}

class ConnectedRejection : public ConnectedTest, public testing::WithParamInterface<unsigned int> {};

TEST_P(ConnectedRejection, falls_back_to_datagrams_and_retries_later)
{
    ib_cm_id* id = ask(capable(1), 100);
    world.transmit(world.packet(capable(1), 0x0800, 3000));
    world.message(id, SHIM_IB_CM_REJ_RECEIVED, GetParam());
    world.run_work();
    EXPECT_EQ(connections(), 0U) << "what a refused connection had is released";
    // The short packet was sent as a datagram; the long one got an ICMP error.
    EXPECT_EQ(world.qp().outstanding.size(), 1U);
    EXPECT_EQ(world.rejected_mtus, std::vector<unsigned int>{2044});
    EXPECT_TRUE(shows("state refused"));
    world.transmit(world.packet(capable(1)));
    EXPECT_EQ(world.qp().outstanding.size(), 2U);
    EXPECT_EQ(world.take_request(), nullptr);
    run_for(150);
    EXPECT_TRUE(shows("state idle"));
    ASSERT_NE(id = ask(capable(1)), nullptr);
    // The back-off has doubled.
    world.message(id, SHIM_IB_CM_REJ_RECEIVED, GetParam());
    run_for(150);
    EXPECT_TRUE(shows("state refused"));
    run_for(100);
    EXPECT_TRUE(shows("state idle"));
    world.reply(ask(capable(1)));
    EXPECT_TRUE(shows("state established"));
    EXPECT_EQ(std::count_if(world.log.begin(), world.log.end(),
                            [](const auto& line) { return line.find("rejected, reason") != std::string::npos; }),
              1);
}

// All reasons of IBA 12.6.7.2 and two unknown ones, without 10, stale connection.
INSTANTIATE_TEST_SUITE_P(Reasons, ConnectedRejection,
                         testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
                                         24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 35, 0, 65535));

// A message on this queue pair would find no passive connection and take a shared buffer.
TEST_F(ConnectedTest, active_connection_has_no_receive_buffers)
{
    ASSERT_NE(world.request(gid(1), 0x100), nullptr);
    ib_qp* const theirs = world.qps.back();
    ib_qp* const ours = connect(capable(1));
    const std::vector<std::uint8_t> message{8, 0, 0, 0, 0x45, 0, 0, 0};
    EXPECT_FALSE(world.receive_message(*ours, message));
    EXPECT_EQ(statistics().rx_packets, 0U);
    EXPECT_TRUE(world.receive_message(*theirs, message));
    EXPECT_EQ(statistics().rx_packets, 1U);
    world.transmit(world.packet(capable(1)));
    world.complete_messages(*ours, 1);
    EXPECT_EQ(statistics().tx_packets, 2U);
}

TEST_F(ConnectedTest, close_does_not_wait_for_the_back_off)
{
    world.message(ask(capable(1)), SHIM_IB_CM_REJ_RECEIVED, 8);
    world.run_work();
    ASSERT_TRUE(shows("state refused"));
    const unsigned long before = world.now;
    close();
    EXPECT_LT(world.now - before, 50U);
}

TEST_F(ConnectedTest, connections_are_set_up_without_io_allocations)
{
    world.transmit(world.packet(capable(1)));
    world.answer_path();
    world.allocations_with_io.clear();
    world.run_work();
    ASSERT_NE(world.take_request(), nullptr);
    ASSERT_NE(world.request(gid(1), 0x100), nullptr);
    EXPECT_EQ(world.allocations_with_io, std::vector<std::string>{});
    EXPECT_EQ(world.no_io, 0U);
}

TEST_F(ConnectedTest, stale_rejections_back_off)
{
    unsigned int requests = 0;
    const auto refuse_for = [&](unsigned long ticks) {
        for (unsigned long i = 0; i < ticks; ++i) {
            while (ib_cm_id* id = world.take_request()) {
                ++requests;
                world.message(id, SHIM_IB_CM_REJ_RECEIVED, SHIM_CM_REJ_STALE_CONN);
            }
            if (i % 10 == 0)
                world.transmit(world.packet(capable(1)));
            run_for(1);
        }
    };
    world.message(ask(capable(1)), SHIM_IB_CM_REJ_RECEIVED, SHIM_CM_REJ_STALE_CONN);
    refuse_for(40);
    EXPECT_EQ(requests, 3U) << "four at once";
    EXPECT_TRUE(shows("state refused"));
    EXPECT_FALSE(world.sent.empty()) << "what waited went as datagrams";
    requests = 0;
    refuse_for(10000);
    // After 1, 2, 4, ... 64 s, four times each.
    EXPECT_LE(requests, 7U * 4);
    world.complete_sends(world.qp().outstanding.size());
}

// The rejections take longer to arrive than the minimum interval of REQs.
TEST_F(ConnectedTest, slow_stale_rejections_back_off)
{
    world.transmit(world.packet(capable(1)));
    world.answer_path();
    unsigned int requests = 0;
    const unsigned long end = world.now + 10000;
    while (world.now < end) {
        run_for(10);
        if (ib_cm_id* id = world.take_request()) {
            ++requests;
            run_for(20);
            world.message(id, SHIM_IB_CM_REJ_RECEIVED, SHIM_CM_REJ_STALE_CONN);
        }
        world.transmit(world.packet(capable(1)));
        world.complete_sends(world.qp().outstanding.size());
    }
    // At once, and after 1, 2, 4, ... 32 s, four times each.
    EXPECT_GE(requests, 5U * 4);
    EXPECT_LE(requests, 7U * 4);
}

TEST_F(ConnectedTest, requests_to_a_peer_that_disconnects_are_limited_to_ten_a_second)
{
    world.transmit(world.packet(capable(1)));
    world.answer_path();
    unsigned int requests = 0;
    for (int tick = 0; tick < 1000; ++tick) {
        run_for(1);
        while (ib_cm_id* id = world.take_request()) {
            ++requests;
            world.reply(id);
            world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
        }
        world.transmit(world.packet(capable(1)));
    }
    EXPECT_GE(requests, 80U);
    EXPECT_LE(requests, 4U + 100);
}

TEST_F(ConnectedTest, stale_rejection_is_retried_at_once)
{
    ib_cm_id* id = ask(capable(1));
    world.message(id, SHIM_IB_CM_REJ_RECEIVED, 10);
    world.run_work();
    run_for(2);
    ASSERT_NE(id = world.take_request(), nullptr);
    EXPECT_TRUE(world.sent.empty());
    world.reply(id);
    EXPECT_EQ(world.sent.size(), 1U);
}

TEST_F(ConnectedTest, unanswered_request_falls_back_to_datagrams)
{
    world.message(ask(capable(1)), SHIM_IB_CM_REQ_ERROR);
    world.run_work();
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(world.qp().outstanding.size(), 1U);
}

TEST_F(ConnectedTest, reply_with_an_unusable_mtu_is_rejected)
{
    std::uint8_t peer = 0;
    for (const std::uint32_t mtu : {0U, 4U, 5U, 75U}) {
        ib_cm_id* id = ask(capable(++peer));
        ASSERT_NE(id, nullptr);
        world.reply(id, mtu);
        EXPECT_EQ(id->sent.back(), "REJ");
        EXPECT_EQ(id->reason, 28U);
        run_for(300);
    }
    EXPECT_TRUE(shows("malformed 4"));
    ib_cm_id* lowest = ask(capable(++peer));
    world.reply(lowest, 76);
    EXPECT_EQ(lowest->sent.back(), "RTU");
}

TEST_F(ConnectedTest, failed_requests_fall_back_to_datagrams_and_leak_nothing)
{
    for (int i = 1; i <= 3; ++i) {
        world.transmit(world.packet(capable(1)));
        if (world.open_paths())
            world.answer_path();
        // Fails the CM id, the REQ, then the queue pair.
        world.fail_cm = i <= 2 ? i : 0;
        world.fail_allocation = i == 3 ? 1 : 0;
        world.run_work();
        EXPECT_EQ(world.take_request(), nullptr) << i;
        EXPECT_EQ(connections(), 0U) << i;
        world.fail_cm = world.fail_allocation = 0;
        run_for(100UL << i);
    }
    EXPECT_NE(ask(capable(1)), nullptr);
}

TEST_F(ConnectedTest, failed_queue_pair_transition_ends_the_attempt)
{
    ib_cm_id* id = ask(capable(1));
    world.fail_cm = 1;
    world.reply(id);
    world.run_work();
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(world.qp().outstanding.size(), 1U);
}

TEST_F(ConnectedTest, broken_connection_is_reestablished_and_packets_wait)
{
    ib_qp* qp = connect(capable(1));
    for (int i = 0; i < 3; ++i)
        world.transmit(world.packet(capable(1)));
    world.complete_messages(*qp, 1, 12);
    EXPECT_TRUE(shows("disconnected 1 "));
    world.transmit(world.packet(capable(1), 0x0800, 5000));
    run_for(5);
    ib_cm_id* id = world.take_request();
    ASSERT_NE(id, nullptr);
    EXPECT_EQ(connections(), 1U);
    EXPECT_TRUE(world.rejected_mtus.empty()) << "the path's MTU is not to suffer";
    world.reply(id);
    EXPECT_EQ(world.sent.back().bytes.size(), 5004U);
    EXPECT_EQ(statistics().tx_errors, 3U);
}

TEST_F(ConnectedTest, dreq_is_answered_and_the_next_packet_reconnects)
{
    world.reply(ask(capable(1)));
    world.complete_messages(*world.qps.back(), 1);
    ib_cm_id* id = nullptr;
    for (ib_cm_id* one : world.cm_ids)
        if (!one->listens)
            id = one;
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    EXPECT_EQ(id->sent.back(), "DREP");
    run_for(3);
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(world.take_request(), nullptr);
    EXPECT_NE(ask(capable(1)), nullptr);
}

TEST_F(ConnectedTest, cm_events_after_the_end_are_ignored)
{
    ib_cm_id* id = ask(capable(1));
    world.message(id, SHIM_IB_CM_REQ_ERROR);
    // The connection exists until the work item runs.
    world.reply(id);
    world.message(id, SHIM_IB_CM_REJ_RECEIVED, 8);
    world.message(id, SHIM_IB_CM_TIMEWAIT_EXIT);
    world.message(id, SHIM_IB_CM_MRA_RECEIVED);
    world.message(id, SHIM_IB_CM_RTU_RECEIVED);
    world.run_work();
    EXPECT_EQ(connections(), 0U);
}

// On the slow path the poster holds the lock that the end of a connection takes.
TEST_F(ConnectedTest, failed_post_breaks_the_connection)
{
    ib_qp* qp = connect(capable(1));
    world.sends_until_failure = 0;
    world.transmit(world.packet(capable(1)));
    EXPECT_EQ(qp->state, "rts");
    // Earlier posted sends end with the connection, without completions.
    world.mute = true;
    world.run_work();
    EXPECT_TRUE(shows("disconnected 1 "));
    run_for(600);
    world.mute = false;
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(world.dev().queued_bytes, 0) << "the sends were reclaimed";
}

TEST_F(ConnectedTest, release_continues_while_another_connection_has_work)
{
    connect(capable(1));
    world.sends_until_failure = 0;
    world.transmit(world.packet(capable(1)));
    world.mute = true;
    world.run_work();
    // Within the same tick.
    ask(capable(2));
    run_for(600);
    world.mute = false;
    EXPECT_EQ(connections(), 1U);
    EXPECT_EQ(world.dev().queued_bytes, 0);
}

TEST_F(ConnectedTest, mode_change_releases_every_connection)
{
    ib_qp* qp = connect(capable(1));
    ask(capable(2));
    world.transmit(world.packet(capable(1)));
    (void)qp;
    set_mode("datagram");
    run_for(30);
    EXPECT_EQ(connections(), 0U);
    meet(capable(1));
    EXPECT_EQ(connections(), 0U);
}

TEST_F(ConnectedTest, release_waits_for_sends_in_flight)
{
    ib_qp* qp = connect(capable(1));
    world.transmit(world.packet(capable(1)));
    set_mode("datagram");
    EXPECT_EQ(qp->state, "rts");
    world.complete_messages(*qp, 1);
    EXPECT_EQ(statistics().tx_errors, 0U);
    run_for(3);
    EXPECT_EQ(connections(), 0U);
}

// The poll finds that the last send failed; the work item releases the connection before the poll takes the lock.
TEST_F(ConnectedTest, connection_released_during_its_last_completion_is_not_accessed)
{
    ib_qp* qp = connect(capable(1));
    world.transmit(world.packet(capable(1)));
    set_mode("datagram");
    ASSERT_EQ(connections(), 1U) << "the send is given time";
    world.meanwhile = [this] { world.advance(10); };
    world.complete_messages(*qp, 1, 12);
    run_for(10);
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(statistics().tx_errors, 1U);
}

TEST_F(ConnectedTest, unused_neighbour_ends_its_connection)
{
    connect(capable(1));
    run_for(10000);
    EXPECT_EQ(connections(), 0U);
    EXPECT_FALSE(shows("active"));
}

TEST_F(ConnectedTest, used_connection_is_kept)
{
    ib_qp* qp = connect(capable(1));
    for (int i = 0; i < 10; ++i) {
        run_for(1000);
        world.transmit(world.packet(capable(1)));
        world.complete_messages(*qp, 1);
    }
    EXPECT_TRUE(shows("state established"));
    EXPECT_TRUE(shows("req_sent 1 "));
}

TEST_F(ConnectedTest, rejections_back_off_until_the_peer_accepts)
{
    // After a rejection no REQ is sent for this many seconds, and one soon after.
    const auto is_refused_for = [&](unsigned int seconds) {
        ib_cm_id* id = ask(capable(1));
        ASSERT_NE(id, nullptr) << seconds;
        world.message(id, SHIM_IB_CM_REJ_RECEIVED, 8);
        // The waiting packet was sent as a datagram.
        world.run_work();
        world.complete_sends(1);
        run_for(seconds * 100 - 10);
        EXPECT_EQ(ask(capable(1)), nullptr) << seconds;
        world.complete_sends(1);
        run_for(20);
    };
    for (const unsigned int seconds : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 64U})
        is_refused_for(seconds);
    ib_cm_id* accepted = ask(capable(1));
    world.reply(accepted);
    EXPECT_TRUE(shows("state established"));
    // The peer disconnects.
    world.message(accepted, SHIM_IB_CM_DREQ_RECEIVED);
    run_for(3);
    is_refused_for(1);
    EXPECT_NE(ask(capable(1)), nullptr);
}

TEST_F(ConnectedTest, close_ends_connections_in_every_state)
{
    connect(capable(1));
    ask(capable(2));
    world.message(ask(capable(3)), SHIM_IB_CM_REJ_RECEIVED, 8);
    world.transmit(world.packet(capable(4)));
    world.answer_path();
    ASSERT_NE(world.request(gid(5), 0x500), nullptr);
    close();
    EXPECT_EQ(connections(), 0U);
    EXPECT_TRUE(world.cm_ids.empty());
}

TEST_F(ConnectedTest, packet_uses_a_connection_established_during_its_lookup)
{
    ib_cm_id* id = ask(capable(1));
    // The lookup found no connection.
    world.meanwhile = [&] { world.reply(id); };
    world.transmit(world.packet(capable(1), 0x0800, 100));
    ib_qp* qp = world.qps.back();
    ASSERT_EQ(qp->outstanding.size(), 2U);
    EXPECT_EQ(qp->outstanding[1].bytes.size(), 104U);
    world.complete_messages(*qp, 2);
}

TEST_F(ConnectedTest, duplicate_completion_frees_nothing)
{
    ib_qp* qp = connect(capable(1));
    world.transmit(world.packet(capable(1)));
    const std::uint64_t id = qp->outstanding[0].id;
    world.complete_messages(*qp, 1);
    world.transmit(world.packet(capable(1)));
    world.complete_messages(*qp, 1);
    world.transmit(world.packet(capable(1)));
    qp->send_cq->push({id, 0, 0, 0, 0, false, qp});
    world.complete_messages(*qp, 1);
    EXPECT_EQ(statistics().tx_packets, 4U);
    EXPECT_EQ(world.dev().queued_bytes, 0);
}

// The invariant CRC in place of checksums

class IcrcTest : public ConnectedTest {
protected:
    void trust(bool wanted)
    {
        world.rtnl = true;
        EXPECT_EQ(ipoib_ethtool_set_flags(&world.dev(), wanted ? IPOIB_FLAG_ICRC_AS_CHECKSUM : 0), 0);
        world.rtnl = false;
        world.run_work();
    }
    // Returns whether a packet to the peer is sent without checksum, on a connection with this offer of the peer.
    bool sent_without_checksum(IcrcOffer offer)
    {
        world.reply(ask(capable(1)), 65524, offer);
        ib_qp* qp = world.qps.back();
        world.complete_messages(*qp, qp->outstanding.size());
        sk_buff* skb = world.packet(capable(1), 0x0800, 100);
        skb->wants_checksum = true;
        world.transmit(skb);
        const bool without = skb->wants_checksum;
        world.complete_messages(*qp, 1);
        return without;
    }
    // Returns whether a message from a peer with this offer is marked as verified for the stack.
    bool taken_as_verified(IcrcOffer offer)
    {
        world.request(gid(2), 0x200, 65524, true, offer);
        std::vector<std::uint8_t> bytes(104);
        bytes[0] = 0x08;
        EXPECT_TRUE(world.receive_message(*world.qps.back(), bytes));
        return world.received.back()->verified;
    }
    static IcrcOffer offer(std::uint16_t signature, std::uint16_t capabilities)
    {
        return {kernel::Be16(signature), kernel::Be16(capabilities)};
    }
};

TEST_F(IcrcTest, flag_is_off_by_default)
{
    EXPECT_EQ(ipoib_ethtool_get_flags(&world.dev()), 0U);
    EXPECT_FALSE(ipoib_leaves_checksums(&world.dev()));
    EXPECT_FALSE(sent_without_checksum(IcrcOffer::make()));
    EXPECT_FALSE(taken_as_verified(IcrcOffer::make()));
}

TEST_F(IcrcTest, flag_has_a_name)
{
    std::vector<char> names(std::size_t{IPOIB_FLAGS} * SHIM_ETHTOOL_NAME_BYTES);
    ipoib_ethtool_flag_names(names.data());
    EXPECT_STREQ(names.data(), "icrc-as-checksum");
    trust(true);
    EXPECT_EQ(ipoib_ethtool_get_flags(&world.dev()), 1U);
}

TEST_F(IcrcTest, req_and_rep_carry_the_offer)
{
    trust(true);
    EXPECT_TRUE(ipoib_leaves_checksums(&world.dev()));
    const std::vector<std::uint8_t> data{0, 0, 0, 0x48, 0, 0, 0xff, 0xf4, 0x22, 0x11, 0x10, 0x01};
    EXPECT_EQ(ask(capable(1))->private_data, data);
    EXPECT_EQ(world.request(gid(2), 0x200, 65524, true, IcrcOffer::make())->private_data, data);
    // A peer without an offer gets no offer in the REP.
    EXPECT_EQ(world.request(gid(3), 0x300)->private_data.size(), 8U);
}

TEST_F(IcrcTest, checksums_are_omitted_if_both_ends_offer)
{
    trust(true);
    EXPECT_TRUE(sent_without_checksum(IcrcOffer::make()));
    EXPECT_TRUE(taken_as_verified(IcrcOffer::make()));
    EXPECT_TRUE(shows("icrc"));
}

TEST_F(IcrcTest, peer_without_an_offer_gets_checksums)
{
    trust(true);
    EXPECT_FALSE(sent_without_checksum({}));
    EXPECT_FALSE(taken_as_verified({}));
    EXPECT_FALSE(shows("icrc"));
}

TEST_F(IcrcTest, offer_needs_signature_version_and_bit)
{
    EXPECT_TRUE(offer(0x2211, 0x1ff1).valid());
    EXPECT_FALSE(offer(0x1122, 0x1001).valid());
    EXPECT_FALSE(offer(0x2211, 0x2001).valid());
    EXPECT_FALSE(offer(0x2211, 0x3001).valid());
    EXPECT_FALSE(offer(0x2211, 0x1002).valid());
}

TEST_F(IcrcTest, flag_change_ends_connections)
{
    connect(capable(1));
    world.request(gid(2), 0x200);
    EXPECT_EQ(connections(), 2U);
    trust(true);
    EXPECT_EQ(connections(), 0U);
    EXPECT_TRUE(sent_without_checksum(IcrcOffer::make()));
    trust(false);
    EXPECT_EQ(connections(), 0U);
    EXPECT_FALSE(sent_without_checksum(IcrcOffer::make()));
}

TEST_F(IcrcTest, datagrams_have_checksums)
{
    trust(true);
    meet(peer(1));
    sk_buff* skb = world.packet(peer(1), 0x0800, 100);
    skb->wants_checksum = true;
    world.transmit(skb);
    EXPECT_TRUE(!skb->wants_checksum || world.sent.back().checksum);
}

} // namespace
} // namespace ipoib
