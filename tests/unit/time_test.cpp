// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Comparing times in jiffies, which wrap.
#include <gtest/gtest.h>

#include <kernel/time.hpp>

namespace kernel {
namespace {

TEST(Time, order_holds_across_the_wrap)
{
    EXPECT_TRUE(before(~0UL, 0));
    EXPECT_FALSE(before(0, ~0UL));
    EXPECT_FALSE(before(5, 5));
    EXPECT_TRUE(reached(5, 5));
    EXPECT_TRUE(reached(~0UL, 2));
    EXPECT_FALSE(reached(2, ~0UL));
}

// The fake's ticks have 10 ms; the current one may end at once.
TEST(Time, milliseconds_are_rounded_up_to_whole_ticks)
{
    EXPECT_EQ(milliseconds(0), 0U);
    EXPECT_EQ(milliseconds(1), 2U);
    EXPECT_EQ(milliseconds(10), 2U);
    EXPECT_EQ(milliseconds(11), 3U);
}

TEST(Time, elapsed_since_a_later_time_is_zero)
{
    EXPECT_EQ(elapsed(5, 7), 2U);
    EXPECT_EQ(elapsed(~0UL, 1), 2U);
    EXPECT_EQ(elapsed(7, 7), 0U);
    EXPECT_EQ(elapsed(8, 7), 0U);
    EXPECT_EQ(elapsed(1, ~0UL), 0U);
}

} // namespace
} // namespace kernel
