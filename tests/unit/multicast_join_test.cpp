// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Joins of groups that are refused, repeated, cancelled, or answered at another time than expected.
#include "multicast_test.hpp"

namespace ipoib {
namespace {

TEST_F(MulticastTest, refused_broadcast_join_is_retried_with_back_off)
{
    open_only();
    for (const unsigned int seconds : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 64U}) {
        world.answer_broadcast(-110);
        world.advance(seconds * 100 - 2);
        EXPECT_TRUE(world.open_joins.empty()) << seconds;
        world.advance(4);
        EXPECT_EQ(world.open_joins.size(), 1U) << seconds;
    }
    EXPECT_FALSE(world.dev().carrier);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
}

TEST_F(MulticastTest, first_20_refusals_in_a_row_are_logged)
{
    constexpr const char* message = "%smulticast join failed for %pI6, status %d";
    open_only();
    const auto refuse = [&](unsigned int times) {
        for (unsigned int i = 0; i < times; ++i) {
            world.answer_broadcast(-22);
            // More than the longest back-off, and than the interval of the log's own limit.
            world.advance(2500);
        }
        return std::count(world.log.begin(), world.log.end(), message);
    };
    EXPECT_EQ(refuse(20), 20);
    EXPECT_EQ(refuse(5), 20);
    world.answer_broadcast();
    world.run_work();
    reregister();
    EXPECT_EQ(refuse(1), 21);
}

TEST_F(MulticastTest, join_retries_have_jitter)
{
    open_only();
    for (const std::uint32_t chance : {0U, 100U}) {
        world.chance = chance;
        world.answer_broadcast(-110);
        world.advance(chance == 0 ? 48 : 298);
        EXPECT_TRUE(world.open_joins.empty()) << chance;
        world.advance(4);
        EXPECT_EQ(world.open_joins.size(), 1U) << chance;
    }
}

TEST_F(MulticastTest, failed_join_call_is_retried)
{
    world.rtnl = true;
    ASSERT_EQ(ipoib_ndo_open(&world.dev()), 0);
    world.rtnl = false;
    world.fail_allocation = 3; // group, hash insertion, join
    world.run_work();
    EXPECT_TRUE(world.open_joins.empty());
    EXPECT_EQ(world.join_requests, 1U);
    EXPECT_EQ(interface().groups.failures.value(), 1U);
    world.advance(110);
    EXPECT_EQ(world.open_joins.size(), 1U);
}

TEST_F(MulticastTest, close_cancels_a_pending_join)
{
    open_only();
    close();
    EXPECT_TRUE(world.memberships.empty());
    EXPECT_TRUE(world.qp().attached.empty());
}

// ib_core removes the entry of its GID table before it stores the new one.
TEST_F(MulticastTest, join_answered_while_the_gid_is_absent_is_repeated)
{
    open_only();
    const shim_gid gid = std::exchange(world.ca.gid, {});
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.ahs.empty()) << "with the index of another GID";
    EXPECT_FALSE(world.dev().carrier);
    world.ca.gid = gid;
    world.advance(210);
    ASSERT_EQ(world.open_joins.size(), 1U);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
}

TEST_F(MulticastTest, join_response_during_leave_is_ignored)
{
    open_only();
    world.answer_while_leaving = true;
    close();
    EXPECT_TRUE(world.qp().attached.empty());
}

TEST_F(MulticastTest, failed_attachment_leaves_no_membership)
{
    open();
    set_groups({1});
    world.fail_allocation = 1; // the address handle
    world.answer_join(world.join_of(group(1)));
    world.fail_allocation = 0;
    EXPECT_EQ(world.memberships.size(), 1U);
    // The group stays attached until it is left; the retry finds it attached.
    world.advance(110);
    world.answer_join(world.join_of(group(1)));
    EXPECT_EQ(world.qp().attached.size(), 2U);
}

} // namespace
} // namespace ipoib
