// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An HCA with a datapath of its own: the driver leaves sending and receiving to it, and everything else stays as it is.
#include "driver_test.hpp"

#include <shim/ethtool.h>

namespace ipoib {
namespace {

class AcceleratedTest : public testing::Test {
protected:
    void start(int enhanced = 1, const char* except = "")
    {
        world.have_lower = true;
        shim_parameters.ipoib_enhanced = enhanced;
        names = except;
        shim_parameters.ipoib_enhanced_except = names.data();
        world.start();
    }
    void TearDown() override
    {
        world.stop();
        EXPECT_EQ(world.lowers, 0);
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

TEST_F(AcceleratedTest, it_is_opened_joined_and_sends)
{
    start();
    EXPECT_TRUE(interface().accelerated());
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

TEST_F(AcceleratedTest, address_has_its_queue_pair_and_no_flag)
{
    start();
    const HwAddr address = HwAddr::from(world.dev().address.data());
    EXPECT_EQ(address.qpn(), 0x77U);
    EXPECT_FALSE(address.connected_capable());
}

TEST_F(AcceleratedTest, what_it_lacks_is_refused)
{
    start();
    world.bring_up();
    world.rtnl = true;
    EXPECT_EQ(interface().set_connected(true).code(), -22);
    EXPECT_TRUE(interface().set_connected(false).ok());
    const shim_moderation moderation{1, 1, false};
    EXPECT_EQ(ipoib_ethtool_set_moderation(&world.dev(), &moderation), -95);
    EXPECT_EQ(ipoib_ethtool_set_rings(&world.dev(), 1024, 1024), -95);
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 1000), 0);
    EXPECT_EQ(world.dev().mtu, 1000U);
    world.rtnl = false;
    ipoib_ndo_tx_timeout(&world.dev());
    EXPECT_TRUE(told("timeout"));
    world.run_work();
}

TEST_F(AcceleratedTest, children_are_accelerated_too)
{
    start();
    world.pkeys_found.push_back(0x8001);
    world.rtnl = true;
    EXPECT_TRUE(interface().create_child(0x8001).ok());
    EXPECT_TRUE(Interface::of(world.netdevs.back()).accelerated());
    EXPECT_EQ(world.lowers, 2);
    world.fail_allocation = 2;
    world.pkeys_found.push_back(0x8002);
    EXPECT_EQ(interface().create_child(0x8002).code(), -12);
    EXPECT_EQ(world.lowers, 2);
    world.rtnl = false;
}

TEST_F(AcceleratedTest, parameter_refuses_it)
{
    start(0);
    EXPECT_FALSE(interface().accelerated());
    EXPECT_EQ(world.lowers, 0);
    world.rtnl = true;
    EXPECT_TRUE(interface().set_connected(true).ok());
    world.rtnl = false;
}

TEST_F(AcceleratedTest, parameter_refuses_it_for_one_device)
{
    start(1, "other,fake0");
    EXPECT_FALSE(interface().accelerated());
}

TEST_F(AcceleratedTest, parameter_grants_it_for_one_device)
{
    start(0, "fake0,fake00");
    EXPECT_TRUE(interface().accelerated());
}

TEST_F(AcceleratedTest, name_must_be_the_whole_name)
{
    start(1, "fake00,fake,,f");
    EXPECT_TRUE(interface().accelerated());
}

TEST_F(AcceleratedTest, who_opens_it_is_told_that_it_does_not)
{
    start();
    world.refused = "lower_open";
    world.rtnl = true;
    EXPECT_EQ(ipoib_ndo_open(&world.dev()), -5);
    world.rtnl = false;
    world.refused.clear();
    world.bring_up();
}

TEST_F(AcceleratedTest, its_netdev_leads_to_port_and_lower_half)
{
    start();
    std::uint32_t port = 0;
    EXPECT_EQ(ipoib_port_of(&world.dev(), &port), &world.ca);
    EXPECT_EQ(port, 1U);
    ASSERT_NE(ipoib_lower_half(&world.dev()), nullptr);
    EXPECT_EQ(ipoib_lower_half(&world.dev())->dev, &world.dev());
    world.stop();
    start(0);
    EXPECT_EQ(ipoib_lower_half(&world.dev()), nullptr);
}

} // namespace
} // namespace ipoib
