// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Passive side of connections, on scripted fakes of HCAs without shared receive queues, or that refuse to create one.
#include "connected_passive_test.hpp"

#include <shim/cm.h>
#include <shim/module.h>

namespace ipoib {
namespace {

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

TEST_F(NoSrqTest, further_connection_of_a_peer_needs_half_the_slots_to_be_free)
{
    shim_parameters.max_nonsrq_conn_qp = 4;
    ib_qp* const first = accept(1, 0x100);
    ASSERT_TRUE(world.receive_message(*first, message(10)));
    ASSERT_NE(accept(2, 0x100), nullptr);
    EXPECT_EQ(accept(1, 0x100), nullptr);
    EXPECT_NE(accept(3, 0x100), nullptr) << "another peer's first one";
}

// A peer that was restarted connects again; its former connection may never be closed.
TEST_F(NoSrqTest, idle_connection_does_not_keep_its_peer_from_connecting_again)
{
    shim_parameters.max_nonsrq_conn_qp = 4;
    ib_qp* const former = accept(1, 0x100);
    ASSERT_TRUE(world.receive_message(*former, message(10)));
    ASSERT_NE(accept(2, 0x100), nullptr);
    run_for(1500);
    EXPECT_NE(accept(1, 0x100), nullptr);
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

TEST_F(NoSrqTest, messages_of_all_sizes_arrive_whole) { receive_all_sizes(accept(1, 0x100)); }

TEST_F(NoSrqTest, connection_limit_evicts_the_longest_idle_connection)
{
    for (std::uint8_t i = 1; i <= 3; ++i)
        ASSERT_NE(accept(i, 0x100), nullptr);
    EXPECT_EQ(accept(4, 0x100), nullptr);
    EXPECT_EQ(world.reject_reason, 1U);
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
