// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Ring arithmetic at the wrap of its counters, and the clamping of ring sizes.
#include <gtest/gtest.h>

#include <kernel/ring.hpp>

namespace kernel {
namespace {

TEST(RingIndex, counts_across_the_wrap)
{
    RingIndex index(8, 0xfffffffc);
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(index.used(), static_cast<std::uint32_t>(i));
        EXPECT_EQ(index.free(), static_cast<std::uint32_t>(8 - i));
        EXPECT_EQ(index.slot(index.head()), static_cast<std::uint32_t>((4 + i) % 8));
        index.produce();
    }
    EXPECT_EQ(index.free(), 0U);
    EXPECT_EQ(index.head(), 4U);
    index.consume_to(2);
    EXPECT_EQ(index.used(), 2U);
    index.consume_to(4);
    EXPECT_TRUE(index.empty());
}

TEST(RingIndex, holds_indices_between_tail_and_head)
{
    RingIndex index(8, 0xfffffffe);
    index.produce(4);
    for (const std::uint32_t in : {0xfffffffeU, 0xffffffffU, 0U, 1U})
        EXPECT_TRUE(index.holds(in)) << in;
    for (const std::uint32_t out : {0xfffffffdU, 2U, 8U, 0x80000000U})
        EXPECT_FALSE(index.holds(out)) << out;
}

TEST(RingIndex, passed_is_correct_across_the_wrap)
{
    RingIndex index(8, 0xfffffffe);
    index.produce(4);
    EXPECT_TRUE(index.passed(0xfffffffe));
    EXPECT_FALSE(index.passed(0xffffffff));
    EXPECT_FALSE(index.passed(2));
    index.consume_to(2);
    EXPECT_TRUE(index.passed(2));
    EXPECT_TRUE(index.passed(0xffffffff));
    EXPECT_FALSE(index.passed(3));
}

TEST(ClampRingSize, rounds_up_to_a_power_of_two_in_range)
{
    EXPECT_EQ(clamp_ring_size(-2147483647 - 1, 128, 8192), 128);
    EXPECT_EQ(clamp_ring_size(0, 2, 8192), 2);
    EXPECT_EQ(clamp_ring_size(3, 2, 8192), 4);
    EXPECT_EQ(clamp_ring_size(128, 128, 8192), 128);
    EXPECT_EQ(clamp_ring_size(129, 128, 8192), 256);
    EXPECT_EQ(clamp_ring_size(8191, 128, 8192), 8192);
    EXPECT_EQ(clamp_ring_size(2147483647, 128, 8192), 8192);
}

} // namespace
} // namespace kernel
