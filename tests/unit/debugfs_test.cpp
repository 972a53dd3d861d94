// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Exact contents of the debugfs files, which programs parse.
#include "driver_test.hpp"

namespace ipoib {
namespace {

class DebugfsTest : public DriverTest {
protected:
    std::string show(ipoib_debug_file which)
    {
        world.seq_text.clear();
        ipoib_debug_show(&world.dev(), which, nullptr);
        return world.seq_text;
    }
};

TEST_F(DebugfsTest, paths_are_listed_in_order_of_gid)
{
    open();
    meet(peer(2), 0x22);
    world.transmit(world.packet(peer(1)));
    const Gid far{{0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8}};
    world.transmit(world.packet(HwAddr::of(0, 0x100, far)));
    EXPECT_EQ(show(IPOIB_DEBUG_PATH), "GID: 1:2:3:4:5:6:7:8\n"
                                      "  complete:     no\n"
                                      "\n"
                                      "GID: fe80:0:0:0:0:0:0:1\n"
                                      "  complete:     no\n"
                                      "\n"
                                      "GID: fe80:0:0:0:0:0:0:2\n"
                                      "  complete:    yes\n"
                                      "  DLID:     0x0022\n"
                                      "  SL:            1\n"
                                      "  rate:       40.0 Gb/sec\n"
                                      "\n");
}

TEST_F(DebugfsTest, groups_are_listed_in_order_of_mgid)
{
    world.now = 4711;
    open();
    set_groups({7});
    world.transmit(world.packet(to_group(3)));
    world.run_work();
    EXPECT_EQ(show(IPOIB_DEBUG_MCG), "GID: ff12:401b:ffff:0:0:0:0:3\n"
                                     "  created:       4711\n"
                                     "  queuelen:         1\n"
                                     "  complete:        no\n"
                                     "  send_only:      yes\n"
                                     "\n"
                                     "GID: ff12:401b:ffff:0:0:0:0:7\n"
                                     "  created:       4711\n"
                                     "  queuelen:         0\n"
                                     "  complete:        no\n"
                                     "  send_only:       no\n"
                                     "\n"
                                     "GID: ff12:401b:ffff:0:0:0:ffff:ffff\n"
                                     "  created:       4711\n"
                                     "  queuelen:         0\n"
                                     "  complete:       yes\n"
                                     "  send_only:       no\n"
                                     "\n");
}

TEST_F(DebugfsTest, neighbours_are_listed_with_state_and_idle_time)
{
    open();
    meet(peer(2));
    world.transmit(world.packet(peer(1)));
    world.now += 5 * shim_hz();
    const std::string text = show(IPOIB_DEBUG_NEIGH);
    EXPECT_NE(text.find("waiting    unused for 5 s\n"), std::string::npos) << text;
    EXPECT_NE(text.find("datagram   unused for 5 s\n"), std::string::npos) << text;
    EXPECT_LT(text.find("waiting"), text.find("datagram"));
}

TEST_F(DebugfsTest, neighbour_with_an_invalidated_path_gets_datagrams)
{
    open();
    meet(peer(2));
    reregister();
    EXPECT_NE(show(IPOIB_DEBUG_NEIGH).find("datagram   unused"), std::string::npos);
    EXPECT_EQ(show(IPOIB_DEBUG_NEIGH).find("waiting"), std::string::npos);
}

TEST_F(DebugfsTest, state_changes_reach_the_tracepoints)
{
    open();
    meet(peer(2));
    const auto traced = [&](const std::string& line) {
        return std::count(world.trace.begin(), world.trace.end(), line) == 1;
    };
    EXPECT_TRUE(traced("interface closed starting"));
    EXPECT_TRUE(traced("interface starting running"));
    EXPECT_TRUE(traced("group idle joining"));
    EXPECT_TRUE(traced("group joining joined"));
    EXPECT_TRUE(traced("path unknown querying"));
    EXPECT_TRUE(traced("path querying known"));
    world.trace.clear();
    reregister();
    EXPECT_TRUE(traced("flush light"));
    meet(peer(2));
    for (int i = 0; i < 128; ++i)
        world.transmit(world.packet(peer(2)), i < 127);
    EXPECT_TRUE(traced("send stopped"));
    world.complete_sends(world.qp().outstanding.size());
    EXPECT_TRUE(traced("send woken"));
}

TEST_F(DebugfsTest, drops_have_reasons)
{
    open();
    meet(peer(1));
    world.transmit(world.packet(peer(1), 0x88cc));
    EXPECT_TRUE(world.reasons.contains(SHIM_DROP_UNHANDLED_PROTO));
    for (int i = 0; i < 200; ++i)
        world.transmit(world.packet(peer(3)));
    EXPECT_TRUE(world.reasons.contains(SHIM_DROP_NEIGH_QUEUEFULL));
    world.answer_path(-22);
    EXPECT_TRUE(world.reasons.contains(SHIM_DROP_NEIGH_FAILED));
    for (int i = 0; i < 100; ++i)
        world.transmit(world.packet(peer(1), 0x0800, 3000));
    world.run_work();
    EXPECT_TRUE(world.reasons.contains(SHIM_DROP_PKT_TOO_BIG));
    sk_buff* const shortest = world.packet(peer(1), 0x0800, 0);
    shortest->bytes.pop_back();
    world.transmit(shortest);
    EXPECT_TRUE(world.reasons.contains(SHIM_DROP_HDR_TRUNC));
    world.sa_unknown = true;
    world.transmit(world.packet(peer(4)));
    close();
    EXPECT_TRUE(world.reasons.contains(SHIM_DROP_NEIGH_DEAD));
    world.transmit(world.packet(peer(1)));
    EXPECT_TRUE(world.reasons.contains(SHIM_DROP_DEV_READY));
}

TEST_F(DebugfsTest, path_added_while_the_table_is_copied_is_left_out)
{
    open();
    meet(peer(1));
    meet(peer(2));
    // Another processor sends between the count and the copy.
    bool added = false;
    world.softirqs = [&] {
        if (!std::exchange(added, true))
            world.transmit(world.packet(peer(3)));
    };
    const std::string text = show(IPOIB_DEBUG_PATH);
    world.softirqs = nullptr;
    EXPECT_TRUE(added);
    EXPECT_EQ(std::count(text.begin(), text.end(), 'G'), 2 + 2) << text;
}

TEST_F(DebugfsTest, neighbours_of_one_port_are_listed_in_order_of_qpn)
{
    open();
    meet(peer(1, 0x200));
    world.now += 5 * shim_hz();
    world.transmit(world.packet(peer(1, 0x100)));
    const std::string text = show(IPOIB_DEBUG_NEIGH);
    EXPECT_LT(text.find("unused for 0 s"), text.find("unused for 5 s")) << text;
}

TEST_F(DebugfsTest, files_have_the_interfaces_name_and_end_with_it)
{
    const std::set<std::string> before{"ib0_cm", "ib0_mcg", "ib0_neigh", "ib0_path"};
    EXPECT_EQ(world.names_of_debug_files(), before);
    world.rtnl = true;
    world.dev().name = "blue";
    ipoib_netdev_renamed(&world.dev());
    const std::set<std::string> after{"blue_cm", "blue_mcg", "blue_neigh", "blue_path"};
    EXPECT_EQ(world.names_of_debug_files(), after);
    // A name that comes while the interface is being removed.
    interface().debug_files.remove();
    EXPECT_TRUE(world.debug_files.empty());
    ipoib_netdev_renamed(&world.dev());
    EXPECT_TRUE(world.debug_files.empty());
    world.rtnl = false;
}

} // namespace
} // namespace ipoib
