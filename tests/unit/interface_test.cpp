// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Interface from creation to destruction: address, carrier, open and close, restarts of its queues.
#include "interface_test.hpp"

namespace ipoib {
namespace {

TEST_F(InterfaceTest, address_is_flags_qpn_and_gid)
{
    const HwAddr address = HwAddr::from(world.dev().address.data());
    EXPECT_EQ(address.qpn(), 0x48U);
    EXPECT_EQ(address.gid(), Gid::from(world.ca.gid));
    EXPECT_TRUE(address.connected_capable());
}

TEST_F(InterfaceTest, carrier_comes_with_the_broadcast_group)
{
    world.rtnl = true;
    ipoib_ndo_open(&world.dev());
    world.rtnl = false;
    world.run_work();
    EXPECT_FALSE(world.dev().carrier);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
    EXPECT_EQ(world.dev().mtu, 2044U);
    EXPECT_EQ(world.qp().qkey, 0xb1bU);
}

TEST_F(InterfaceTest, broadcast_group_with_an_invalid_mtu_brings_no_carrier)
{
    world.rtnl = true;
    ipoib_ndo_open(&world.dev());
    world.rtnl = false;
    world.run_work();
    for (const std::uint8_t code : {0, 6}) {
        world.answer_broadcast(0, code);
        world.run_work();
        EXPECT_FALSE(world.dev().carrier);
        EXPECT_TRUE(logged("the broadcast group's MTU code %u is invalid"));
        world.advance(20 * shim_hz());
        world.run_work();
    }
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
}

TEST_F(InterfaceTest, omni_paths_mtus_bring_the_carrier)
{
    world.ca.omni_path = true;
    for (const std::uint8_t code : {6, 7}) {
        world.rtnl = true;
        ipoib_ndo_open(&world.dev());
        world.rtnl = false;
        world.run_work();
        world.answer_broadcast(0, code);
        world.run_work();
        EXPECT_TRUE(world.dev().carrier);
        EXPECT_EQ(world.dev().mtu, 4092U) << "the port's";
        close();
    }
}

// The work item of the response waits for RTNL, and the link may go down meanwhile.
TEST_F(InterfaceTest, join_from_before_a_reopen_brings_no_carrier)
{
    world.rtnl = true;
    ipoib_ndo_open(&world.dev());
    world.rtnl = false;
    world.run_work();
    world.answer_broadcast();
    world.rtnl = true;
    ipoib_ndo_stop(&world.dev());
    ipoib_ndo_open(&world.dev());
    world.rtnl = false;
    world.run_work();
    EXPECT_FALSE(world.dev().carrier);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
}

TEST_F(InterfaceTest, transmit_timeout_restarts_the_queues)
{
    open();
    world.dev().stopped = true;
    ipoib_ndo_tx_timeout(&world.dev(), 0);
    world.run_work();
    EXPECT_FALSE(world.dev().stopped);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
}

TEST_F(InterfaceTest, restart_wakes_the_transmit_queue)
{
    open();
    const unsigned int wakes = world.dev().wakes;
    ipoib_ndo_tx_timeout(&world.dev(), 0);
    world.run_work();
    EXPECT_EQ(world.dev().wakes, wakes + 1);
}

TEST_F(InterfaceTest, close_stops_a_queue_woken_late_by_a_poll)
{
    open();
    // A poll on another processor found space before the interface began to stop, and wakes the queue only now.
    std::function<void()> wake = [&] {
        if (world.dev().stopped)
            shim_netif_tx_wake_queue(&world.dev(), 0);
        else
            world.meanwhile = wake;
    };
    world.meanwhile = wake;
    close();
    EXPECT_TRUE(world.dev().stopped);
}

TEST_F(InterfaceTest, failed_send_during_close_queues_no_recovery)
{
    open();
    meet(peer(1));
    world.transmit(world.packet(peer(1)));
    // The completion is not polled yet.
    world.qp().send_cq->push({world.qp().outstanding.front().id, 2, 0, 0, 0, false});
    world.qp().outstanding.pop_front();
    EXPECT_FALSE(close_leaves_work()) << "it would find the queue pair gone";
}

class FailedRestartTest : public InterfaceTest {
protected:
    // Restarts the open interface's queues while there is no memory.
    void fail_to_restart()
    {
        open();
        world.fail_pages = true;
        ipoib_ndo_tx_timeout(&world.dev(), 0);
        world.run_work();
        EXPECT_FALSE(world.dev().carrier);
        world.fail_pages = false;
    }
};

TEST_F(FailedRestartTest, restart_without_memory_is_retried)
{
    fail_to_restart();
    world.advance(101);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
}

TEST_F(FailedRestartTest, late_start_leaves_an_interface_alone_that_the_user_has_reopened)
{
    fail_to_restart();
    close();
    open();
    const unsigned int joins = world.join_requests;
    world.advance(101);
    EXPECT_TRUE(world.dev().carrier);
    EXPECT_EQ(world.join_requests, joins);
    // A stalled queue is restarted all the same.
    ipoib_ndo_tx_timeout(&world.dev(), 0);
    world.run_work();
    EXPECT_GT(world.join_requests, joins);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
}

TEST_F(InterfaceTest, opens_and_stops_repeatedly)
{
    for (int i = 0; i < 20; ++i) {
        open();
        world.transmit(world.packet(peer(1)));
        close();
        world.run_work();
    }
}

TEST_F(InterfaceTest, failing_allocations_at_open_leak_nothing)
{
    world.fail_pages = true;
    world.rtnl = true;
    EXPECT_EQ(ipoib_ndo_open(&world.dev()), -12);
    world.rtnl = false;
    world.fail_pages = false;
    open();
}

TEST_F(InterfaceTest, refused_qkey_is_retried)
{
    world.refused = "qp_set_qkey";
    world.rtnl = true;
    ASSERT_EQ(ipoib_ndo_open(&world.dev()), 0);
    world.rtnl = false;
    world.run_work();
    world.answer_broadcast();
    world.run_work();
    EXPECT_FALSE(world.dev().carrier);
    world.refused.clear();
    world.advance(100);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
}

TEST_F(InterfaceTest, queue_pair_that_fails_to_reset_is_logged_and_abandoned)
{
    open();
    world.refused = "qp_to_error";
    close();
    EXPECT_TRUE(logged("failed to move the queue pair to ERROR, error %d"));
    EXPECT_TRUE(logged("timing out; %u sends %u receives not completed"));
    EXPECT_TRUE(world.mappings.empty());
    world.refused.clear();
    open();
    world.refused = "qp_to_reset";
    close();
    EXPECT_TRUE(logged("failed to move the queue pair to RESET, error %d"));
    EXPECT_TRUE(world.mappings.empty());
    EXPECT_TRUE(world.qps.empty());
    world.refused.clear();
    open();
    EXPECT_EQ(world.qps.size(), 1U);
}

TEST_F(InterfaceTest, unsent_packets_stay_mapped_until_the_queue_pair_is_reset)
{
    open();
    world.transmit(world.packet(peer(1)));
    world.answer_path();
    ASSERT_EQ(world.qp().outstanding.size(), 1U);
    world.mute = true;
    // The fakes check each mapping that is undone.
    close();
    EXPECT_TRUE(logged("timing out; %u sends %u receives not completed"));
    EXPECT_FALSE(logged("timing out; %u sends not completed"));
    EXPECT_TRUE(world.mappings.empty());
}

TEST_F(InterfaceTest, open_fails_without_a_page_pool)
{
    world.refused = "pool_create";
    world.rtnl = true;
    EXPECT_EQ(ipoib_ndo_open(&world.dev()), -12);
    world.rtnl = false;
    EXPECT_EQ(world.qp().state, "reset");
    world.refused.clear();
    open();
}

TEST_F(InterfaceTest, open_fails_without_a_listener_for_connections)
{
    const auto late_events_do_nothing = [this] {
        const unsigned int before = world.polled;
        for (ib_cq* cq : {interface().rx[0].cq(), interface().tx[0].cq()})
            cq->completed(cq, cq->context);
        world.run_polls();
        EXPECT_EQ(world.polled, before);
    };
    // Fails the CM id, then its registration.
    for (const int nth : {1, 2}) {
        world.fail_cm = nth;
        world.rtnl = true;
        EXPECT_EQ(ipoib_ndo_open(&world.dev()), nth == 1 ? -12 : -16);
        world.rtnl = false;
        EXPECT_EQ(world.qp().state, "reset");
        EXPECT_TRUE(world.mappings.empty());
        EXPECT_TRUE(world.cm_ids.empty());
        late_events_do_nothing();
    }
    open();
    close();
    late_events_do_nothing();
    open();
}

TEST_F(InterfaceTest, queue_pair_is_created_for_the_offloads_of_its_hca)
{
    EXPECT_EQ(world.qp().create_flags, std::uint32_t{SHIM_IB_QP_CREATE_IPOIB_UD_LSO});
    world.stop();
    world.features = SHIM_FEATURE_IP_CSUM;
    world.start();
    EXPECT_EQ(world.qp().create_flags, 0U);
    world.stop();
    world.ca.kernel_flags = SHIM_IBK_BLOCK_MULTICAST_LOOPBACK;
    world.start();
    EXPECT_EQ(world.qp().create_flags, std::uint32_t{SHIM_IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK});
    world.stop();
    world.ca.kernel_flags = 0;
    world.ca.flags = SHIM_IB_DEVICE_MANAGED_FLOW_STEERING;
    world.start();
    EXPECT_EQ(world.qp().create_flags, std::uint32_t{SHIM_IB_QP_CREATE_NETIF_QP});
}

TEST_F(InterfaceTest, completion_queues_have_space_for_datagrams_and_connections)
{
    EXPECT_EQ(world.qp().send_cq->size, 2 * 128U);
    // The receives of each kind, and the drains of connections.
    EXPECT_EQ(world.qp().recv_cq->size, 2 * 256U + PassiveConnections::max_draining);
}

TEST_F(InterfaceTest, open_fails_if_the_hca_refuses_receives)
{
    world.receives_until_failure = 20;
    world.rtnl = true;
    EXPECT_EQ(ipoib_ndo_open(&world.dev()), -12);
    world.rtnl = false;
    EXPECT_EQ(world.qp().state, "reset");
    EXPECT_TRUE(world.mappings.empty());
    world.run_work();
    EXPECT_EQ(world.qp().state, "reset") << "it is not up, so nothing is tried again";
    open();
}

} // namespace
} // namespace ipoib
