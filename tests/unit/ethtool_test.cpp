// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// ethtool: the names that programs know by place, values that move, speeds, moderation.
#include "driver_test.hpp"

#include <shim/ethtool.h>

namespace ipoib {
namespace {

class EthtoolTest : public DriverTest {
protected:
    static std::vector<std::string> names()
    {
        std::vector<char> text(ipoib_ethtool_statistics_count() * SHIM_STATISTIC_NAME_BYTES);
        ipoib_ethtool_statistic_names(text.data());
        std::vector<std::string> names;
        for (std::size_t at = 0; at < text.size(); at += SHIM_STATISTIC_NAME_BYTES)
            names.emplace_back(text.data() + at);
        return names;
    }
    std::uint64_t value(const std::string& name)
    {
        std::vector<std::uint64_t> values(ipoib_ethtool_statistics_count());
        ipoib_ethtool_statistics(&world.dev(), values.data());
        const auto all = names();
        const auto it = std::find(all.begin(), all.end(), name);
        EXPECT_NE(it, all.end()) << name;
        return it == all.end() ? 0 : values[static_cast<std::size_t>(it - all.begin())];
    }
};

TEST_F(EthtoolTest, the_first_eight_names_are_those_that_programs_know)
{
    const std::vector<std::string> known = {"rx_packets", "tx_packets", "rx_bytes",   "tx_bytes",
                                            "tx_errors",  "rx_dropped", "tx_dropped", "multicast"};
    auto first = names();
    first.resize(known.size());
    EXPECT_EQ(first, known);
    auto sorted = names();
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end()) << "a name is there twice";
}

TEST_F(EthtoolTest, values_follow_what_happens)
{
    open();
    meet(peer(1));
    EXPECT_EQ(value("tx_packets"), 1U);
    EXPECT_EQ(value("tx_doorbells"), 1U);
    EXPECT_EQ(value("path_queries"), 1U);
    EXPECT_EQ(value("group_joins"), 1U);
    world.transmit(world.packet(peer(2)));
    world.answer_path(-22);
    EXPECT_EQ(value("path_failures"), 1U);
    EXPECT_EQ(value("tx_dropped_no_path"), 1U);
    for (int i = 0; i < 128; ++i)
        world.transmit(world.packet(peer(1)), i < 127);
    EXPECT_EQ(value("tx_doorbells"), 2U);
    EXPECT_EQ(value("tx_ring_stops"), 1U);
}

TEST_F(EthtoolTest, speed_is_that_of_a_lane_times_lanes)
{
    struct {
        unsigned int speed, width, result;
    } const cases[] = {{1, 1, 2500},    {4, 2, 40000},   {8, 2, 40000},    {16, 2, 56000},
                       {32, 2, 100000}, {64, 2, 200000}, {128, 2, 400000}, {256, 4, 1600000},
                       {2, 8, 60000},   {4, 16, 20000},  {3, 2, 0},        {4, 3, 0}};
    for (const auto& one : cases) {
        world.ca.port.speed = one.speed;
        world.ca.port.width = one.width;
        EXPECT_EQ(ipoib_ethtool_speed(&world.dev()), one.result) << one.speed << ' ' << one.width;
    }
}

TEST_F(EthtoolTest, moderation_reaches_the_queue_and_is_remembered)
{
    unsigned int usecs = 1, frames = 1;
    ipoib_ethtool_get_moderation(&world.dev(), &usecs, &frames);
    EXPECT_EQ(usecs + frames, 0U);
    EXPECT_EQ(ipoib_ethtool_set_moderation(&world.dev(), 20, 0xffff), 0);
    EXPECT_EQ(world.ca.moderated_usecs, 20U);
    EXPECT_EQ(world.ca.moderated_entries, 0xffffU);
    EXPECT_EQ(ipoib_ethtool_set_moderation(&world.dev(), 0x10000, 1), -22);
    EXPECT_EQ(ipoib_ethtool_set_moderation(&world.dev(), 1, 0x10000), -22);
    world.ca.moderation_error = -22;
    EXPECT_EQ(ipoib_ethtool_set_moderation(&world.dev(), 1, 1), -22);
    ipoib_ethtool_get_moderation(&world.dev(), &usecs, &frames);
    EXPECT_EQ(usecs, 20U);
    world.ca.moderation_error = -95;
    EXPECT_EQ(ipoib_ethtool_set_moderation(&world.dev(), 1, 1), 0);
    ipoib_ethtool_get_moderation(&world.dev(), &usecs, &frames);
    EXPECT_EQ(usecs, 1U);
}

} // namespace
} // namespace ipoib
