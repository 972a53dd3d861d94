// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Paths and neighbours: removal of unused ones, and limits.
#include "path_test.hpp"

namespace ipoib {
namespace {

TEST_F(PathTest, unused_neighbours_are_removed_and_their_paths_queried_anew)
{
    open();
    meet(peer(1), 5);
    const std::size_t known = world.memory.size();
    world.advance(3 * 3000 + 10);
    EXPECT_LT(world.memory.size(), known);
    world.transmit(world.packet(peer(1)));
    EXPECT_EQ(world.path_queries, 2U);
    EXPECT_EQ(world.sent.back().ah->dlid, 5) << "it is used meanwhile";
    EXPECT_EQ(world.sent.size(), 2U);
    // The port answers for an SA that is gone.
    world.answer_path(-22);
    world.transmit(world.packet(peer(1)));
    world.complete_sends(2);
    EXPECT_EQ(world.sent.size(), 3U);
    EXPECT_EQ(world.path_queries, 2U);
    // While the path is used, each interval repeats the query until there is a response.
    world.advance(3000);
    world.transmit(world.packet(peer(1)));
    EXPECT_EQ(world.path_queries, 3U);
    world.answer_path(0, 6);
    world.complete_sends(1);
    world.advance(3000);
    world.transmit(world.packet(peer(1)));
    EXPECT_EQ(world.sent.back().ah->dlid, 6);
    EXPECT_EQ(world.path_queries, 3U);
    EXPECT_EQ(world.drops, 0U);
}

TEST_F(PathTest, long_silent_hosts_communicate_without_an_sa)
{
    open();
    meet(peer(1), 5);
    world.transmit(world.packet(peer(2), 0x0806));
    world.answer_path(0, 6);
    world.complete_sends(1);
    // No SA is known; the SA does not respond; the port reports that there is none.
    for (const int status : {0, -110, -22}) {
        world.sa_unknown = !status;
        // Ten minutes.
        world.advance(60000);
        world.transmit(world.packet(peer(1), 0x0806));
        EXPECT_EQ(world.sent.back().ah->dlid, 5);
        world.transmit(world.packet(peer(1)));
        EXPECT_EQ(world.sent.back().ah->dlid, 5);
        world.transmit(world.packet(peer(2)));
        EXPECT_EQ(world.sent.back().ah->dlid, 6);
        while (world.open_paths())
            world.answer_path(status);
        world.transmit(world.packet(peer(1)));
        world.transmit(world.packet(peer(2)));
        while (world.open_paths())
            world.answer_path(status);
        world.complete_sends(world.qp().outstanding.size());
    }
    EXPECT_EQ(world.sent.size(), 2U + 3 * 5);
    EXPECT_EQ(world.drops, 0U);
}

TEST_F(PathTest, limit_of_unused_paths_evicts_the_longest_unused)
{
    open();
    const auto use = [&](unsigned int n) {
        world.transmit(world.packet(stranger(n), 0x0806));
        if (world.open_paths())
            world.answer_path();
    };
    const auto complete = [&] { world.complete_sends(world.qp().outstanding.size()); };
    const unsigned int count = PathTable::max_idle + 10;
    for (unsigned int i = 0; i < count; ++i) {
        use(i);
        // Seldom, since time passes.
        if (i % 64 == 0)
            complete();
    }
    complete();
    world.advance(3 * 3000);
    EXPECT_EQ(world.ahs.size(), PathTable::max_idle + 1U) << "and the broadcast group's";
    // The first ten are removed. The first of the remaining ones is used again, and another one is added.
    use(10);
    use(count);
    complete();
    world.advance(3 * 3000);
    EXPECT_EQ(world.ahs.size(), PathTable::max_idle + 1U);
    world.sa_unknown = true;
    use(10);
    EXPECT_EQ(world.qp().outstanding.size(), 1U);
    use(11);
    EXPECT_EQ(world.qp().outstanding.size(), 1U) << "it made room";
    complete();
}

TEST_F(PathTest, used_neighbours_are_kept)
{
    open();
    meet(peer(1));
    use_for_100_seconds(peer(1));
    EXPECT_EQ(world.path_queries, 1U);
}

TEST_F(PathTest, neighbour_used_during_garbage_collection_is_kept)
{
    open();
    meet(peer(1));
    // Sends use the neighbour; the path itself is not touched.
    use_for_100_seconds(peer(1));
    // Another processor sends in the tick after the collector has read the clock.
    world.meanwhile = [&] {
        ++world.now;
        world.transmit(world.packet(peer(1)));
    };
    interface().paths.collect_garbage(2 * 3000);
    world.transmit(world.packet(peer(1)));
    EXPECT_EQ(world.path_queries, 1U);
}

// The sender of an ARP request for this host's address chooses the address that gets the reply.
TEST_F(PathTest, pending_queries_are_limited)
{
    open();
    for (unsigned int i = 0; i <= PathTable::max_queries; ++i)
        world.transmit(world.packet(stranger(i), 0x0806));
    EXPECT_EQ(world.path_queries, PathTable::max_queries);
    EXPECT_EQ(world.drops, 1U);
    EXPECT_EQ(world.reasons, std::set{SHIM_DROP_NEIGH_CREATEFAIL});
    world.answer_path();
    world.transmit(world.packet(stranger(PathTable::max_queries), 0x0806));
    EXPECT_EQ(world.path_queries, PathTable::max_queries + 1);
    EXPECT_EQ(world.drops, 1U);
}

TEST_F(PathTest, invalidated_path_is_used_at_the_query_limit)
{
    open();
    meet(peer(1), 5);
    reregister();
    for (unsigned int i = 0; i < PathTable::max_queries; ++i)
        world.transmit(world.packet(stranger(i), 0x0806));
    const std::size_t sent = world.sent.size();
    world.transmit(world.packet(peer(1)));
    EXPECT_EQ(world.sent.size(), sent + 1);
    EXPECT_EQ(world.drops, 0U);
    EXPECT_EQ(world.path_queries, 1 + PathTable::max_queries);
}

TEST_F(PathTest, path_limit_evicts_failed_paths)
{
    open();
    const std::size_t before = world.memory.size();
    for (unsigned int i = 0; i < PathTable::max_paths; ++i) {
        world.transmit(world.packet(stranger(i), 0x0806));
        world.answer_path(-22);
    }
    EXPECT_EQ(world.path_queries, PathTable::max_paths);
    EXPECT_FALSE(world.reasons.contains(SHIM_DROP_NEIGH_CREATEFAIL));
    world.transmit(world.packet(stranger(PathTable::max_paths), 0x0806));
    EXPECT_EQ(world.path_queries, PathTable::max_paths);
    EXPECT_TRUE(world.reasons.contains(SHIM_DROP_NEIGH_CREATEFAIL));
    world.advance(3000 + 10);
    EXPECT_EQ(world.memory.size(), before);
    world.transmit(world.packet(stranger(PathTable::max_paths), 0x0806));
    EXPECT_EQ(world.path_queries, PathTable::max_paths + 1);
}

TEST_F(PathTest, neighbours_are_limited)
{
    open();
    meet(peer(1, 2));
    for (unsigned int i = 1; i < PathTable::max_neighbours; ++i) {
        world.transmit(world.packet(peer(1, i + 2)));
        // Seldom, since time passes and unused paths are removed.
        if (i % 64 == 0)
            world.complete_sends(world.qp().outstanding.size());
    }
    EXPECT_EQ(world.drops, 0U);
    world.transmit(world.packet(peer(1, PathTable::max_neighbours + 2)));
    EXPECT_EQ(world.drops, 1U);
    EXPECT_EQ(world.reasons, std::set{SHIM_DROP_NEIGH_CREATEFAIL});
    world.transmit(world.packet(peer(1, 2)));
    EXPECT_EQ(world.drops, 1U);
}

} // namespace
} // namespace ipoib
