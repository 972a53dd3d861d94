// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// ethtool: names of statistics by index, their values, speeds, moderation.
#include "driver_test.hpp"

#include <shim/ethtool.h>

namespace ipoib {
namespace {

class EthtoolTest : public DriverTest {
protected:
    std::vector<std::string> names()
    {
        std::vector<char> text(ipoib_ethtool_statistics_count(&world.dev()) * SHIM_ETHTOOL_NAME_BYTES);
        ipoib_ethtool_statistic_names(&world.dev(), text.data());
        std::vector<std::string> names;
        for (std::size_t at = 0; at < text.size(); at += SHIM_ETHTOOL_NAME_BYTES)
            names.emplace_back(text.data() + at);
        return names;
    }
    std::uint64_t value(const std::string& name)
    {
        std::vector<std::uint64_t> values(ipoib_ethtool_statistics_count(&world.dev()));
        ipoib_ethtool_statistics(&world.dev(), values.data());
        const auto all = names();
        const auto it = std::find(all.begin(), all.end(), name);
        EXPECT_NE(it, all.end()) << name;
        return it == all.end() ? 0 : values[static_cast<std::size_t>(it - all.begin())];
    }
};

TEST_F(EthtoolTest, first_eight_statistics_have_the_in_tree_names)
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

TEST_F(EthtoolTest, statistics_count_packets_queries_and_joins)
{
    open();
    meet(peer(1));
    EXPECT_EQ(value("tx_packets"), 1U);
    EXPECT_EQ(value("tx_doorbells"), 1U);
    EXPECT_EQ(value("path_queries"), 1U);
    EXPECT_EQ(value("group_joins"), 1U);
    world.transmit(world.packet(peer(2)));
    world.answer_path(-22);
    EXPECT_EQ(value("path_query_failures"), 1U);
    EXPECT_EQ(value("tx_dropped_no_path"), 1U);
    for (int i = 0; i < 128; ++i)
        world.transmit(world.packet(peer(1)), i < 127);
    EXPECT_EQ(value("tx_doorbells"), 2U);
    EXPECT_EQ(value("tx_queue_stopped"), 1U);
}

TEST_F(EthtoolTest, each_statistic_shows_its_counter)
{
    std::uint64_t amount = 1000;
    const auto shows = [&](const char* name, auto& counter) {
        const std::uint64_t before = value(name);
        counter.add(++amount);
        EXPECT_EQ(value(name), before + amount) << name;
    };
    Interface& its = interface();
    shows("rx_errors", its.rx[0].errors);
    shows("rx_dropped", its.rx[0].dropped);
    shows("multicast", its.rx[0].multicast);
    shows("tx_doorbells", its.tx[0].ring.doorbells);
    shows("tx_cm_doorbells", its.tx[0].pool.doorbells);
    shows("tx_queue_stopped", its.tx[0].stops);
    shows("tx_tso_segments", its.tx[0].ring.segmented);
    shows("rx_doorbells", its.rx[0].doorbells);
    shows("rx_cq_events", its.rx[0].events);
    shows("rx_gro_hw_merged", its.rx[0].merged);
    shows("rx_copybreak", its.rx[0].copied);
    shows("tx_dropped_no_path", its.paths.dropped);
    shows("tx_dropped_no_group", its.groups.dropped);
    shows("tx_too_long", its.pmtu.too_long);
    shows("path_queries", its.paths.queries);
    shows("path_query_failures", its.paths.failures);
    shows("path_limit_reached", its.paths.limits_reached);
    shows("group_joins", its.groups.joins);
    shows("group_join_failures", its.groups.failures);
    shows("cm_req_sent", its.connections.active.requests_sent);
    shows("cm_established", its.connections.active.established);
    shows("cm_req_failed", its.connections.active.requests_failed);
    shows("cm_disconnected", its.connections.active.disconnected);
    shows("cm_passive_accepted", its.connections.passive.accepted);
    shows("cm_passive_rejected", its.connections.passive.rejected);
    shows("cm_malformed", its.connections.malformed);
}

TEST_F(EthtoolTest, speed_is_lane_speed_times_lanes)
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

TEST_F(EthtoolTest, moderation_is_set_on_the_queue_and_read_back)
{
    const auto set = [&](unsigned int usecs, unsigned int frames) {
        const shim_moderation moderation{usecs, frames, false};
        return ipoib_ethtool_set_moderation(&world.dev(), &moderation);
    };
    const auto usecs = [&] {
        shim_moderation moderation;
        ipoib_ethtool_get_moderation(&world.dev(), &moderation);
        return moderation.usecs;
    };
    EXPECT_EQ(usecs(), 0U);
    EXPECT_EQ(set(0xffff, 20), 0);
    EXPECT_EQ(world.ca.moderated_usecs, 0xffffU);
    EXPECT_EQ(set(20, 0xffff), 0);
    EXPECT_EQ(world.ca.moderated_usecs, 20U);
    EXPECT_EQ(world.ca.moderated_entries, 0xffffU);
    EXPECT_EQ(set(0x10000, 1), -22);
    EXPECT_EQ(set(1, 0x10000), -22);
    world.ca.moderation_error = -22;
    EXPECT_EQ(set(1, 1), -22);
    EXPECT_EQ(usecs(), 20U);
    world.ca.moderation_error = -95;
    EXPECT_EQ(set(1, 1), 0);
    EXPECT_EQ(usecs(), 1U);
}

TEST_F(EthtoolTest, adaptive_moderation_follows_the_traffic)
{
    open();
    EXPECT_TRUE(world.dim_samples.empty());
    const shim_moderation on{0, 0, true};
    EXPECT_EQ(ipoib_ethtool_set_moderation(&world.dev(), &on), 0);
    const auto packets = interface().rx[0].packets.value(), bytes = interface().rx[0].bytes.value();
    for (unsigned int n = 1; n <= 2; ++n) {
        ASSERT_TRUE(world.receive({8, 0, 0, 0, 1, 2, 3}));
        const auto events = static_cast<std::uint16_t>(interface().rx[0].events.value());
        ASSERT_EQ(world.dim_samples.size(), n);
        EXPECT_EQ(world.dim_samples.back(), (World::DimSample{events, packets + n, bytes + 3 * n}));
    }
    EXPECT_EQ(world.dim_samples[1].events, world.dim_samples[0].events + 1);
    ASSERT_NE(world.dim, nullptr);
    world.dim->apply(world.dim->context, 64, 256);
    shim_moderation now;
    ipoib_ethtool_get_moderation(&world.dev(), &now);
    EXPECT_EQ(now.usecs, 64U);
    EXPECT_TRUE(now.adaptive);
    EXPECT_EQ(world.ca.moderated_usecs, 64U);
    close();
    EXPECT_EQ(world.dim, nullptr);
}

// The user writes while DIM's work item is queued.
TEST_F(EthtoolTest, adaptive_moderation_does_not_replace_the_users)
{
    open();
    const shim_moderation on{0, 0, true}, off{8, 16, false};
    EXPECT_EQ(ipoib_ethtool_set_moderation(&world.dev(), &on), 0);
    ASSERT_TRUE(world.receive({8, 0, 0, 0, 1, 2, 3}));
    ASSERT_NE(world.dim, nullptr);
    EXPECT_EQ(ipoib_ethtool_set_moderation(&world.dev(), &off), 0);
    world.dim->apply(world.dim->context, 64, 256);
    shim_moderation now;
    ipoib_ethtool_get_moderation(&world.dev(), &now);
    EXPECT_EQ(now.usecs, 8U);
    EXPECT_EQ(world.ca.moderated_usecs, 8U);
    close();
}

TEST_F(EthtoolTest, rings_change_on_a_running_interface)
{
    shim_rings rings;
    ipoib_ethtool_get_rings(&world.dev(), &rings);
    EXPECT_EQ(rings.sends, 128U);
    EXPECT_EQ(rings.receives, 256U);
    EXPECT_EQ(rings.max_sends, 8192U);
    const shim_moderation moderation{20, 30, false};
    EXPECT_EQ(ipoib_ethtool_set_moderation(&world.dev(), &moderation), 0);
    open();
    meet(peer(1));
    const std::uint32_t before = interface().identity.qpn();
    const unsigned int moderated = std::exchange(world.ca.moderated_usecs, 0);
    world.transmit(world.packet(peer(1)));

    world.rtnl = true;
    EXPECT_EQ(ipoib_ethtool_set_rings(&world.dev(), 1000, 500), 0);
    world.rtnl = false;
    EXPECT_EQ(world.qp().send_wrs, 1024U);
    EXPECT_EQ(world.qp().recv_wrs, 512U);
    EXPECT_EQ(world.qp().receives.size(), 512U);
    EXPECT_EQ(world.ca.moderated_usecs, moderated);
    // Another queue pair is another address, which must be announced to the neighbours.
    EXPECT_NE(interface().identity.qpn(), before);
    EXPECT_EQ(HwAddr::from(world.dev().address.data()).qpn(), interface().identity.qpn());
    EXPECT_EQ(world.dev().address_changes, 1U);
    world.run_work();
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
    EXPECT_EQ(world.dev().announcements, 1U);
    world.advance(10000);
    world.run_work();
    EXPECT_GT(world.dev().announcements, 1U);
    meet(peer(1));
    EXPECT_EQ(world.sent.back().qpn, 0x100U);
    EXPECT_TRUE(world.receive({8, 0, 0, 0, 1, 2, 3}));
}

// While the link flaps the stack may not send the announcements yet.
TEST_F(EthtoolTest, new_address_is_announced_again_after_link_flaps)
{
    shim_rings rings;
    ipoib_ethtool_get_rings(&world.dev(), &rings);
    open();
    world.rtnl = true;
    EXPECT_EQ(ipoib_ethtool_set_rings(&world.dev(), 2 * rings.sends, rings.receives), 0);
    world.rtnl = false;
    for (int i = 0; i < 4; ++i) {
        world.advance(shim_hz());
        for (const bool active : {false, true}) {
            world.ca.port.active = active;
            world.event(active ? SHIM_IB_EVENT_PORT_ACTIVE : SHIM_IB_EVENT_PORT_ERR);
            world.run_work();
        }
        world.answer_broadcast();
        world.run_work();
    }
    const unsigned int before = world.dev().announcements;
    world.advance(10000);
    world.run_work();
    EXPECT_GE(world.dev().announcements, before + 2);
}

TEST_F(EthtoolTest, new_address_is_not_announced_without_carrier)
{
    open();
    world.rtnl = true;
    EXPECT_EQ(ipoib_ethtool_set_rings(&world.dev(), 1024, 512), 0);
    world.rtnl = false;
    world.run_work();
    world.answer_broadcast();
    world.run_work();
    const unsigned int before = world.dev().announcements;
    EXPECT_EQ(before, 1U);
    world.ca.port.active = false;
    world.event(SHIM_IB_EVENT_PORT_ERR);
    world.run_work();
    EXPECT_FALSE(world.dev().carrier);
    world.advance(10 * shim_hz());
    world.run_work();
    EXPECT_EQ(world.dev().announcements, before);
}

TEST_F(EthtoolTest, ring_change_of_a_bond_port_is_refused)
{
    open();
    world.dev().bonded = true;
    const std::uint32_t qpn = interface().identity.qpn();
    world.rtnl = true;
    EXPECT_EQ(ipoib_ethtool_set_rings(&world.dev(), 1024, 512), -16);
    EXPECT_EQ(interface().identity.qpn(), qpn);
    EXPECT_FALSE(world.log.empty());
    EXPECT_EQ(ipoib_ethtool_set_rings(&world.dev(), 128, 256), 0) << "as they are";
    world.rtnl = false;
}

TEST_F(EthtoolTest, unchanged_ring_sizes_keep_the_queue_pair)
{
    open();
    const ib_qp* before = &world.qp();
    world.rtnl = true;
    EXPECT_EQ(ipoib_ethtool_set_rings(&world.dev(), 128, 200), 0);
    world.rtnl = false;
    EXPECT_EQ(&world.qp(), before);
    EXPECT_TRUE(world.dev().carrier);
}

TEST_F(EthtoolTest, failed_resize_keeps_the_old_rings)
{
    open();
    world.fail_qps = 1;
    world.rtnl = true;
    EXPECT_EQ(ipoib_ethtool_set_rings(&world.dev(), 4096, 4096), -12);
    world.rtnl = false;
    EXPECT_EQ(interface().queues.sizes().sends, 128U);
    EXPECT_EQ(world.qp().send_wrs, 128U);
    world.run_work();
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
    meet(peer(1));
}

TEST_F(EthtoolTest, open_recreates_rings_lost_by_a_failed_resize)
{
    open();
    world.fail_qps = 3;
    world.rtnl = true;
    EXPECT_EQ(ipoib_ethtool_set_rings(&world.dev(), 4096, 4096), -12);
    EXPECT_TRUE(world.qps.empty());
    const shim_moderation moderation{20, 30, false};
    EXPECT_EQ(ipoib_ethtool_set_moderation(&world.dev(), &moderation), 0);
    ipoib_ndo_stop(&world.dev());
    EXPECT_EQ(ipoib_ndo_open(&world.dev()), 0);
    world.rtnl = false;
    world.run_work();
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
    meet(peer(1));
}

TEST_F(EthtoolTest, ring_sizes_are_rounded_up_to_powers_of_two)
{
    struct {
        unsigned int sends, receives, used_sends, used_receives;
    } const cases[] = {{128, 2, 128, 2}, {129, 129, 256, 256}, {8191, 3, 8192, 4}};
    for (const auto& one : cases) {
        world.rtnl = true;
        EXPECT_EQ(ipoib_ethtool_set_rings(&world.dev(), one.sends, one.receives), 0);
        world.rtnl = false;
        shim_rings rings;
        ipoib_ethtool_get_rings(&world.dev(), &rings);
        EXPECT_EQ(rings.sends, one.used_sends);
        EXPECT_EQ(rings.receives, one.used_receives);
    }
}

TEST_F(EthtoolTest, rings_below_their_minimum_are_refused)
{
    open();
    const ib_qp* before = &world.qp();
    world.rtnl = true;
    for (const ipoib::RingSizes& wanted : {ipoib::RingSizes{127, 512}, {512, 1}, {0, 0}})
        EXPECT_EQ(ipoib_ethtool_set_rings(&world.dev(), wanted.sends, wanted.receives), -22);
    world.rtnl = false;
    EXPECT_EQ(&world.qp(), before);
}

TEST_F(EthtoolTest, rings_change_while_the_interface_is_down)
{
    world.rtnl = true;
    EXPECT_EQ(ipoib_ethtool_set_rings(&world.dev(), 256, 1024), 0);
    world.rtnl = false;
    EXPECT_EQ(world.qp().recv_wrs, 1024U);
    open();
    EXPECT_EQ(world.qp().receives.size(), 1024U);
}

TEST_F(EthtoolTest, speed_is_unknown_if_the_port_query_fails)
{
    EXPECT_NE(ipoib_ethtool_speed(&world.dev()), 0U);
    world.refused = "ib_query_port";
    EXPECT_EQ(ipoib_ethtool_speed(&world.dev()), 0U);
}

TEST_F(EthtoolTest, flag_of_a_closed_interface_does_not_open_it)
{
    const unsigned int updates = world.dev().feature_updates;
    world.rtnl = true;
    EXPECT_EQ(ipoib_ethtool_set_flags(&world.dev(), IPOIB_FLAG_ICRC_AS_CHECKSUM), 0);
    world.rtnl = false;
    world.run_work();
    EXPECT_EQ(world.qp().state, "reset");
    // Whether checksums are offered depends on it.
    EXPECT_EQ(world.dev().feature_updates, updates + 1);
}

TEST_F(EthtoolTest, each_completion_event_of_the_receive_queue_is_counted)
{
    open();
    const std::uint64_t before = value("rx_cq_events");
    for (std::uint64_t i = 1; i <= 3; ++i) {
        ASSERT_TRUE(world.receive({8, 0, 0, 0, 1, 2, 3}));
        EXPECT_EQ(value("rx_cq_events"), before + i);
    }
}

} // namespace
} // namespace ipoib
