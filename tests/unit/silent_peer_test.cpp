// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Peers that acknowledge little or nothing, on scripted fakes: what their messages may take of the send pool.
#include "connected_test.hpp"

#include <shim/ndo.h>

namespace ipoib {
namespace {

class SilentPeerTest : public ConnectedTest {
protected:
    static constexpr int message = 3004;
    const unsigned long interval = kernel::milliseconds(TxQueue::silence_ms);

    void send_to(std::uint8_t port, unsigned int count = 1)
    {
        for (unsigned int i = 0; i < count; ++i)
            world.transmit(world.packet(capable(port), 0x0800, message - 4));
    }
    int queued() { return world.dev().queued_bytes; }
    void fill_pool(std::uint8_t port)
    {
        while (!world.dev().stopped)
            send_to(port);
    }
    static constexpr const char* ended = "connection to %pI6 ended: %u of %u sends are outstanding, some for %u ms";
    // A check of slack, and the time in which the connection is released.
    const unsigned long max_stop = kernel::milliseconds(2000 + 200) + 20;
};

TEST_F(SilentPeerTest, bytes_do_not_count_while_the_queue_is_stopped)
{
    ib_qp* silent = connect(capable(1));
    ib_qp* other = connect(capable(2));
    send_to(1);
    run_for(2 * interval);
    EXPECT_EQ(queued(), message) << "the stack does not wait";
    world.dev().limited = true;
    send_to(1);
    run_for(interval);
    EXPECT_EQ(queued(), 2 * message);
    send_to(2);
    run_for(interval);
    EXPECT_EQ(queued(), message) << "those that the first check saw";
    world.complete_messages(*silent, 2);
    world.complete_messages(*other, 1);
    EXPECT_EQ(queued(), 0);
    EXPECT_EQ(statistics().tx_packets, 5U);
    EXPECT_EQ(statistics().tx_bytes, 2U * 60 + 3U * (message - 4));
    // The next sends of all slots count again, and are checked twice.
    const int slots = static_cast<int>(interface().tx[0].pool.size());
    send_to(1, static_cast<unsigned int>(slots));
    run_for(interval);
    EXPECT_EQ(queued(), slots * message);
}

TEST_F(SilentPeerTest, three_eighths_of_the_pool_are_its_limit)
{
    ib_qp* silent = connect(capable(1));
    const unsigned int share = interface().tx[0].pool.size() / 8 * 3;
    world.dev().limited = true;
    send_to(1);
    run_for(2 * interval);
    send_to(1, share + 3);
    EXPECT_EQ(silent->outstanding.size(), share);
    EXPECT_EQ(statistics().tx_dropped, 4U);
    // The silence ends with the last of the sends that a check has seen.
    run_for(interval);
    world.complete_messages(*silent, 1);
    send_to(1, 5);
    EXPECT_EQ(silent->outstanding.size(), share);
    world.complete_messages(*silent, share - 1);
    send_to(1, share);
    EXPECT_EQ(silent->outstanding.size(), share + 1);
    world.complete_messages(*silent, share + 1);
    EXPECT_EQ(queued(), 0);
}

// A peer that posts a receive now and then has the HCA retry for as long as it likes.
TEST_F(SilentPeerTest, trickling_peer_stops_the_queue_for_two_seconds_at_most)
{
    ib_qp* trickling = connect(capable(1));
    ib_qp* other = connect(capable(2));
    const ib_qp* const datagrams = &world.qp();
    fill_pool(1);
    EXPECT_TRUE(world.dev().stopped);
    for (unsigned int i = 0; i < max_stop / interval && world.dev().stopped; ++i) {
        run_for(interval);
        if (i % 7 == 6)
            world.complete_messages(*trickling, 1);
    }
    EXPECT_FALSE(world.dev().stopped);
    EXPECT_TRUE(logged(ended));
    send_to(2);
    EXPECT_EQ(other->outstanding.size(), 1U);
    EXPECT_TRUE(shows("disconnected 1 "));
    EXPECT_EQ(&world.qp(), datagrams) << "the queues were restarted";
    EXPECT_TRUE(world.dev().carrier);
    world.complete_messages(*other, 1);
    EXPECT_EQ(queued(), 0);
}

TEST_F(SilentPeerTest, dead_peer_stops_the_queue_for_two_seconds_at_most)
{
    connect(capable(1));
    ib_qp* other = connect(capable(2));
    send_to(2);
    fill_pool(1);
    world.complete_messages(*other, 1);
    run_for(max_stop / 2);
    EXPECT_TRUE(world.dev().stopped);
    EXPECT_FALSE(logged(ended));
    run_for(max_stop / 2);
    EXPECT_FALSE(world.dev().stopped);
    EXPECT_TRUE(logged(ended));
    EXPECT_TRUE(shows("disconnected 1 ")) << "that of the peer that answers is there";
    EXPECT_EQ(queued(), 0);
}

TEST_F(SilentPeerTest, peers_that_hold_too_few_sends_to_stop_the_queue_keep_them)
{
    ib_qp* silent = connect(capable(1));
    const unsigned int half = interface().tx[0].pool.size() / 2;
    world.dev().limited = true;
    send_to(1, half);
    run_for(2 * max_stop);
    EXPECT_EQ(silent->outstanding.size(), half);
    EXPECT_TRUE(shows("disconnected 0 "));
    world.complete_messages(*silent, half);
}

TEST_F(SilentPeerTest, slow_peer_keeps_its_connection)
{
    ib_qp* slow = connect(capable(1));
    const int slots = static_cast<int>(interface().tx[0].pool.size());
    for (int round = 0; round < 3; ++round) {
        fill_pool(1);
        for (int i = 0; i < 16; ++i) {
            run_for(interval);
            world.complete_messages(*slow, static_cast<std::size_t>(slots / 16));
        }
        EXPECT_FALSE(world.dev().stopped);
    }
    EXPECT_TRUE(shows("disconnected 0 "));
    EXPECT_EQ(queued(), 0);
}

// Else it could stop the queue again at once.
TEST_F(SilentPeerTest, next_connection_of_a_peer_begins_with_the_limit)
{
    connect(capable(1));
    const unsigned int slots = interface().tx[0].pool.size(), share = slots / 8 * 3;
    fill_pool(1);
    run_for(max_stop);
    ASSERT_TRUE(logged(ended));
    send_to(1);
    ib_qp* next = connect(capable(1));
    const auto send = [&](unsigned int count) {
        send_to(1, count);
        return next->outstanding.size();
    };
    world.dev().limited = true;
    EXPECT_EQ(send(slots), share);
    run_for(2 * interval);
    world.dev().limited = false;
    for (unsigned int some = share; some <= slots; some += share) {
        world.complete_messages(*next, share);
        EXPECT_EQ(send(slots), share);
    }
    world.complete_messages(*next, share);
    EXPECT_EQ(send(slots), slots);
    EXPECT_TRUE(world.dev().stopped);
    world.complete_messages(*next, slots);
}

TEST_F(SilentPeerTest, timeout_of_the_stack_does_not_restart_the_queues)
{
    connect(capable(1));
    const ib_qp* const datagrams = &world.qp();
    fill_pool(1);
    for (unsigned int i = 0; i < max_stop / interval; ++i) {
        ipoib_ndo_tx_timeout(&world.dev(), 0);
        world.run_polls();
        world.run_work();
    }
    run_for(interval);
    EXPECT_TRUE(logged(ended));
    EXPECT_FALSE(logged("transmit timeout: latency %u msecs"));
    EXPECT_FALSE(world.dev().stopped);
    EXPECT_EQ(&world.qp(), datagrams) << "the queues were restarted";
}

TEST_F(SilentPeerTest, timeout_of_the_stack_restarts_the_queues_if_datagrams_fill_the_ring)
{
    connect(capable(1));
    meet(peer(2));
    while (!world.dev().stopped)
        world.transmit(world.packet(peer(2)));
    ipoib_ndo_tx_timeout(&world.dev(), 0);
    EXPECT_TRUE(logged("transmit timeout: latency %u msecs"));
    world.run_work();
    EXPECT_FALSE(world.dev().stopped);
}

} // namespace
} // namespace ipoib
