// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Active side of connections, on scripted fakes: requests that are rejected or fail, and their back-off.
#include "connected_test.hpp"

#include <shim/cm.h>

namespace ipoib {
namespace {

class ConnectedRejection : public ConnectedTest, public testing::WithParamInterface<unsigned int> {};

TEST_P(ConnectedRejection, falls_back_to_datagrams_and_retries_later)
{
    ib_cm_id* id = ask(capable(1), 100);
    world.transmit(world.packet(capable(1), 0x0800, 3000));
    world.message(id, SHIM_IB_CM_REJ_RECEIVED, GetParam());
    world.run_work();
    EXPECT_EQ(connections(), 0U) << "what a refused connection had is released";
    // The short packet was sent as a datagram; the long one got an ICMP error.
    EXPECT_EQ(world.qp().outstanding.size(), 1U);
    EXPECT_EQ(world.rejected_mtus, std::vector<unsigned int>{2044});
    EXPECT_TRUE(shows("state refused"));
    world.transmit(world.packet(capable(1)));
    EXPECT_EQ(world.qp().outstanding.size(), 2U);
    EXPECT_EQ(world.take_request(), nullptr);
    run_for(150);
    EXPECT_TRUE(shows("state idle"));
    ASSERT_NE(id = ask(capable(1)), nullptr);
    // The back-off has doubled.
    world.message(id, SHIM_IB_CM_REJ_RECEIVED, GetParam());
    run_for(150);
    EXPECT_TRUE(shows("state refused"));
    run_for(100);
    EXPECT_TRUE(shows("state idle"));
    world.reply(ask(capable(1)));
    EXPECT_TRUE(shows("state established"));
    EXPECT_EQ(std::count_if(world.log.begin(), world.log.end(),
                            [](const auto& line) { return line.find("rejected, reason") != std::string::npos; }),
              1);
}

// All reasons of IBA 12.6.7.2 and two unknown ones, without 10, stale connection.
INSTANTIATE_TEST_SUITE_P(Reasons, ConnectedRejection,
                         testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
                                         24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 35, 0, 65535));

TEST_F(ConnectedTest, close_does_not_wait_for_the_back_off)
{
    world.message(ask(capable(1)), SHIM_IB_CM_REJ_RECEIVED, 8);
    world.run_work();
    ASSERT_TRUE(shows("state refused"));
    const unsigned long before = world.now;
    close();
    EXPECT_LT(world.now - before, 50U);
}

TEST_F(ConnectedTest, stale_rejections_back_off)
{
    unsigned int requests = 0;
    const auto refuse_for = [&](unsigned long ticks) {
        for (unsigned long i = 0; i < ticks; ++i) {
            while (ib_cm_id* id = world.take_request()) {
                ++requests;
                world.message(id, SHIM_IB_CM_REJ_RECEIVED, SHIM_CM_REJ_STALE_CONN);
            }
            if (i % 10 == 0)
                world.transmit(world.packet(capable(1)));
            run_for(1);
        }
    };
    world.message(ask(capable(1)), SHIM_IB_CM_REJ_RECEIVED, SHIM_CM_REJ_STALE_CONN);
    refuse_for(40);
    EXPECT_EQ(requests, 3U) << "four at once";
    EXPECT_TRUE(shows("state refused"));
    EXPECT_FALSE(world.sent.empty()) << "what waited went as datagrams";
    requests = 0;
    refuse_for(10000);
    // After 1, 2, 4, ... 64 s, four times each.
    EXPECT_LE(requests, 7U * 4);
    world.complete_sends(world.qp().outstanding.size());
}

// The rejections take longer to arrive than the minimum interval of REQs.
TEST_F(ConnectedTest, slow_stale_rejections_back_off)
{
    world.transmit(world.packet(capable(1)));
    world.answer_path();
    unsigned int requests = 0;
    const unsigned long end = world.now + 10000;
    while (world.now < end) {
        run_for(10);
        if (ib_cm_id* id = world.take_request()) {
            ++requests;
            run_for(20);
            world.message(id, SHIM_IB_CM_REJ_RECEIVED, SHIM_CM_REJ_STALE_CONN);
        }
        world.transmit(world.packet(capable(1)));
        world.complete_sends(world.qp().outstanding.size());
    }
    // At once, and after 1, 2, 4, ... 32 s, four times each.
    EXPECT_GE(requests, 5U * 4);
    EXPECT_LE(requests, 7U * 4);
}

TEST_F(ConnectedTest, requests_to_a_peer_that_disconnects_are_limited_to_ten_a_second)
{
    world.transmit(world.packet(capable(1)));
    world.answer_path();
    unsigned int requests = 0;
    for (int tick = 0; tick < 1000; ++tick) {
        run_for(1);
        while (ib_cm_id* id = world.take_request()) {
            ++requests;
            world.reply(id);
            world.message(id, SHIM_IB_CM_DREQ_RECEIVED);
        }
        world.transmit(world.packet(capable(1)));
    }
    EXPECT_GE(requests, 80U);
    EXPECT_LE(requests, 4U + 100);
}

TEST_F(ConnectedTest, stale_rejection_is_retried_at_once)
{
    ib_cm_id* id = ask(capable(1));
    world.message(id, SHIM_IB_CM_REJ_RECEIVED, 10);
    world.run_work();
    run_for(2);
    ASSERT_NE(id = world.take_request(), nullptr);
    EXPECT_TRUE(world.sent.empty());
    world.reply(id);
    EXPECT_EQ(world.sent.size(), 1U);
}

TEST_F(ConnectedTest, unanswered_request_falls_back_to_datagrams)
{
    world.message(ask(capable(1)), SHIM_IB_CM_REQ_ERROR);
    world.run_work();
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(world.qp().outstanding.size(), 1U);
}

TEST_F(ConnectedTest, reply_with_an_unusable_mtu_is_rejected)
{
    std::uint8_t peer = 0;
    for (const std::uint32_t mtu : {0U, 1U, 4U, 5U, 75U}) {
        ib_cm_id* id = ask(capable(++peer));
        ASSERT_NE(id, nullptr);
        world.reply(id, mtu);
        EXPECT_EQ(id->sent.back(), "REJ");
        EXPECT_EQ(id->reason, 28U);
        EXPECT_FALSE(shows("mtu 4294967293")) << "a refused connection has no MTU";
        run_for(300);
    }
    EXPECT_TRUE(shows("malformed 5"));
    ib_cm_id* lowest = ask(capable(++peer));
    world.reply(lowest, 76);
    EXPECT_EQ(lowest->sent.back(), "RTU");
}

TEST_F(ConnectedTest, failed_requests_fall_back_to_datagrams_and_leak_nothing)
{
    for (int i = 1; i <= 3; ++i) {
        world.transmit(world.packet(capable(1)));
        if (world.open_paths())
            world.answer_path();
        // Fails the CM id, the REQ, then the queue pair.
        world.fail_cm = i <= 2 ? i : 0;
        world.fail_allocation = i == 3 ? 1 : 0;
        world.run_work();
        EXPECT_EQ(world.take_request(), nullptr) << i;
        EXPECT_EQ(connections(), 0U) << i;
        world.fail_cm = world.fail_allocation = 0;
        run_for(100UL << i);
    }
    EXPECT_NE(ask(capable(1)), nullptr);
}

TEST_F(ConnectedTest, failed_queue_pair_transition_ends_the_attempt)
{
    ib_cm_id* id = ask(capable(1));
    world.fail_cm = 1;
    world.reply(id);
    world.run_work();
    EXPECT_EQ(connections(), 0U);
    EXPECT_EQ(world.qp().outstanding.size(), 1U);
}

// The connection is released meanwhile: its queue pair is in ERROR before ib_cm's callback has ended.
TEST_F(ConnectedTest, end_of_the_connection_during_the_reply_is_no_fault)
{
    ib_cm_id* id = ask(capable(1));
    world.moves_to_rtr = [&](ib_qp& qp) {
        PathTable::Guard guard(interface().paths);
        interface().connections.active.abandon_all();
        qp.state = "error";
    };
    world.reply(id);
    world.run_work();
    EXPECT_EQ(connections(), 0U);
    EXPECT_FALSE(logged("failed to make a connection ready, error %d"));
}

TEST_F(ConnectedTest, withdrawn_reply_is_no_fault)
{
    for (bool World::*const moment : {&World::cm_withdrawn, &World::cm_withdrawn_late}) {
        ib_cm_id* id = ask(capable(1));
        world.*moment = true;
        world.reply(id);
        world.*moment = false;
        world.run_work();
        EXPECT_EQ(connections(), 0U);
        EXPECT_EQ(world.qp().outstanding.size(), 1U);
        EXPECT_FALSE(logged("failed to make a connection ready, error %d"));
        world.complete_sends(1);
        world.advance(100);
    }
}

TEST_F(ConnectedTest, rejections_back_off_until_the_peer_accepts)
{
    // After a rejection no REQ is sent for this many seconds, and one soon after.
    const auto is_refused_for = [&](unsigned int seconds) {
        ib_cm_id* id = ask(capable(1));
        ASSERT_NE(id, nullptr) << seconds;
        world.message(id, SHIM_IB_CM_REJ_RECEIVED, 8);
        // The waiting packet was sent as a datagram.
        world.run_work();
        world.complete_sends(1);
        run_for(seconds * 100 - 10);
        EXPECT_EQ(ask(capable(1)), nullptr) << seconds;
        world.complete_sends(1);
        run_for(20);
    };
    for (const unsigned int seconds : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 64U})
        is_refused_for(seconds);
    ib_cm_id* accepted = ask(capable(1));
    world.reply(accepted);
    EXPECT_TRUE(shows("state established"));
    // The peer disconnects.
    world.message(accepted, SHIM_IB_CM_DREQ_RECEIVED);
    run_for(3);
    is_refused_for(1);
    EXPECT_NE(ask(capable(1)), nullptr);
}

} // namespace
} // namespace ipoib
