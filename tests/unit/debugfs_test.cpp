// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The files in debugfs, to the byte: programs parse them.
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

TEST_F(DebugfsTest, paths_in_the_order_of_their_gids)
{
    open();
    meet(peer(2), 0x22);
    world.transmit(world.packet(peer(1)));
    EXPECT_EQ(show(IPOIB_DEBUG_PATH), "GID: fe80:0:0:0:0:0:0:1\n"
                                      "  complete:     no\n"
                                      "\n"
                                      "GID: fe80:0:0:0:0:0:0:2\n"
                                      "  complete:    yes\n"
                                      "  DLID:     0x0022\n"
                                      "  SL:            1\n"
                                      "  rate:       40.0 Gb/sec\n"
                                      "\n");
}

TEST_F(DebugfsTest, groups_in_the_order_of_their_mgids)
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

} // namespace
} // namespace ipoib
