// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// HCA with an rdma_netdev: the driver leaves sending and receiving to that, and everything else is unchanged.
#include "driver_test.hpp"

#include <shim/ethtool.h>
#include <shim/queue_stats.h>

namespace ipoib {
namespace {

class RdmaNetdevTest : public testing::Test {
protected:
    void start(int enhanced = 1, const char* except = "")
    {
        world.have_rdma_netdev = true;
        shim_parameters.ipoib_enhanced = enhanced;
        names = except;
        shim_parameters.ipoib_enhanced_except = names.data();
        world.start();
    }
    void TearDown() override
    {
        world.stop();
        EXPECT_EQ(world.rdma_netdevs, 0);
    }
    Interface& interface() { return Interface::of(&world.dev()); }
    bool told(const char* what)
    {
        const auto& all = world.dev().lower;
        return std::find(all.begin(), all.end(), what) != all.end();
    }
    std::string names;
    World world;
};

TEST_F(RdmaNetdevTest, opens_joins_and_sends)
{
    start();
    EXPECT_TRUE(interface().rdma_netdev.present());
    EXPECT_TRUE(world.qps.empty());
    world.bring_up();
    EXPECT_TRUE(world.dev().carrier);
    const HwAddr to = HwAddr::of(0, 0x100, Gid{{0xfe, 0x80, 1}});
    world.transmit(world.packet(to));
    world.answer_path();
    EXPECT_EQ(world.dev().lower, (std::vector<std::string>{"init", "open", "attach broadcast", "send"}));
    shim_stats stats{};
    ipoib_ndo_get_stats(&world.dev(), &stats);
    EXPECT_EQ(stats.tx_packets, 1000U);
    world.rtnl = true;
    ipoib_ndo_stop(&world.dev());
    world.rtnl = false;
    EXPECT_TRUE(told("detach"));
    EXPECT_EQ(world.dev().lower.back(), "stop");
}

TEST_F(RdmaNetdevTest, address_has_the_rdma_netdevs_qpn_and_no_connected_flag)
{
    start();
    const HwAddr address = HwAddr::from(world.dev().address.data());
    EXPECT_EQ(address.qpn(), 0x77U);
    EXPECT_FALSE(address.connected_capable());
}

TEST_F(RdmaNetdevTest, connected_mode_moderation_and_rings_are_refused)
{
    start();
    world.bring_up();
    world.rtnl = true;
    EXPECT_EQ(interface().settings.set_connected(true).code(), -22);
    EXPECT_TRUE(interface().settings.set_connected(false).ok());
    const shim_link_request connected{.link = nullptr,
                                      .has_link = false,
                                      .has_pkey = false,
                                      .has_mode = true,
                                      .has_umcast = false,
                                      .pkey = 0,
                                      .mode = 1,
                                      .umcast = 0};
    EXPECT_EQ(ipoib_changelink(&world.dev(), &connected, nullptr), -22);
    EXPECT_EQ(world.extack, "mode 1 was not set, error -22");
    const shim_moderation moderation{1, 1, false};
    EXPECT_EQ(ipoib_ethtool_set_moderation(&world.dev(), &moderation), -95);
    EXPECT_EQ(ipoib_ethtool_set_rings(&world.dev(), 1024, 1024), -95);
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 1000), 0);
    EXPECT_EQ(world.dev().mtu, 1000U);
    world.rtnl = false;
    ipoib_ndo_tx_timeout(&world.dev(), 0);
    EXPECT_TRUE(told("timeout of queue 0"));
    world.run_work();
}

TEST_F(RdmaNetdevTest, children_use_the_rdma_netdev)
{
    start();
    world.pkeys_found.push_back(0x8001);
    world.rtnl = true;
    EXPECT_TRUE(interface().children.create(0x8001).ok());
    EXPECT_TRUE(Interface::of(world.netdevs.back()).rdma_netdev.present());
    EXPECT_EQ(world.rdma_netdevs, 2);
    world.fail_allocation = 2;
    world.pkeys_found.push_back(0x8002);
    EXPECT_EQ(interface().children.create(0x8002).code(), -12);
    EXPECT_EQ(world.rdma_netdevs, 2);
    world.rtnl = false;
}

// The fakes check that the ops lock is held whenever the rdma_netdev is opened, closed and changed, and one lock at a
// time.
TEST_F(RdmaNetdevTest, ops_lock_is_held_around_the_rdma_netdevs_operations)
{
    const auto bring = [this](bool up) {
        world.rtnl = true;
        shim_dev_change_flags(&world.dev(), up);
        world.rtnl = false;
    };
    world.rdma_netdev_needs_ops_lock = true;
    start();
    world.pkeys_found.push_back(0x8001);
    world.rtnl = true;
    ASSERT_TRUE(interface().children.create(0x8001).ok());
    world.rtnl = false;
    const net_device* const child = world.netdevs.back();
    bring(true);
    EXPECT_FALSE(child->up);
    world.run_work();
    EXPECT_TRUE(child->up);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
    for (const auto event : {SHIM_IB_EVENT_CLIENT_REREGISTER, SHIM_IB_EVENT_LID_CHANGE, SHIM_IB_EVENT_PKEY_CHANGE}) {
        world.event(event);
        world.run_work();
    }
    // The P_Key leaves the table and returns.
    world.dev().lower.clear();
    const auto pkeys = world.pkeys_found;
    world.pkeys_found.clear();
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    world.pkeys_found = pkeys;
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    ipoib_ndo_tx_timeout(&world.dev(), 0);
    world.run_work();
    EXPECT_TRUE(told("stop"));
    EXPECT_TRUE(told("open"));
    bring(false);
    EXPECT_TRUE(child->up);
    world.run_work();
    EXPECT_FALSE(child->up);
}

TEST_F(RdmaNetdevTest, rdma_netdev_is_opened_with_the_index_of_its_pkey)
{
    start();
    world.pkeys_found.push_back(0x8001);
    world.rtnl = true;
    ASSERT_TRUE(interface().children.create(0x8001).ok());
    world.rtnl = false;
    world.bring_up();
    EXPECT_EQ(world.dev().rdma_netdev_pkey_index, 0);
    EXPECT_EQ(world.netdevs.back()->rdma_netdev_pkey_index, 1);
}

// The children of a netdev with an ops lock follow it from a work item.
TEST_F(RdmaNetdevTest, hca_removed_before_children_follow_leaves_no_work)
{
    world.rdma_netdev_needs_ops_lock = true;
    start();
    world.rtnl = true;
    shim_dev_change_flags(&world.dev(), true);
    world.rtnl = false;
    world.stop();
    EXPECT_TRUE(world.queued.empty());
    start();
}

TEST_F(RdmaNetdevTest, parameter_disables_the_rdma_netdev)
{
    start(0);
    EXPECT_FALSE(interface().rdma_netdev.present());
    EXPECT_EQ(world.rdma_netdevs, 0);
    world.rtnl = true;
    EXPECT_TRUE(interface().settings.set_connected(true).ok());
    world.rtnl = false;
}

// The netdev has the transmit queues of an rdma_netdev, and uses one; the kernel's watchdog checks all.
TEST_F(RdmaNetdevTest, disabled_rdma_netdev_leaves_no_transmit_queue_stopped)
{
    start(0);
    world.bring_up();
    world.rtnl = true;
    ipoib_ndo_stop(&world.dev());
    EXPECT_TRUE(world.dev().transmit_queues[1].stopped);
    EXPECT_EQ(ipoib_ndo_open(&world.dev()), 0);
    world.rtnl = false;
    EXPECT_FALSE(world.dev().stopped);
    EXPECT_FALSE(world.dev().transmit_queues[1].stopped);
}

TEST_F(RdmaNetdevTest, parameter_disables_the_rdma_netdev_of_one_hca)
{
    start(1, "other,fake0");
    EXPECT_FALSE(interface().rdma_netdev.present());
}

TEST_F(RdmaNetdevTest, parameter_enables_the_rdma_netdev_of_one_hca)
{
    start(0, "fake0,fake00");
    EXPECT_TRUE(interface().rdma_netdev.present());
}

TEST_F(RdmaNetdevTest, parameter_matches_whole_hca_names)
{
    start(1, "fake00,fake,,f");
    EXPECT_TRUE(interface().rdma_netdev.present());
}

TEST_F(RdmaNetdevTest, open_reports_the_rdma_netdevs_error)
{
    start();
    world.refused = "rdma_netdev_open";
    world.rtnl = true;
    EXPECT_EQ(ipoib_ndo_open(&world.dev()), -5);
    world.rtnl = false;
    world.refused.clear();
    world.bring_up();
}

TEST_F(RdmaNetdevTest, netdev_gives_its_port_and_rdma_netdev)
{
    start();
    std::uint32_t port = 0;
    EXPECT_EQ(ipoib_port_of(&world.dev(), &port), &world.ca);
    EXPECT_EQ(port, 1U);
    ASSERT_NE(ipoib_rdma_netdev(&world.dev()), nullptr);
    EXPECT_EQ(ipoib_rdma_netdev(&world.dev())->dev, &world.dev());
    world.stop();
    start(0);
    EXPECT_EQ(ipoib_rdma_netdev(&world.dev()), nullptr);
}

TEST_F(RdmaNetdevTest, virtual_function_is_reported_to_the_shim)
{
    world.features |= SHIM_FEATURE_VF;
    start();
    // The rdma_netdev sets the other features.
    EXPECT_EQ(world.dev().features, SHIM_FEATURE_VF);
}

TEST_F(RdmaNetdevTest, rdma_netdevs_mtu_follows_the_link)
{
    start();
    EXPECT_EQ(world.dev().rdma_netdev_mtu, 4092U);
    world.bring_up();
    EXPECT_EQ(world.dev().rdma_netdev_mtu, 2044U);
    world.rtnl = true;
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 4092), 0);
    world.rtnl = false;
    EXPECT_EQ(world.dev().mtu, 2044U);
}

TEST_F(RdmaNetdevTest, mtu_given_at_creation_is_kept)
{
    world.rdma_netdev_max_mtu = 4092;
    world.pkeys_found.push_back(0x8001);
    start();
    EXPECT_EQ(world.dev().mtu, 4092U);
    auto* const child = new net_device;
    child->name = "child";
    child->mtu = 1500;
    world.netdevs.push_back(child);
    const shim_link_request request{.link = &world.dev(),
                                    .has_link = true,
                                    .has_pkey = true,
                                    .has_mode = false,
                                    .has_umcast = false,
                                    .pkey = 0x8001,
                                    .mode = 0,
                                    .umcast = 0};
    world.rtnl = true;
    EXPECT_EQ(ipoib_newlink(child, &request, nullptr), 0);
    world.rtnl = false;
    EXPECT_EQ(child->mtu, 1500U);
}

TEST_F(RdmaNetdevTest, refused_mtu_is_not_set_later)
{
    start();
    world.bring_up();
    world.rtnl = true;
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 1800), 0);
    world.refused = "rdma_netdev_change_mtu";
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 1000), -12);
    world.refused.clear();
    world.rtnl = false;
    world.event(SHIM_IB_EVENT_LID_CHANGE);
    world.run_work();
    world.answer_broadcast();
    world.run_work();
    EXPECT_EQ(world.dev().mtu, 1800U);
}

// An rdma_netdev that filters the interface's own queues: it calls their operations from its own, as hfi1 does.
class RdmaNetdevFilterTest : public RdmaNetdevTest {
protected:
    RdmaNetdevFilterTest() { world.rdma_netdev_filters = true; }
    void set_connected(bool connected)
    {
        world.rtnl = true;
        EXPECT_TRUE(interface().settings.set_connected(connected).ok());
        world.rtnl = false;
    }
    const HwAddr peer = HwAddr::of(HwAddr::flag_rc, 0x100, Gid{{0xfe, 0x80, 1}});
};

TEST_F(RdmaNetdevFilterTest, rdma_netdev_runs_on_top_of_the_interfaces_queue_pair)
{
    start();
    ASSERT_EQ(world.qps.size(), 1U);
    const HwAddr address = HwAddr::from(world.dev().address.data());
    EXPECT_EQ(address.qpn(), world.qp().number);
    EXPECT_TRUE(address.connected_capable());
    EXPECT_EQ(world.dev().features, SHIM_FEATURE_SG);
    world.bring_up();
    EXPECT_TRUE(world.dev().carrier);
    EXPECT_EQ(world.qp().state, "rts");
    EXPECT_EQ(world.qp().attached.size(), 1U);
    world.transmit(world.packet(peer));
    world.answer_path();
    EXPECT_EQ(world.dev().lower, (std::vector<std::string>{"init", "open", "attach broadcast", "send"}));
    EXPECT_TRUE(world.sent.empty());
    world.rtnl = true;
    ipoib_ndo_stop(&world.dev());
    world.rtnl = false;
    EXPECT_EQ(world.dev().lower.back(), "stop");
    EXPECT_EQ(world.qp().state, "reset");
}

TEST_F(RdmaNetdevFilterTest, statistics_add_packets_of_the_queue_pair)
{
    start();
    world.bring_up();
    EXPECT_EQ(world.qp().qkey, interface().link.qkey());
    EXPECT_TRUE(world.receive({8, 0, 0, 0, 0x45, 0, 0, 20}, true, broadcast_gid(PKey(0xffff))));
    world.run_polls();
    EXPECT_EQ(world.received.size(), 1U);
    shim_stats stats{};
    ipoib_ndo_get_stats(&world.dev(), &stats);
    EXPECT_EQ(stats.rx_packets, 1U);
    EXPECT_EQ(stats.tx_packets, 1000U);
}

TEST_F(RdmaNetdevFilterTest, number_of_queues_is_the_rdma_netdevs)
{
    start();
    world.bring_up();
    shim_channels channels;
    ipoib_ethtool_get_channels(&world.dev(), &channels);
    EXPECT_EQ(channels.transmits, 2U);
    EXPECT_EQ(channels.max_transmits, 2U);
    world.rtnl = true;
    EXPECT_EQ(ipoib_ethtool_set_channels(&world.dev(), 1, 1), kernel::not_supported);
    world.rtnl = false;
    EXPECT_EQ(world.dev().tx_queues, 2U);
    shim_queue_stats stats;
    EXPECT_FALSE(ipoib_queue_stats(&world.dev(), SHIM_QUEUE_TX, 0, 2, &stats));
    // An HCA may have more queues than the interface has.
    ipoib_ndo_tx_timeout(&world.dev(), 12);
    world.run_work();
    EXPECT_TRUE(told("timeout of queue 12"));
    EXPECT_TRUE(told("open"));
}

TEST_F(RdmaNetdevFilterTest, connected_mode_bypasses_the_rdma_netdev)
{
    start();
    world.bring_up();
    set_connected(true);
    EXPECT_EQ(world.dev().tx_queues, 1U);
    world.transmit(world.packet(peer));
    world.answer_path();
    world.run_work();
    world.reply(world.take_request());
    world.run_work();
    EXPECT_EQ(world.sent.size(), 1U);
    EXPECT_FALSE(told("send"));
    set_connected(false);
    EXPECT_EQ(world.dev().tx_queues, 2U);
    world.transmit(world.packet(peer));
    world.answer_path();
    EXPECT_TRUE(told("send"));
    world.run_work();
}

TEST_F(RdmaNetdevFilterTest, connected_mode_is_refused_if_the_transmit_queues_cannot_change)
{
    start();
    world.bring_up();
    world.refused = "netdev_use_tx_queues";
    world.rtnl = true;
    EXPECT_EQ(interface().settings.set_connected(true).code(), -12);
    world.rtnl = false;
    EXPECT_FALSE(interface().settings.connected());
    world.refused.clear();
    set_connected(true);
    world.refused = "netdev_use_tx_queues";
    set_connected(false);
    EXPECT_FALSE(interface().settings.connected());
    EXPECT_EQ(world.dev().tx_queues, 1U);
}

TEST_F(RdmaNetdevFilterTest, ring_sizes_are_refused_and_moderation_is_set)
{
    start();
    world.bring_up();
    world.rtnl = true;
    EXPECT_EQ(ipoib_ethtool_set_rings(&world.dev(), 1024, 1024), -95);
    const shim_moderation moderation{10, 4, false};
    EXPECT_EQ(ipoib_ethtool_set_moderation(&world.dev(), &moderation), 0);
    EXPECT_EQ(world.ca.moderated_usecs, 10U);
    EXPECT_TRUE(interface().settings.set_icrc_as_checksum(true).ok());
    world.rtnl = false;
    world.run_work();
    EXPECT_TRUE(world.dev().registered);
}

TEST_F(RdmaNetdevFilterTest, larger_link_mtu_brings_larger_buffers)
{
    start();
    world.bring_up();
    const unsigned int before = interface().rx[0].ring.ib_mtu();
    world.ca.port.active_mtu = 4096;
    world.event(SHIM_IB_EVENT_PORT_ACTIVE);
    world.run_work();
    EXPECT_EQ(before, 2048U);
    EXPECT_EQ(interface().rx[0].ring.ib_mtu(), 4096U);
}

TEST_F(RdmaNetdevFilterTest, failed_creation_leaks_nothing)
{
    world.refused = "rdma_netdev_init";
    start();
    EXPECT_TRUE(world.netdevs.empty() && world.qps.empty());
    world.stop();
    world.refused.clear();
    world.fail_qps = 1;
    start();
    EXPECT_TRUE(world.netdevs.empty() && world.qps.empty());
    world.stop();
    start();
    world.bring_up();
}

TEST_F(RdmaNetdevFilterTest, open_fails_after_the_queue_pair_is_lost)
{
    start();
    world.bring_up();
    world.refused = "qp_to_reset";
    world.rtnl = true;
    ipoib_ndo_stop(&world.dev());
    EXPECT_TRUE(world.qps.empty());
    world.refused.clear();
    EXPECT_EQ(ipoib_ndo_open(&world.dev()), -19);
    EXPECT_TRUE(world.qps.empty());
    world.rtnl = false;
}

} // namespace
} // namespace ipoib
