// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Settings of an interface: MTU, mode and umcast, and the warnings that they cause.
#include "interface_test.hpp"

#include <kernel/rate_limit.hpp>

namespace ipoib {
namespace {

TEST_F(InterfaceTest, mtu_is_the_minimum_of_admin_and_group_mtu)
{
    open();
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 1500), 0);
    EXPECT_EQ(world.dev().mtu, 1500U);
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 4092), 0);
    EXPECT_EQ(world.dev().mtu, 2044U);
}

TEST_F(InterfaceTest, mtu_out_of_range_is_refused)
{
    open();
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 71), -22);
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 4093), -22);
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 72), 0);
}

TEST_F(InterfaceTest, admin_mtu_survives_a_new_join)
{
    open();
    ipoib_ndo_change_mtu(&world.dev(), 1280);
    world.event(SHIM_IB_EVENT_LID_CHANGE);
    world.run_work();
    world.answer_broadcast();
    world.run_work();
    EXPECT_EQ(world.dev().mtu, 1280U);
}

TEST_F(InterfaceTest, mtu_follows_a_larger_group)
{
    open();
    EXPECT_EQ(world.dev().mtu, 2044U);
    reregister();
    world.answer_broadcast(0, 5);
    world.run_work();
    EXPECT_EQ(world.dev().mtu, 4092U);
}

TEST_F(InterfaceTest, mtu_set_to_that_of_the_group_follows_a_larger_one)
{
    open();
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 2044), 0);
    reregister();
    world.answer_broadcast(0, 5);
    world.run_work();
    EXPECT_EQ(world.dev().mtu, 4092U);
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 2044), 0);
    reregister();
    world.answer_broadcast(0, 5);
    world.run_work();
    EXPECT_EQ(world.dev().mtu, 2044U);
}

TEST_F(InterfaceTest, mode_accepts_its_values_with_and_without_newline)
{
    net_device* dev = &world.dev();
    EXPECT_EQ(world.store(dev, IPOIB_ATTRIBUTE_MODE, "datagram\n", 9), 9);
    EXPECT_EQ(world.store(dev, IPOIB_ATTRIBUTE_MODE, "datagram", 8), 8);
    EXPECT_EQ(world.store(dev, IPOIB_ATTRIBUTE_MODE, "connected\n", 10), 10);
    char text[4096];
    EXPECT_EQ(ipoib_attribute_show(dev, IPOIB_ATTRIBUTE_MODE, text), 10);
    EXPECT_STREQ(text, "connected\n");
    EXPECT_EQ(world.store(dev, IPOIB_ATTRIBUTE_MODE, "connected", 9), 9);
    EXPECT_EQ(world.store(dev, IPOIB_ATTRIBUTE_MODE, "", 0), -22);
    EXPECT_EQ(world.store(dev, IPOIB_ATTRIBUTE_MODE, "datagrams\n", 10), -22);
    EXPECT_EQ(world.store(dev, IPOIB_ATTRIBUTE_MODE, "datagrams", 9), -22);
    EXPECT_EQ(world.store(dev, IPOIB_ATTRIBUTE_MODE, "connected\n\n", 11), -22);
}

// The owner of the file does not matter: a container's root, or a root without capabilities, may own it.
TEST_F(InterfaceTest, sysfs_writes_need_cap_net_admin)
{
    net_device* dev = &world.dev();
    world.administrator = false;
    EXPECT_EQ(world.store(dev, IPOIB_ATTRIBUTE_MODE, "connected\n", 10), -1);
    EXPECT_EQ(world.store(dev, IPOIB_ATTRIBUTE_UMCAST, "1\n", 2), -1);
    char text[4096];
    EXPECT_EQ(ipoib_attribute_show(dev, IPOIB_ATTRIBUTE_MODE, text), 9);
    EXPECT_EQ(ipoib_attribute_show(dev, IPOIB_ATTRIBUTE_UMCAST, text), 2);
    EXPECT_STREQ(text, "0\n");
}

// Warnings that a peer or a user can provoke have their own rate limits.
TEST_F(InterfaceTest, each_warning_has_its_own_rate_limit)
{
    constexpr const char* often = "MTU %u is not between %u and %u";
    const auto count = [this](const char* format) { return std::count(world.log.begin(), world.log.end(), format); };
    world.rtnl = true;
    for (int i = 0; i < 200; ++i)
        EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 71), -22);
    EXPECT_EQ(count(often), kernel::RateLimit::max_count);
    interface().settings.set_umcast(true);
    EXPECT_TRUE(logged("ignoring multicast groups joined directly by userspace"));
    for (unsigned int later = 1; later <= 2; ++later) {
        world.now += kernel::seconds(kernel::RateLimit::interval_s);
        EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 71), -22);
        EXPECT_EQ(count(often), kernel::RateLimit::max_count + later);
        // Suppressed ones are counted once.
        EXPECT_EQ(count("%u warnings like the next one were suppressed"), 1);
    }
    world.rtnl = false;
}

TEST_F(InterfaceTest, rejected_mtu_is_logged_and_admin_mtu_kept)
{
    world.refused = "netdev_change_mtu";
    open();
    EXPECT_TRUE(logged("failed to change the MTU to %u, error %d"));
    // From here on the user's MTU applies, not the group's.
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 1500), 0);
    world.refused.clear();
    world.event(SHIM_IB_EVENT_PORT_ACTIVE);
    world.run_work();
    world.answer_broadcast();
    world.run_work();
    EXPECT_EQ(world.dev().mtu, 1500U);
}

TEST_F(InterfaceTest, mode_is_set_even_if_its_mtu_is_refused)
{
    open();
    world.refused = "netdev_change_mtu";
    world.rtnl = true;
    EXPECT_TRUE(interface().settings.set_connected(true).ok());
    EXPECT_TRUE(interface().settings.connected());
    world.rtnl = false;
    EXPECT_EQ(world.dev().mtu, 2044U);
    EXPECT_TRUE(logged("failed to change the MTU to %u, error %d"));
}

TEST_F(InterfaceTest, umcast_is_enabled_only_by_numbers_above_zero)
{
    for (const auto& [text, on] :
         {std::pair{"1", true}, {"0", false}, {"2", true}, {"-1", false}, {"1", true}, {"x", false}}) {
        EXPECT_EQ(world.store(&world.dev(), IPOIB_ATTRIBUTE_UMCAST, text, std::strlen(text)),
                  static_cast<long>(std::strlen(text)));
        EXPECT_EQ(interface().settings.umcast(), on) << text;
    }
}

} // namespace
} // namespace ipoib
