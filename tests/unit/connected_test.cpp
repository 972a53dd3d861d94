// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Active side of connections, on scripted fakes: the MTU, packets that wait for a connection, sends on it.
#include "connected_test.hpp"

#include <limits>
#include <shim/cm.h>
#include <shim/device.h>
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

TEST_F(ConnectedTest, rejoin_keeps_the_mtu_of_connected_mode)
{
    reregister();
    world.answer_broadcast();
    world.run_work();
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

// Sends of a peer that does not acknowledge them, or has no receive for them, must end.
TEST_F(ConnectedTest, timeout_and_rnr_retries_of_the_peer_are_limited)
{
    const ib_qp* const qp = connect(capable(1));
    EXPECT_EQ(qp->max_timeout, 21);
    EXPECT_EQ(qp->max_rnr_retries, 6);
}

// Senders of unicast get an ICMP error.
TEST_F(ConnectedTest, long_packet_is_logged_if_it_is_multicast)
{
    meet(peer(1));
    world.transmit(world.packet(peer(1), 0x0800, 2045));
    EXPECT_FALSE(logged("packet len %u (> %u) too long to send, dropping"));
    world.transmit(world.packet(HwAddr::from(world.dev().broadcast.data()), 0x0800, 2045));
    EXPECT_TRUE(logged("packet len %u (> %u) too long to send, dropping"));
}

TEST_F(ConnectedTest, first_packet_sends_one_request_and_waits_for_the_reply)
{
    ib_cm_id* id = ask(capable(1), 100);
    ASSERT_NE(id, nullptr);
    EXPECT_EQ(id->service_id, 0x1000000000000100U);
    EXPECT_TRUE(shows("state requested"));
    EXPECT_FALSE(shows("icrc")) << "which the peer has not agreed to yet";
    EXPECT_TRUE(shows("state requested   mtu     0 queue    1"));
    const std::vector<std::uint8_t> private_data{0, 0, 0, 0x48, 0, 0, 0xff, 0xf4};
    EXPECT_EQ(id->private_data, private_data);
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
    EXPECT_TRUE(shows("req_sent 1 established 1 req_failed 0 disconnected 0 "));
    world.complete_messages(*world.qps.back(), 5);
    EXPECT_TRUE(shows("state established mtu 65520 queue    0"));
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
    EXPECT_EQ(world.trace.back(), "send stopped");
}

// Jiffies wrap; those of 32 bits five minutes after boot.
TEST_F(ConnectedTest, first_request_is_sent_at_any_time)
{
    for (std::uint8_t quarter = 1; quarter <= 4; ++quarter) {
        world.now += std::numeric_limits<unsigned long>::max() / 4 + 1;
        EXPECT_NE(ask(capable(quarter)), nullptr) << world.now;
    }
}

TEST_F(ConnectedTest, send_pool_limits_all_connections_together)
{
    ib_qp* one = connect(capable(1));
    ib_qp* two = connect(capable(2));
    for (int i = 0; i < 128; ++i)
        world.transmit(world.packet(capable(i % 2 ? 2 : 1)));
    EXPECT_TRUE(world.dev().stopped);
    EXPECT_EQ(world.trace.back(), "connected stopped");
    world.transmit(world.packet(capable(1)));
    EXPECT_EQ(world.drops, 1U);
    world.complete_messages(*one, 64);
    EXPECT_FALSE(world.dev().stopped);
    EXPECT_EQ(world.trace.back(), "connected woken");
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
        interface().connections.active.work.queue_now();
        world.run_work();
        world.softirqs = nullptr;
        EXPECT_EQ(world.take_request() != nullptr, unlocks >= moment) << moment;
    } while (unlocks >= moment);
    EXPECT_GE(moment, 5U);
}

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

TEST_F(ConnectedTest, other_work_runs_between_requests)
{
    world.request_ticks = 1;
    for (const std::uint8_t port : {1, 2, 3}) {
        world.transmit(world.packet(capable(port)));
        world.answer_path();
    }
    world.run_work();
    EXPECT_EQ(world.asked.size(), 1U);
    run_for(5);
    EXPECT_EQ(world.asked.size(), 3U);
}

// The search for the next one, under the lock that the transmit path takes, must not pass thousands.
TEST_F(ConnectedTest, requested_connections_are_behind_those_to_be_requested)
{
    world.request_ticks = 1;
    for (const std::uint8_t port : {1, 2, 3}) {
        world.transmit(world.packet(capable(port)));
        world.answer_path();
    }
    world.run_work();
    ASSERT_EQ(world.asked.size(), 1U);
    EXPECT_EQ(interface().connections.active.list().front()->life.state(), ActiveLife::State::wanted);
    run_for(5);
    EXPECT_EQ(world.asked.size(), 3U);
}

} // namespace
} // namespace ipoib
