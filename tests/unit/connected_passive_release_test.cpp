// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Passive side of connections, on scripted fakes: ends of connections, their drains, and the destruction of queue
// pairs.
#include "connected_passive_test.hpp"

#include <shim/cm.h>
#include <shim/qp.h>
#include <shim/rc_qp.h>

namespace ipoib {
namespace {

TEST_F(PassiveTest, dreq_releases_the_connection)
{
    accept(1, 0x100);
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    EXPECT_EQ(id->sent.back(), "DREP");
    run_for(3);
    EXPECT_EQ(connections(), 0U);
    EXPECT_FALSE(shows("passive "));
    EXPECT_EQ(world.polls_at_destruction, 2U) << "receiving goes on";
    EXPECT_FALSE(logged("RX drain timing out"));
}

TEST_F(PassiveTest, every_ending_cm_event_releases_the_connection)
{
    for (const auto event : {SHIM_IB_CM_REJ_RECEIVED, SHIM_IB_CM_DREP_RECEIVED, SHIM_IB_CM_REP_ERROR,
                             SHIM_IB_CM_DREQ_ERROR, SHIM_IB_CM_TIMEWAIT_EXIT}) {
        accept(1, 0x100);
        world.message(id, SHIM_IB_CM_RTU_RECEIVED);
        EXPECT_EQ(connections(), 1U);
        world.message(id, event);
        run_for(3);
        EXPECT_EQ(connections(), 0U) << event;
    }
}

TEST_F(PassiveTest, broken_queue_pair_is_released)
{
    ib_qp* qp = accept(1, 0x100);
    shim_qp_to_error(qp);
    run_for(3);
    EXPECT_EQ(connections(), 0U);
}

// Accepts connections of one peer, and receives a message on each.
class PeersConnectionsTest : public PassiveTest {
protected:
    ib_qp* use(std::uint8_t port = 1, std::uint32_t qpn = 0x100)
    {
        ib_qp* const qp = accept(port, qpn);
        EXPECT_TRUE(world.receive_message(*qp, message(10)));
        run_for(3);
        return qp;
    }
    void use_all_of(unsigned int count)
    {
        for (unsigned int i = 0; i < count; ++i)
            qps_.push_back(use());
    }
    void use_all()
    {
        use_all_of(PassiveConnections::max_of_peer);
        ASSERT_EQ(connections(), PassiveConnections::max_of_peer);
    }
    bool is_there(const ib_qp* qp) { return std::find(world.qps.begin(), world.qps.end(), qp) != world.qps.end(); }
    std::vector<ib_qp*> qps_;
};

TEST_F(PeersConnectionsTest, one_more_than_the_limit_ends_the_longest_idle)
{
    use_all();
    ib_qp* const newest = accept(1, 0x100);
    run_for(3);
    EXPECT_TRUE(is_there(qps_[0])) << "before the first message";
    ASSERT_TRUE(world.receive_message(*newest, message(10)));
    run_for(3);
    EXPECT_FALSE(is_there(qps_[0]));
    EXPECT_TRUE(is_there(qps_[1]) && is_there(newest));
    use();
    EXPECT_FALSE(is_there(qps_[1]));
    EXPECT_EQ(connections(), PassiveConnections::max_of_peer);
}

TEST_F(PeersConnectionsTest, limit_holds_for_messages_of_many_peers_at_once)
{
    std::vector<ib_qp*> newest{accept(1, 0x100), accept(2, 0x100)};
    for (unsigned int i = 0; i < PassiveConnections::max_of_peer; ++i)
        use(3);
    newest.push_back(accept(3, 0x100));
    run_for(3);
    for (ib_qp* qp : newest)
        ASSERT_TRUE(world.receive_message(*qp, message(10)));
    // Each walk of the connections takes longer than a jiffy.
    world.softirqs = [this] { ++world.now; };
    run_for(10);
    world.softirqs = nullptr;
    run_for(3);
    EXPECT_EQ(connections(), 2 + PassiveConnections::max_of_peer);
}

TEST_F(PeersConnectionsTest, silent_connections_count_when_they_carry_a_message)
{
    std::vector<ib_qp*> silent;
    for (unsigned int i = 0; i < PassiveConnections::max_of_peer; ++i)
        silent.push_back(accept(1, 0x100));
    use_all_of(PassiveConnections::max_of_peer);
    for (ib_qp* qp : silent) {
        ASSERT_TRUE(world.receive_message(*qp, message(10)));
        run_for(3);
    }
    EXPECT_EQ(connections(), PassiveConnections::max_of_peer);
    EXPECT_TRUE(is_there(silent[0]));
}

TEST_F(PeersConnectionsTest, idle_connection_ends_not_the_oldest)
{
    use_all();
    ASSERT_TRUE(world.receive_message(*qps_[0], message(10)));
    use();
    EXPECT_TRUE(is_there(qps_[0]));
    EXPECT_FALSE(is_there(qps_[1]));
}

TEST_F(PeersConnectionsTest, other_peers_are_not_counted)
{
    use_all();
    use(2);
    use(1, 0x200);
    EXPECT_EQ(connections(), PassiveConnections::max_of_peer + 2);
}

// The victim's GID and QPN are in every ARP reply.
TEST_F(PeersConnectionsTest, forged_requests_end_no_connection)
{
    ib_qp* const old = use();
    for (int i = 0; i < 100; ++i)
        ASSERT_NE(accept(1, 0x100), nullptr);
    use();
    EXPECT_TRUE(is_there(old)) << "connections without a message do not count";
    // The forger has a queue pair of its own at another LID.
    world.peer_lid = 66;
    for (unsigned int i = 0; i < PassiveConnections::max_of_peer; ++i)
        use();
    ASSERT_EQ(connections(), 102U + PassiveConnections::max_of_peer);
    EXPECT_EQ(old->state, "rts");
    EXPECT_TRUE(world.receive_message(*old, message(10)));
}

TEST_F(PeersConnectionsTest, ending_connection_keeps_the_others)
{
    use_all();
    ib_qp* const newest = accept(1, 0x100);
    world.polls_later = true;
    ASSERT_TRUE(world.receive_message(*newest, message(10)));
    world.polls_later = false;
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    world.run_polls();
    run_for(3);
    EXPECT_TRUE(is_there(qps_[0]));
}

TEST_F(PassiveTest, unresponsive_queue_pair_is_destroyed_after_five_seconds)
{
    accept(1, 0x100);
    world.mute = true;
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    is_given_up_after_five_seconds();
}

TEST_F(PassiveTest, drain_times_out_after_five_seconds)
{
    const ib_qp* qp = accept(1, 0x100);
    world.mute = true;
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    run_for(1);
    // All receives were flushed; the drain send does not complete.
    ipoib_last_wqe_reached(qp->context);
    is_given_up_after_five_seconds();
}

// The completion queue has space for 64 drains at a time.
TEST_F(PassiveTest, drain_timeout_excludes_the_wait_for_other_drains)
{
    std::vector<ib_cm_id*> ids;
    std::vector<void*> contexts;
    for (std::uint32_t i = 0; i < 66; ++i) {
        contexts.push_back(accept(1, 0x100 + i)->context);
        ids.push_back(id);
    }
    world.mute = true;
    for (ib_cm_id* ended : ids)
        world.message(ended, SHIM_IB_CM_DREQ_RECEIVED);
    // The flushed receives of all connections arrive late.
    run_for(400);
    for (void* context : contexts)
        ipoib_last_wqe_reached(context);
    run_for(200);
    EXPECT_EQ(connections(), 66U);
    run_for(400);
    EXPECT_EQ(connections(), 2U);
    run_for(600);
    EXPECT_EQ(connections(), 0U);
    world.mute = false;
}

TEST_F(PassiveTest, drain_timeout_starts_when_the_queue_pair_enters_error)
{
    accept(1, 0x100);
    ib_cm_id* const first = id;
    accept(1, 0x101);
    world.mute = true;
    world.message(first, SHIM_IB_CM_DREQ_RECEIVED);
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    world.moves_to_error = [this, takes = 600UL]() mutable { world.now += std::exchange(takes, 0); };
    run_for(20);
    // The second one's queue pair was moved after the first one's.
    EXPECT_EQ(connections(), 1U);
    run_for(600);
    EXPECT_EQ(connections(), 0U);
    world.mute = false;
}

// State after a flood of REQs.
TEST_F(PassiveTest, request_is_sent_while_other_connections_end)
{
    set_mode("connected");
    std::vector<ib_cm_id*> ids;
    for (std::uint32_t i = 0; i < 20; ++i) {
        accept(1, 0x100 + i);
        ids.push_back(id);
    }
    unsigned int moved = 0, moved_before_request = 0;
    world.moves_to_error = [&] {
        world.now += 10;
        if (++moved == 1) {
            world.transmit(world.packet(capable(9), 0x0800, 60));
            world.answer_path();
        }
        moved_before_request += world.asked.empty();
    };
    for (ib_cm_id* ended : ids)
        world.message(ended, SHIM_IB_CM_DREQ_RECEIVED);
    run_for(1);
    EXPECT_NE(world.take_request(), nullptr);
    EXPECT_EQ(moved_before_request, 1U);
    EXPECT_EQ(moved, 20U);
    world.moves_to_error = nullptr;
}

TEST_F(PassiveTest, connections_end_in_turn)
{
    constexpr unsigned int count = 20;
    std::vector<ib_cm_id*> ids;
    for (std::uint32_t i = 0; i < count; ++i) {
        accept(1, 0x100 + i);
        ids.push_back(id);
    }
    const auto before = world.doorbells;
    unsigned int moved = 0;
    std::optional<unsigned int> drains;
    // The last one waits while others end, which are drained afterwards.
    world.moves_to_error = [&] {
        world.now += 10;
        if (++moved < count - 1)
            world.message(ids[moved], SHIM_IB_CM_DREQ_RECEIVED);
        else if (moved == count)
            drains = world.doorbells - before;
    };
    world.message(ids.back(), SHIM_IB_CM_DREQ_RECEIVED);
    world.message(ids.front(), SHIM_IB_CM_DREQ_RECEIVED);
    run_for(100);
    EXPECT_EQ(drains, 0U) << "it waited for the drains of others";
    EXPECT_EQ(connections(), 0U);
    world.moves_to_error = nullptr;
}

// An HCA leaves the completions of a queue pair that is destroyed in their queue.
TEST_F(PassiveTest, completions_are_polled_before_their_queue_pair_is_destroyed)
{
    ib_qp* const qp = accept(1, 0x100);
    world.mute = true;
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    run_for(495);
    world.polls_later = true;
    ASSERT_TRUE(world.receive_message(*qp, message(10)));
    world.polls_later = false;
    world.advance(10);
    world.run_polls();
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(statistics().rx_packets, 1U);
    EXPECT_EQ(world.polls_enabled, 2U);
    world.mute = false;
}

// Completions of other queue pairs may never end.
TEST_F(PassiveTest, busy_completion_queue_does_not_delay_destruction)
{
    accept(1, 0x100);
    world.mute = true;
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    run_for(495);
    world.completes_without_end = true;
    world.advance(30);
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(world.polls_at_destruction, 1U);
    EXPECT_EQ(world.polls_enabled, 2U);
    world.mute = false;
}

// As of an HCA in its internal error state. The poll has time to handle earlier receives.
TEST_F(PassiveTest, drain_that_cannot_be_posted_times_out_after_a_tenth_of_a_second)
{
    accept(1, 0x100);
    world.sends_until_failure = 0;
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    run_for(8);
    EXPECT_EQ(connections(), 1U);
    EXPECT_EQ(world.sends_until_failure, -1);
    run_for(10);
    EXPECT_EQ(connections(), 0U);
}

TEST_F(PassiveTest, concurrent_drains_are_limited_by_the_completion_queue)
{
    world.mute = true;
    std::vector<const ib_qp*> all;
    for (std::uint32_t i = 0; i < PassiveConnections::max_draining + 6; ++i)
        all.push_back(accept(1, 0x100 + i));
    for (const ib_qp* qp : all)
        ipoib_last_wqe_reached(qp->context);
    world.run_work();
    EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const ib_qp* qp) { return !qp->outstanding.empty(); }),
              PassiveConnections::max_draining);
    world.mute = false;
}

TEST_F(PassiveTest, idle_connection_is_closed_after_512_seconds)
{
    ib_qp* qp = accept(1, 0x100);
    run_for(50000);
    EXPECT_EQ(connections(), 1U);
    ASSERT_TRUE(world.receive_message(*qp, message(10)));
    run_for(50000);
    EXPECT_EQ(connections(), 1U);
    run_for(6000);
    EXPECT_EQ(connections(), 0U);
    qp = accept(1, 0x100);
    const std::string open = qp->state;
    const unsigned long used = world.now;
    ASSERT_TRUE(world.receive_message(*qp, message(10)));
    world.now = used + kernel::seconds(512);
    interface().connections.passive.collect_garbage();
    world.run_work();
    EXPECT_EQ(qp->state, open);
    ++world.now;
    interface().connections.passive.collect_garbage();
    run_for(10);
    EXPECT_EQ(connections(), 0U);
}

TEST_F(PassiveTest, connection_that_receives_during_garbage_collection_is_kept)
{
    ib_qp* qp = accept(1, 0x100);
    // Another processor polls in the tick after the collector has read the clock.
    world.meanwhile = [&] {
        ++world.now;
        ASSERT_TRUE(world.receive_message(*qp, message(10)));
    };
    interface().connections.passive.collect_garbage();
    run_for(10);
    EXPECT_EQ(connections(), 1U);
}

} // namespace
} // namespace ipoib
