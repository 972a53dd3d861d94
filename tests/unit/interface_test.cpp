// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Interface from creation to destruction: carrier, MTU, events, parameters.
#include "driver_test.hpp"

#include <kernel/rate_limit.hpp>

namespace ipoib {
namespace {

using InterfaceTest = DriverTest;

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

TEST_F(InterfaceTest, groups_are_not_joined_while_the_port_is_down)
{
    world.ca.port.active = false;
    world.rtnl = true;
    ipoib_ndo_open(&world.dev());
    world.rtnl = false;
    world.advance(1000);
    EXPECT_EQ(world.join_questions, 0U);
    world.ca.port.active = true;
    world.event(SHIM_IB_EVENT_PORT_ACTIVE);
    world.run_work();
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
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

TEST_F(InterfaceTest, port_error_takes_the_carrier)
{
    open();
    world.ca.port.active = false;
    world.event(SHIM_IB_EVENT_PORT_ERR);
    world.run_work();
    EXPECT_FALSE(world.dev().carrier);
    EXPECT_TRUE(world.memberships.empty());
}

TEST_F(InterfaceTest, events_of_other_ports_are_ignored)
{
    open();
    world.event(SHIM_IB_EVENT_PORT_ERR, 2);
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
}

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

static void open_without_pkey(World& world)
{
    world.stop();
    world.ca.pkey = 0;
    world.start();
    world.rtnl = true;
    EXPECT_EQ(ipoib_ndo_open(&world.dev()), 0);
    world.rtnl = false;
}

static void pkey_appears(World& world)
{
    world.ca.pkey = 0x8001;
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
}

TEST_F(InterfaceTest, opens_without_pkey_and_comes_up_when_the_pkey_appears)
{
    open_without_pkey(world);
    world.advance(100);
    EXPECT_EQ(world.join_questions, 0U);
    pkey_appears(world);
}

TEST_F(InterfaceTest, lid_change_does_not_end_the_wait_for_the_pkey)
{
    open_without_pkey(world);
    world.event(SHIM_IB_EVENT_LID_CHANGE);
    world.run_work();
    EXPECT_EQ(world.qp().state, "reset");
    pkey_appears(world);
}

TEST_F(InterfaceTest, changed_pkey_restarts_with_another_broadcast_group)
{
    open();
    world.ca.pkey = 0x8001;
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    ASSERT_EQ(world.open_joins.size(), 1U);
    EXPECT_EQ(Gid::from(world.open_joins[0]->asked.mgid), broadcast_gid(PKey(0x8001)));
    EXPECT_EQ(world.dev().broadcast[8], 0x80);
    EXPECT_EQ(world.dev().broadcast[9], 0x01);
}

// The fake of shim_dim_cancel() checks which queues wait.
TEST_F(InterfaceTest, restart_cancels_moderation_work_outside_the_rescuer_queue)
{
    open();
    const unsigned int cancels = world.dim_cancels;
    world.ca.pkey = 0x8001;
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    EXPECT_EQ(world.dim_cancels, cancels + 1);
}

TEST_F(InterfaceTest, unchanged_pkey_restarts_nothing)
{
    open();
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
    EXPECT_EQ(world.leaves, 0U);
}

TEST_F(InterfaceTest, new_gid_changes_the_address)
{
    open();
    world.ca.gid.raw[0] = 0xfd;
    world.event(SHIM_IB_EVENT_GID_CHANGE);
    world.run_work();
    EXPECT_EQ(HwAddr::from(world.dev().address.data()).gid(), Gid::from(world.ca.gid));
}

// Changes that an HCA does not report are read at the events that it does report.
class UnreportedChangeTest : public InterfaceTest, public testing::WithParamInterface<unsigned int> {};
INSTANTIATE_TEST_SUITE_P(Events, UnreportedChangeTest,
                         testing::Values(SHIM_IB_EVENT_CLIENT_REREGISTER, SHIM_IB_EVENT_PORT_ACTIVE,
                                         SHIM_IB_EVENT_LID_CHANGE, SHIM_IB_EVENT_PKEY_CHANGE));

TEST_P(UnreportedChangeTest, new_prefix_changes_the_address_and_the_memberships)
{
    open();
    world.ca.silent = true;
    world.ca.gid.raw[0] = 0xfd;
    world.event(GetParam());
    world.run_work();
    EXPECT_EQ(world.ca.gid_reports, 1U);
    // The event causes a join with the former GID.
    if (!world.open_joins.empty())
        world.answer_broadcast();
    // ib_core suppresses the event.
    world.advance(110);
    EXPECT_EQ(world.ca.gid_reports, 1U);
    EXPECT_EQ(HwAddr::from(world.dev().address.data()).gid(), Gid::from(world.ca.gid));
    ASSERT_EQ(world.open_joins.size(), 1U);
    EXPECT_EQ(Gid::from(world.open_joins[0]->asked.port_gid), Gid::from(world.ca.gid));
}

TEST_P(UnreportedChangeTest, new_pkey_restarts_the_queues)
{
    open();
    world.ca.pkey = 0x8001;
    world.event(GetParam());
    world.run_work();
    EXPECT_EQ(interface().identity.pkey().value(), 0x8001);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
}

TEST_P(UnreportedChangeTest, lid_follows_the_port)
{
    open();
    world.ca.port.lid = 77;
    world.event(GetParam());
    world.run_work();
    EXPECT_EQ(interface().identity.lid(), 77);
}

TEST_F(InterfaceTest, failed_port_queries_are_retried_and_change_nothing)
{
    open();
    for (const char* query : {"ib_query_gid", "ib_ask_gid", "ib_query_pkey", "ib_query_port"}) {
        world.refused = query;
        world.event(SHIM_IB_EVENT_PKEY_CHANGE);
        world.advance(250);
        EXPECT_TRUE(world.dev().carrier) << query;
        world.refused.clear();
        world.advance(60);
        const std::size_t flushes = world.trace.size();
        world.advance(1000);
        EXPECT_EQ(world.trace.size(), flushes) << "nothing is asked without need";
    }
}

TEST_F(InterfaceTest, failed_port_queries_back_off)
{
    open();
    const auto flushes = [this] { return std::count(world.trace.begin(), world.trace.end(), "flush heavy"); };
    const auto before = flushes();
    const auto warnings = world.log.size();
    const unsigned int pkey_queries = world.pkey_queries;
    world.refused = "ib_query_gid";
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    long expected = before + 1;
    world.advance(10);
    for (const unsigned long delay_s : {1UL, 2UL, 4UL, 8UL, 16UL, 32UL, 64UL, 64UL}) {
        EXPECT_EQ(flushes(), expected) << delay_s;
        world.advance(delay_s * 100);
        ++expected;
    }
    EXPECT_EQ(flushes(), expected);
    EXPECT_EQ(world.log.size(), warnings + 1) << "it is said once";
    EXPECT_EQ(world.pkey_queries, pkey_queries) << "nothing is asked after a query that failed";
    // An event does not wait for the retry time.
    world.refused.clear();
    world.ca.pkey = 0x8001;
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    EXPECT_EQ(interface().identity.pkey().value(), 0x8001);
    world.advance(6500);
    EXPECT_EQ(flushes(), expected + 1);
}

TEST_F(InterfaceTest, gid_read_late_is_used_in_joins)
{
    open();
    world.ca.gid.raw[0] = 0xfd;
    world.refused = "ib_query_gid";
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    world.refused.clear();
    world.advance(110);
    ASSERT_EQ(world.open_joins.size(), 1U);
    EXPECT_EQ(Gid::from(world.open_joins[0]->asked.port_gid), Gid::from(world.ca.gid));
}

TEST_F(InterfaceTest, pkey_read_late_restarts_the_queues)
{
    open();
    world.ca.pkey = 0x8001;
    world.refused = "ib_query_pkey";
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    EXPECT_EQ(interface().identity.pkey().value(), 0xffff);
    world.refused.clear();
    world.advance(110);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
    EXPECT_EQ(interface().identity.pkey().value(), 0x8001);
}

TEST_F(InterfaceTest, carrier_comes_despite_a_failed_port_query)
{
    open();
    world.event(SHIM_IB_EVENT_PORT_ACTIVE);
    world.refused = "ib_query_port";
    world.run_work();
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
}

TEST_F(InterfaceTest, larger_link_mtu_brings_larger_buffers)
{
    open();
    EXPECT_EQ(interface().rx.ring.ib_mtu(), 2048U);
    world.ca.port.active_mtu = 4096;
    world.event(SHIM_IB_EVENT_PORT_ACTIVE);
    world.run_work();
    EXPECT_EQ(interface().rx.ring.ib_mtu(), 4096U);
    EXPECT_EQ(world.qp().state, "rts");
}

TEST_F(InterfaceTest, transmit_timeout_restarts_the_queues)
{
    open();
    world.dev().stopped = true;
    ipoib_ndo_tx_timeout(&world.dev());
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
    ipoib_ndo_tx_timeout(&world.dev());
    world.run_work();
    EXPECT_EQ(world.dev().wakes, wakes + 1);
}

TEST_F(InterfaceTest, close_stops_a_queue_woken_late_by_a_poll)
{
    open();
    // A poll on another processor found space before the interface began to stop, and wakes the queue only now.
    std::function<void()> wake = [&] {
        if (world.dev().stopped)
            shim_netif_tx_wake_queue(&world.dev());
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
    // An item of the interface's work queue takes long.
    world.busy_queues.push_back(interface().work_queue.native());
    close();
    world.busy_queues.clear();
    EXPECT_TRUE(std::none_of(world.queued.begin(), world.queued.end(), [&](const auto& item) {
        return item.queue == interface().work_queue.native();
    })) << "it would find the queue pair gone";
}

TEST_F(InterfaceTest, restart_without_memory_is_retried)
{
    open();
    world.fail_pages = true;
    ipoib_ndo_tx_timeout(&world.dev());
    world.run_work();
    EXPECT_FALSE(world.dev().carrier);
    world.fail_pages = false;
    world.advance(101);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
}

TEST_F(InterfaceTest, lost_pkey_ends_the_retries_of_a_restart)
{
    open();
    world.fail_pages = true;
    ipoib_ndo_tx_timeout(&world.dev());
    world.run_work();
    world.fail_pages = false;
    world.ca.pkey = 0;
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.advance(200);
    EXPECT_EQ(world.qp().state, "reset");
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
    world.now += kernel::seconds(kernel::RateLimit::interval_seconds);
    EXPECT_EQ(ipoib_ndo_change_mtu(&world.dev(), 71), -22);
    world.rtnl = false;
    EXPECT_EQ(count(often), kernel::RateLimit::max_count + 1);
    EXPECT_TRUE(logged("%u warnings like the next one were suppressed"));
}

TEST(Module, parameters_out_of_range_are_clamped)
{
    World world;
    shim_parameters.send_queue_size = 1;
    shim_parameters.recv_queue_size = 100000;
    shim_parameters.max_nonsrq_conn_qp = -1;
    world.start();
    EXPECT_EQ(shim_parameters.send_queue_size, 128);
    EXPECT_EQ(shim_parameters.recv_queue_size, 8192);
    EXPECT_EQ(shim_parameters.max_nonsrq_conn_qp, 0);
    world.stop();
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
    EXPECT_TRUE(logged("timing out; %u sends not completed"));
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

TEST_F(InterfaceTest, unreadable_gid_keeps_the_address)
{
    const auto before = world.dev().address;
    world.ca.gid.raw[15] = 0x77;
    world.refused = "ib_query_gid";
    world.event(SHIM_IB_EVENT_GID_CHANGE);
    world.run_work();
    EXPECT_EQ(world.dev().address, before);
    world.refused.clear();
    world.event(SHIM_IB_EVENT_GID_CHANGE);
    world.run_work();
    EXPECT_EQ(world.dev().address[19], 0x77);
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
