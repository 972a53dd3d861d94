// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Active side of connections, on scripted fakes: disconnects and failures, release, and connections anew.
#include "connected_test.hpp"

#include <shim/cm.h>

namespace ipoib {
namespace {

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

TEST_F(ConnectedTest, failed_send_is_logged_unless_the_peer_is_silent)
{
    ib_qp* qp = connect(capable(1));
    for (const int silent : {12, 13, 5}) {
        world.transmit(world.packet(capable(1)));
        world.complete_messages(*qp, 1, silent);
        run_for(5);
        EXPECT_FALSE(logged("failed cm send event (status=%d, wrid=%u vend_err %#x)")) << silent;
        world.transmit(world.packet(capable(1)));
        run_for(100);
        ib_cm_id* const id = world.take_request();
        ASSERT_NE(id, nullptr);
        world.reply(id);
        qp = world.qps.back();
    }
    world.transmit(world.packet(capable(1)));
    world.complete_messages(*qp, 1, 4);
    EXPECT_TRUE(logged("failed cm send event (status=%d, wrid=%u vend_err %#x)"));
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

// HCAs in software leave the completions of a queue pair in the completion queue when it is destroyed.
TEST_F(ConnectedTest, completion_of_a_destroyed_queue_pair_is_not_taken_for_a_later_sends)
{
    ib_qp* qp = connect(capable(1));
    world.transmit(world.packet(capable(1)));
    world.mute = world.polls_later = true;
    qp->send_cq->push({qp->outstanding.front().id, 5, 0, 0, 0, false, qp});
    set_mode("datagram");
    world.advance(1200);
    ASSERT_EQ(connections(), 0U);
    world.mute = world.polls_later = false;
    world.run_polls();
    EXPECT_EQ(world.dev().queued_bytes, 0);
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
    connect(capable(1));
    ask(capable(2));
    world.transmit(world.packet(capable(1)));
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

// Transmitters post until the grace period ends.
TEST_F(ConnectedTest, sends_have_their_time_from_the_end_of_the_grace_period)
{
    ib_qp* qp = connect(capable(1));
    world.transmit(world.packet(capable(1)));
    // The Reaper's grace period follows: together they take more than the 200 ms, and less from the end of the first.
    world.grace_ticks = 12;
    set_mode("datagram");
    world.grace_ticks = 0;
    run_for(5);
    ASSERT_EQ(connections(), 1U);
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

// The last poll completes the send that the release has waited for, and another connection takes its slot.
TEST_F(ConnectedTest, reclaim_leaves_slots_that_another_connection_has_taken)
{
    ib_cm_id* const id = ask(capable(1));
    world.reply(id);
    ib_qp* const ended = world.qps.back();
    ib_qp* const other = connect(capable(2));
    // One slot is free: while the queue is stopped, silent peers are looked for.
    for (int i = 0; i < 126; ++i)
        world.transmit(world.packet(capable(2)));
    const std::uint64_t last = ended->outstanding.front().id;
    ib_cq* const cq = ended->send_cq;
    world.mute = true;
    world.before_napi_disable = [&] {
        cq->push({last, 5, 0, 0, 0, false, nullptr});
        // The other connection would not get the slot if none of its sends completed.
        world.complete_messages(*other, 1);
        world.run_polls();
        for (int i = 0; i < 3; ++i)
            world.transmit(world.packet(capable(2)));
        EXPECT_EQ(other->outstanding.size(), 128U);
    };
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    run_for(600);
    EXPECT_FALSE(world.before_napi_disable) << "the connection was not reclaimed";
    world.mute = false;
    world.complete_messages(*other, 128);
    EXPECT_EQ(statistics().tx_packets, 1U + 129U + 1U);
    EXPECT_EQ(world.dev().queued_bytes, 0);
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

} // namespace
} // namespace ipoib
