// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Active side of connections, on scripted fakes: the path record that a REQ is sent with.
#include "connected_test.hpp"

#include <shim/cm.h>
#include <shim/sync.h>

namespace ipoib {
namespace {

// The port's LID changes, and with it a REQ's destination.
constexpr std::uint16_t former_lid = 5, new_lid = 9;

class ConnectedPathTest : public ConnectedTest {
protected:
    // A connection over the former path ends, and the path is invalidated.
    void SetUp() override
    {
        ConnectedTest::SetUp();
        world.transmit(world.packet(capable(1), 0x0800));
        world.answer_path(0, former_lid);
        world.run_work();
        id_ = world.take_request();
        ASSERT_NE(id_, nullptr);
        ASSERT_EQ(id_->dlid, former_lid);
    }
    // Ends the connection, and sends a packet that needs a new one.
    void lose_connection()
    {
        world.reply(id_);
        world.complete_messages(*world.qps.back(), 1);
        world.message(id_, SHIM_IB_CM_DREQ_RECEIVED);
        run_for(shim_hz());
    }
    // The fabric changes, and a packet needs a new connection, whose REQ waits for the path.
    void need_connection_after_event()
    {
        lose_connection();
        reregister();
        world.transmit(world.packet(capable(1), 0x0800));
        world.run_work();
        EXPECT_EQ(world.take_request(), nullptr);
    }
    ib_cm_id* id_ = nullptr;
};

TEST_F(ConnectedPathTest, request_waits_for_the_path_after_a_fabric_event)
{
    need_connection_after_event();
    world.answer_path(0, new_lid);
    world.run_work();
    ib_cm_id* const id = world.take_request();
    ASSERT_NE(id, nullptr);
    EXPECT_EQ(id->dlid, new_lid);
}

TEST_F(ConnectedPathTest, request_is_sent_with_the_former_record_if_the_sa_does_not_respond)
{
    need_connection_after_event();
    world.answer_path(-110);
    world.run_work();
    ib_cm_id* const id = world.take_request();
    ASSERT_NE(id, nullptr);
    EXPECT_EQ(id->dlid, former_lid);
    world.answer_path(0, former_lid);
    world.run_work();
    EXPECT_TRUE(shows("state requested"));
}

TEST_F(ConnectedPathTest, request_waits_for_half_a_second_at_most)
{
    lose_connection();
    reregister();
    world.transmit(world.packet(capable(1), 0x0800));
    run_for(48);
    EXPECT_EQ(world.take_request(), nullptr);
    // Again and again the fabric changes.
    reregister();
    run_for(4);
    EXPECT_NE(world.take_request(), nullptr);
}

TEST_F(ConnectedPathTest, request_does_not_wait_for_an_aged_path)
{
    lose_connection();
    // Unused for so long that it is to be queried again.
    world.advance(shim_hz() * 600);
    world.run_work();
    world.transmit(world.packet(capable(1), 0x0800));
    if (world.open_paths() && world.paths.size() == 1)
        world.answer_path(0, new_lid);
    world.run_work();
    EXPECT_NE(world.take_request(), nullptr);
}

TEST_F(ConnectedPathTest, request_to_a_former_lid_is_sent_again_at_once)
{
    reregister();
    // The packet waits for the connection, and has the path queried.
    world.transmit(world.packet(capable(1), 0x0800));
    world.answer_path(0, new_lid);
    run_for(shim_hz());
    ib_cm_id* const id = world.take_request();
    ASSERT_NE(id, nullptr) << table();
    EXPECT_EQ(id->dlid, new_lid);
    world.reply(id);
    EXPECT_EQ(world.sent.size(), 2U) << "both packets waited";
}

TEST_F(ConnectedPathTest, confirmed_path_does_not_disturb_a_request)
{
    reregister();
    world.transmit(world.packet(capable(1), 0x0800));
    world.answer_path(0, former_lid);
    run_for(shim_hz());
    EXPECT_EQ(world.take_request(), nullptr);
    world.reply(id_);
    EXPECT_EQ(world.sent.size(), 2U);
}

TEST_F(ConnectedPathTest, connection_that_broke_is_made_with_the_new_record)
{
    world.reply(id_);
    world.complete_messages(*world.qps.back(), 1);
    reregister();
    world.message(id_, SHIM_IB_CM_DREQ_RECEIVED);
    // The packet waits for the release of the former connection.
    world.transmit(world.packet(capable(1), 0x0800));
    if (world.open_paths())
        world.answer_path(0, new_lid);
    run_for(shim_hz());
    if (world.open_paths()) {
        EXPECT_EQ(world.take_request(), nullptr);
        world.answer_path(0, new_lid);
        run_for(shim_hz());
    }
    ib_cm_id* const id = world.take_request();
    ASSERT_NE(id, nullptr) << table();
    EXPECT_EQ(id->dlid, new_lid);
}

} // namespace
} // namespace ipoib
