// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Passive side of connections, on scripted fakes: REQs accepted or rejected, and received messages.
#include "connected_passive_test.hpp"

#include <ipoib/wr_id.hpp>

#include <shim/cm.h>

namespace ipoib {
namespace {

TEST_F(PassiveTest, request_is_accepted_in_datagram_mode)
{
    ib_qp* qp = accept(1, 0x100);
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(id->sent, std::vector<std::string>{"REP"});
    EXPECT_EQ(id->qpn, qp->number);
    EXPECT_EQ(qp->state, "rts");
    EXPECT_EQ(qp->rnr_timer, 12);
    EXPECT_EQ(id->rnr_retries, 6);
    const std::vector<std::uint8_t> private_data{0, 0, 0, 0x48, 0, 0, 0xff, 0xf4};
    EXPECT_EQ(id->private_data, private_data);
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
    std::vector<std::pair<unsigned int, unsigned int>> orders_and_sizes;
    for (page_pool* pool : world.pools)
        if (!before.count(pool))
            orders_and_sizes.emplace_back(pool->order, pool->size);
    std::ranges::sort(orders_and_sizes);
    EXPECT_EQ(orders_and_sizes, (std::vector<std::pair<unsigned int, unsigned int>>{{0, 256}, {2, 256 * 4}}));
}

TEST_F(PassiveTest, connection_without_memory_for_a_pool_is_followed_by_another)
{
    for (const unsigned int granted : {0U, 1U}) {
        world.refused = "pool_create";
        world.granted = granted;
        EXPECT_EQ(accept(1, 0x100), nullptr);
        world.refused.clear();
    }
    EXPECT_NE(accept(1, 0x100), nullptr);
}

TEST_F(PassiveTest, closing_frees_the_shared_buffers)
{
    accept(1, 0x100);
    close();
    // The kernel lists the pools of a netdev that is moved to another network namespace as those of lo.
    for (const page_pool* pool : world.pools)
        EXPECT_TRUE(pool->destroyed);
    EXPECT_TRUE(world.loose_pages.empty());
    EXPECT_TRUE(world.srqs.empty());
    open();
    world.refuse_srq = true;
    EXPECT_EQ(accept(1, 0x100), nullptr);
    EXPECT_TRUE(logged("failed to allocate SRQ, error %d"));
    world.refuse_srq = false;
    ASSERT_NE(accept(1, 0x100), nullptr);
    EXPECT_EQ((*world.srqs.begin())->receives.size(), 256U);
}

TEST_F(PassiveTest, messages_of_all_sizes_arrive_whole) { receive_all_sizes(accept(1, 0x100)); }

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

TEST_F(PassiveTest, messages_longer_than_announced_are_counted_and_dropped)
{
    ib_qp* const qp = accept(1, 0x100);
    ASSERT_TRUE(world.receive_message(*qp, message(65520)));
    EXPECT_EQ(statistics().rx_packets, 1U);
    ASSERT_TRUE(world.receive_message(*qp, message(65521)));
    EXPECT_EQ(statistics().rx_errors, 1U);
    EXPECT_EQ(statistics().rx_packets, 1U);
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

// ib_cm would keep its record of the connection for hours after the end.
TEST_F(PassiveTest, request_with_a_long_packet_life_time_is_rejected)
{
    world.peer_life_time = 24;
    EXPECT_EQ(world.request(gid(1), 0x100), nullptr);
    EXPECT_EQ(world.reject_reason, 28U);
    EXPECT_TRUE(shows("passive_rejected 1 malformed 0"));
    world.peer_life_time = 23;
    EXPECT_NE(world.request(gid(1), 0x100), nullptr);
}

TEST_F(PassiveTest, malformed_private_data_is_rejected)
{
    EXPECT_EQ(world.request(gid(1), 0x100, 0), nullptr);
    EXPECT_EQ(world.reject_reason, 28U);
    EXPECT_EQ(world.request(gid(1), 0x100, 4), nullptr);
    EXPECT_EQ(world.request(gid(1), 0), nullptr);
    EXPECT_EQ(world.request(gid(1), 0x100, 65524, false), nullptr);
    EXPECT_EQ(world.reject_reason, 9U);
    EXPECT_TRUE(shows("passive_rejected 4 malformed 3"));
    EXPECT_EQ(connections(), 0U);
    // The bits above the 24-bit QPN may have any value.
    EXPECT_NE(world.request(gid(1), 0xff000100), nullptr);
}

TEST_F(PassiveTest, request_flood_is_limited)
{
    unsigned int accepted = 0;
    for (std::uint32_t i = 1; i <= 2000; ++i)
        accepted += world.request(gid(1), i) != nullptr;
    EXPECT_EQ(accepted, 1024U);
    EXPECT_EQ(world.reject_reason, 3U);
    run_for(100);
    for (std::uint32_t i = 1; i <= 2000; ++i)
        accepted += world.request(gid(2), i) != nullptr;
    EXPECT_EQ(accepted, 1024U + 256U);
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
    EXPECT_EQ(world.reject_reason, 1U);
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
    EXPECT_EQ(world.reject_reason, 3U);
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

TEST_F(PassiveTest, withdrawn_request_is_no_fault)
{
    world.cm_withdrawn = true;
    EXPECT_EQ(world.request(gid(1), 0x100), nullptr);
    world.cm_withdrawn = false;
    EXPECT_EQ(connections(), 0U);
    EXPECT_TRUE(shows("passive_rejected 1 malformed 0"));
    EXPECT_FALSE(logged("failed to set a connection up, error %d"));
    EXPECT_NE(accept(1, 0x100), nullptr);
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

TEST_F(PassiveTest, closing_leaves_no_work_of_connections)
{
    accept(1, 0x100);
    world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
    EXPECT_FALSE(close_leaves_work());
}

TEST_F(PassiveTest, request_during_close_is_rejected)
{
    shim_cm_endpoint* const endpoint = listener()->endpoint;
    close();
    ib_cm_id* late = world.new_cm_id(endpoint);
    const PrivateData data{{kernel::Be32(0x100), kernel::Be32(65524)}, {}};
    shim_cm_message message{};
    message.event = SHIM_IB_CM_REQ_RECEIVED;
    message.private_data = reinterpret_cast<const std::uint8_t*>(&data);
    message.reliable = true;
    EXPECT_NE(endpoint->handle(endpoint, late, &message), 0);
    EXPECT_EQ(late->reason, static_cast<unsigned int>(SHIM_CM_REJ_NO_RESOURCES));
    shim_ib_destroy_cm_id(late);
}

// Receives of an HCA that has few elements for each are shorter than the longest message.
class FewElementsTest : public PassiveTest {
protected:
    void SetUp() override
    {
        world.srq_sges = 3;
        PassiveTest::SetUp();
    }
};

TEST_F(FewElementsTest, mtu_of_connections_leaves_space_for_the_encapsulation)
{
    set_mode("connected");
    constexpr unsigned int mtu = 3 * 16384 - 16;
    EXPECT_EQ(world.dev().mtu, mtu);
    ib_qp* const qp = accept(1, 0x100);
    ASSERT_TRUE(world.receive_message(*qp, message(mtu)));
    EXPECT_EQ(statistics().rx_packets, 1U);
    EXPECT_EQ(statistics().rx_errors, 0U);
}

} // namespace
} // namespace ipoib
