// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Passive side of connections, on scripted fakes: REQs accepted or rejected, messages, release.
#include "connected_test.hpp"
#include <ipoib/wr_id.hpp>

#include <shim/cm.h>
#include <shim/module.h>
#include <shim/qp.h>
#include <shim/rc_qp.h>
#include <shim/skbuff.h>

namespace ipoib {
namespace {

class PassiveTest : public ConnectedTest {
protected:
    // The accepting side does not depend on the mode.
    void SetUp() override
    {
        DriverTest::SetUp();
        open();
    }
    ib_cm_id* listener()
    {
        const auto it = std::find_if(world.cm_ids.begin(), world.cm_ids.end(), [](auto* id) { return id->listens; });
        return it == world.cm_ids.end() ? nullptr : *it;
    }
    void is_given_up_after_five_seconds()
    {
        run_for(400);
        EXPECT_EQ(connections(), 1U);
        run_for(200);
        EXPECT_EQ(connections(), 0U);
        EXPECT_TRUE(logged("RX drain timing out"));
        // The poll might have held a completion of the queue pair.
        EXPECT_EQ(world.polls_at_destruction, 1U);
        EXPECT_EQ(world.polls_enabled, 2U);
        world.mute = false;
    }
    std::vector<std::uint8_t> message(std::size_t payload)
    {
        std::vector<std::uint8_t> bytes(4 + payload);
        bytes[0] = 0x08;
        for (std::size_t i = 4; i < bytes.size(); ++i)
            bytes[i] = static_cast<std::uint8_t>(i * 7);
        return bytes;
    }
    // Messages up to 256 bytes are copied; longer ones have their first first_bytes in one page and the rest in full
    // pages.
    void receive_all_sizes(ib_qp* qp, std::size_t first_bytes)
    {
        const std::size_t sizes[] = {1,    20,   251,  252,  253,  3687, 3688, 3689,
                                     4091, 4092, 4093, 7784, 7785, 8188, 8189, 65520};
        for (const std::size_t size : sizes) {
            const auto bytes = message(size);
            ASSERT_TRUE(world.receive_message(*qp, bytes));
            ASSERT_FALSE(world.received.empty());
            const sk_buff* skb = world.received.back();
            ASSERT_EQ(shim_skb_len(skb), size);
            EXPECT_EQ(std::memcmp(shim_skb_data(skb), bytes.data() + 4, size), 0) << size;
            EXPECT_EQ(skb->protocol, 0x0800);
            EXPECT_EQ(skb->mac_header.size(), 24U);
            EXPECT_EQ(skb->mac_header[20], 0x08);
            const std::size_t rest = size + 4 > first_bytes ? size + 4 - first_bytes : 0;
            const std::size_t pages = size + 4 <= 256 ? 0 : 1 + (rest + 4095) / 4096;
            EXPECT_EQ(skb->pages.size() + (skb->buffer != nullptr), pages) << size;
        }
        EXPECT_EQ(statistics().rx_packets, std::size(sizes));
    }
    // The queue pair of a connection that a peer made.
    ib_qp* accept(std::uint8_t port, std::uint32_t qpn)
    {
        id = world.request(gid(port), qpn);
        return id ? world.qps.back() : nullptr;
    }
    ib_cm_id* id = nullptr;
};

TEST_F(PassiveTest, request_is_accepted_in_datagram_mode)
{
    ib_qp* qp = accept(1, 0x100);
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(id->sent, std::vector<std::string>{"REP"});
    EXPECT_EQ(id->qpn, qp->number);
    EXPECT_EQ(qp->state, "rts");
    EXPECT_EQ(qp->rnr_timer, 12);
    EXPECT_EQ(id->rnr_retries, 6);
    const std::vector<std::uint8_t> introduction{0, 0, 0, 0x48, 0, 0, 0xff, 0xf4};
    EXPECT_EQ(id->private_data, introduction);
    EXPECT_EQ((*world.srqs.begin())->receives.size(), 256U);
    EXPECT_TRUE(shows("passive"));
}

TEST_F(PassiveTest, first_connection_allocates_the_shared_buffers)
{
    EXPECT_TRUE((*world.srqs.begin())->receives.empty());
    EXPECT_TRUE(world.loose_pages.empty());
    const std::set<page_pool*> before = world.pools;
    accept(1, 0x100);
    accept(2, 0x100);
    EXPECT_EQ((*world.srqs.begin())->receives.size(), 256U);
    ASSERT_EQ(world.pools.size(), before.size() + 1);
    for (const page_pool* pool : world.pools)
        EXPECT_TRUE(before.count(const_cast<page_pool*>(pool)) || pool->size == 256 * 17);
}

TEST_F(PassiveTest, messages_of_all_sizes_arrive_whole) { receive_all_sizes(accept(1, 0x100), 4096 - 64 - 20 - 320); }

TEST_F(PassiveTest, ring_wraps_around)
{
    ib_qp* qp = accept(1, 0x100);
    for (int i = 0; i < 1000; ++i)
        ASSERT_TRUE(world.receive_message(*qp, message(i % 2 ? 100 : 6000)));
    EXPECT_EQ(statistics().rx_packets, 1000U);
}

TEST_F(PassiveTest, message_without_memory_is_dropped_and_its_buffer_reposted)
{
    ib_qp* qp = accept(1, 0x100);
    world.fail_pages = true;
    for (int i = 0; i < 600; ++i)
        ASSERT_TRUE(world.receive_message(*qp, message(6000)));
    EXPECT_EQ(statistics().rx_dropped, 600U);
    world.fail_pages = false;
    world.fail_allocation = 1;
    ASSERT_TRUE(world.receive_message(*qp, message(100)));
    EXPECT_EQ(statistics().rx_dropped, 601U);
    ASSERT_TRUE(world.receive_message(*qp, message(100)));
    EXPECT_EQ(statistics().rx_packets, 1U);
}

TEST_F(PassiveTest, empty_messages_are_counted_and_dropped)
{
    ib_qp* qp = accept(1, 0x100);
    ASSERT_TRUE(world.receive_message(*qp, {}));
    ASSERT_TRUE(world.receive_message(*qp, {8, 0, 0, 0}));
    ASSERT_TRUE(world.receive_message(*qp, message(100), 1));
    EXPECT_EQ(statistics().rx_errors, 3U);
    // Receives of dropped messages go back to the queue.
    for (int i = 0; i < 600; ++i)
        ASSERT_TRUE(world.receive_message(*qp, message(100), i % 2)) << i;
    EXPECT_EQ(statistics().rx_errors, 303U);
    EXPECT_EQ(statistics().rx_packets, 300U);
    for (int i = 0; i < 300; ++i)
        ASSERT_TRUE(world.receive_message(*qp, {8, 0, 0, 0})) << i;
}

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

TEST_F(PassiveTest, first_message_of_a_new_connection_ends_the_peers_older_ones)
{
    accept(1, 0x100);
    accept(1, 0x200);
    accept(1, 0x100);
    ib_qp* const newest = accept(1, 0x100);
    run_for(3);
    ASSERT_EQ(connections(), 4U);
    ASSERT_TRUE(world.receive_message(*newest, message(10)));
    run_for(3);
    EXPECT_EQ(connections(), 2U);
    ASSERT_TRUE(world.receive_message(*newest, message(10)));
    run_for(3);
    EXPECT_EQ(connections(), 2U);
}

// The victim's GID and QPN are in every ARP reply.
TEST_F(PassiveTest, forged_request_ends_no_connection)
{
    ib_qp* const old = accept(1, 0x100);
    ASSERT_TRUE(world.receive_message(*old, message(10)));
    for (int i = 0; i < 100; ++i)
        ASSERT_NE(accept(1, 0x100), nullptr);
    // The forger has a queue pair of its own at another LID.
    world.peer_lid = 66;
    ib_qp* const theirs = accept(1, 0x100);
    ASSERT_TRUE(world.receive_message(*theirs, message(10)));
    run_for(3);
    ASSERT_EQ(connections(), 102U);
    EXPECT_EQ(old->state, "rts");
    EXPECT_TRUE(world.receive_message(*old, message(10)));
}

TEST_F(PassiveTest, message_of_an_older_connection_keeps_newer_ones)
{
    accept(1, 0x100);
    ib_qp* const second = accept(1, 0x100);
    accept(1, 0x100);
    ASSERT_TRUE(world.receive_message(*second, message(10)));
    run_for(3);
    EXPECT_EQ(connections(), 2U);
}

TEST_F(PassiveTest, ending_connection_keeps_older_ones)
{
    accept(1, 0x100);
    ib_qp* const newest = accept(1, 0x100);
    world.polls_later = true;
    ASSERT_TRUE(world.receive_message(*newest, message(10)));
    world.polls_later = false;
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    world.run_polls();
    run_for(3);
    EXPECT_EQ(connections(), 1U);
}

TEST_F(PassiveTest, messages_longer_than_announced_are_counted_and_dropped)
{
    ib_qp* const qp = accept(1, 0x100);
    ASSERT_TRUE(world.receive_message(*qp, message(65520)));
    EXPECT_EQ(statistics().rx_packets, 1U);
    ASSERT_TRUE(world.receive_message(*qp, message(65521)));
    EXPECT_EQ(statistics().rx_errors, 1U);
    EXPECT_EQ(statistics().rx_packets, 1U);
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

// The poll may not have handled all earlier receives yet.
TEST_F(PassiveTest, refused_drain_times_out_after_five_seconds)
{
    accept(1, 0x100);
    world.sends_until_failure = 0;
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    is_given_up_after_five_seconds();
    EXPECT_EQ(world.sends_until_failure, -1);
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

TEST_F(PassiveTest, srq_with_a_failed_post_is_recreated)
{
    ib_qp* const qp = accept(1, 0x100);
    const std::size_t all = qp->srq->receives.size();
    world.receives_until_failure = 0;
    for (int i = 0; i < 16; ++i)
        ASSERT_TRUE(world.receive_message(*qp, message(10)));
    EXPECT_EQ(qp->srq->receives.size(), all - 16);
    // The restart.
    world.run_work();
    EXPECT_EQ(connections(), 0U);
    ASSERT_NE(accept(1, 0x100), nullptr);
    EXPECT_EQ(world.qps.back()->srq->receives.size(), all);
}

TEST_F(PassiveTest, srq_that_cannot_be_filled_is_recreated)
{
    world.receives_until_failure = 0;
    EXPECT_EQ(accept(1, 0x100), nullptr);
    // The restart.
    world.run_work();
    ASSERT_NE(accept(1, 0x100), nullptr);
    EXPECT_EQ(world.qps.back()->srq->receives.size(), 256U);
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

TEST_F(PassiveTest, malformed_private_data_is_rejected)
{
    EXPECT_EQ(world.request(gid(1), 0x100, 0), nullptr);
    EXPECT_EQ(world.turned_away, 28U);
    EXPECT_EQ(world.request(gid(1), 0x100, 4), nullptr);
    EXPECT_EQ(world.request(gid(1), 0), nullptr);
    EXPECT_EQ(world.request(gid(1), 0x100, 65524, false), nullptr);
    EXPECT_EQ(world.turned_away, 9U);
    EXPECT_TRUE(shows("passive_rejected 4 malformed 3"));
    EXPECT_EQ(connections(), 0U);
    // The bits above the 24-bit QPN may have any value.
    EXPECT_NE(world.request(gid(1), 0xff000100), nullptr);
}

TEST_F(PassiveTest, request_flood_is_limited)
{
    unsigned int taken = 0;
    for (std::uint32_t i = 1; i <= 2000; ++i)
        taken += world.request(gid(1), i) != nullptr;
    EXPECT_EQ(taken, 1024U);
    EXPECT_EQ(world.turned_away, 3U);
    run_for(100);
    for (std::uint32_t i = 1; i <= 2000; ++i)
        taken += world.request(gid(2), i) != nullptr;
    EXPECT_EQ(taken, 1024U + 256U);
}

TEST_F(PassiveTest, connection_limit_evicts_the_longest_idle_connection)
{
    constexpr unsigned int limit = 8192;
    for (std::uint32_t i = 1; i <= limit; ++i) {
        // Accepts at the rate limit of REQs.
        if (i % 256 == 0)
            world.advance(100);
        ASSERT_NE(accept(1, i), nullptr) << i;
    }
    EXPECT_EQ(connections(), limit);
    EXPECT_EQ(accept(1, limit + 1), nullptr);
    EXPECT_EQ(world.turned_away, 1U);
    EXPECT_TRUE(shows("passive_rejected 1 malformed 0"));
    run_for(3);
    EXPECT_EQ(connections(), limit - 1);
    EXPECT_NE(accept(1, limit + 1), nullptr);
    EXPECT_EQ(connections(), limit);
}

TEST_F(PassiveTest, failures_while_accepting_leak_nothing)
{
    world.fail_pages = true;
    EXPECT_EQ(world.request(gid(9), 0x900), nullptr);
    EXPECT_EQ(world.turned_away, 3U);
    world.fail_pages = false;
    for (int i = 1; i <= 2; ++i) {
        world.fail_cm = i;
        const auto* made = world.request(gid(1), 0x100);
        EXPECT_EQ(made == nullptr, i == 1) << "only what comes after the REP is released later";
        world.fail_cm = 0;
        run_for(3);
        EXPECT_EQ(connections(), 0U);
    }
    for (int i = 1; i <= 3; ++i) {
        world.fail_allocation = i;
        world.request(gid(1), 0x100);
        world.fail_allocation = 0;
    }
}

TEST_F(PassiveTest, completion_without_a_buffer_is_logged_and_ignored)
{
    ib_qp* qp = accept(1, 0x100);
    qp->recv_cq->push({WrId::of(WrId::Kind::rc, 256), 0, 100, 0, 0, false, qp});
    world.run_polls();
    EXPECT_TRUE(world.received.empty());
    EXPECT_EQ(world.log.back(), "cm receive completion for index %u of %u");
}

TEST_F(PassiveTest, listener_handles_only_requests)
{
    for (const unsigned int event : {SHIM_IB_CM_DREQ_RECEIVED, SHIM_IB_CM_REJ_RECEIVED, SHIM_IB_CM_TIMEWAIT_EXIT})
        world.message(listener(), event);
    EXPECT_TRUE(listener()->sent.empty());
    EXPECT_EQ(connections(), 0U);
}

TEST_F(PassiveTest, request_during_close_is_rejected)
{
    void* const context = listener()->context;
    close();
    ib_cm_id* late = world.new_cm_id(context);
    const PrivateData data{{kernel::Be32(0x100), kernel::Be32(65524)}, {}};
    shim_cm_message message{};
    message.event = SHIM_IB_CM_REQ_RECEIVED;
    message.private_data = reinterpret_cast<const std::uint8_t*>(&data);
    message.reliable = true;
    EXPECT_NE(ipoib_cm_event(late, &message, context), 0);
    EXPECT_EQ(late->reason, static_cast<unsigned int>(SHIM_CM_REJ_NO_RESOURCES));
    shim_ib_destroy_cm_id(late);
}

// Without a shared receive queue

class NoSrqTest : public PassiveTest {
protected:
    void SetUp() override
    {
        world.have_srq = false;
        PassiveTest::SetUp();
        shim_parameters.max_nonsrq_conn_qp = 3;
    }
};

TEST_F(NoSrqTest, each_connection_has_its_own_buffers)
{
    ib_qp* one = accept(1, 0x100);
    ib_qp* two = accept(2, 0x100);
    EXPECT_EQ(one->receives.size(), 64U);
    EXPECT_EQ(two->receives.size(), 64U);
    for (int i = 0; i < 300; ++i)
        ASSERT_TRUE(world.receive_message(i % 2 ? *one : *two, message(5000)));
    EXPECT_EQ(statistics().rx_packets, 300U);
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    run_for(3);
    EXPECT_EQ(connections(), 1U);
}

TEST_F(NoSrqTest, requests_of_one_peer_count_toward_the_limit)
{
    for (int i = 0; i < 3; ++i)
        ASSERT_NE(accept(1, 0x100), nullptr);
    EXPECT_EQ(accept(1, 0x100), nullptr);
    EXPECT_EQ(connections(), 3U);
}

TEST_F(NoSrqTest, failed_requests_do_not_count_toward_the_limit)
{
    world.fail_pages = true;
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(accept(1, 0x100), nullptr);
    world.fail_pages = false;
    for (std::uint8_t i = 1; i <= 3; ++i)
        EXPECT_NE(accept(i, 0x100), nullptr);
    EXPECT_EQ(accept(4, 0x100), nullptr);
}

TEST_F(NoSrqTest, messages_of_all_sizes_arrive_whole) { receive_all_sizes(accept(1, 0x100), 4096); }

TEST_F(NoSrqTest, connection_limit_evicts_the_longest_idle_connection)
{
    for (std::uint8_t i = 1; i <= 3; ++i)
        ASSERT_NE(accept(i, 0x100), nullptr);
    EXPECT_EQ(accept(4, 0x100), nullptr);
    EXPECT_EQ(world.turned_away, 1U);
    run_for(1500);
    EXPECT_EQ(accept(4, 0x100), nullptr) << "its turn comes when the oldest is gone";
    run_for(3);
    EXPECT_NE(accept(4, 0x100), nullptr);
}

TEST_F(NoSrqTest, longest_idle_connection_is_evicted_across_the_wrap_of_jiffies)
{
    world.now = ~0UL - 500;
    ib_qp* oldest = accept(1, 0x100);
    run_for(1000);
    ib_qp* others[] = {accept(2, 0x100), accept(3, 0x100)};
    run_for(1500);
    EXPECT_EQ(accept(4, 0x100), nullptr);
    run_for(3);
    const auto has = [&](ib_qp* qp) { return std::count(world.qps.begin(), world.qps.end(), qp) == 1; };
    EXPECT_FALSE(has(oldest));
    EXPECT_TRUE(has(others[0]) && has(others[1]));
}

// HCAs with shared receive queues that refuse to create one

class RefusedSrqTest : public PassiveTest {
protected:
    void SetUp() override
    {
        world.refuse_srq = true;
        shim_parameters.max_nonsrq_conn_qp = 3;
        PassiveTest::SetUp();
    }
};

TEST_F(RefusedSrqTest, completion_queue_has_space_for_each_connections_buffers)
{
    const ib_qp* one = accept(1, 0x100);
    const ib_qp* two = accept(2, 0x100);
    EXPECT_EQ(one->receives.size() + two->receives.size(), 128U);
    // The datagrams' receives, those of three connections, and their drains.
    EXPECT_EQ(one->recv_cq->size, 256U + 3 * 64 + 64);
    EXPECT_EQ(world.log.size(), 1U);
}

} // namespace
} // namespace ipoib
