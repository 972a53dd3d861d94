// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Events of the port, and what is read at them: state, LID, P_Key, GID, MTU; failed queries.
#include "interface_test.hpp"

namespace ipoib {
namespace {

void activate_port(World& world)
{
    world.ca.port.active = true;
    world.event(SHIM_IB_EVENT_PORT_ACTIVE);
    world.run_work();
    world.answer_broadcast();
    world.run_work();
}

TEST_F(InterfaceTest, groups_are_not_joined_while_the_port_is_down)
{
    world.ca.port.active = false;
    world.rtnl = true;
    ipoib_ndo_open(&world.dev());
    world.rtnl = false;
    world.advance(1000);
    EXPECT_EQ(world.join_requests, 0U);
    activate_port(world);
    EXPECT_TRUE(world.dev().carrier);
}

TEST_F(InterfaceTest, join_answered_while_the_port_goes_down_brings_no_carrier)
{
    world.rtnl = true;
    ASSERT_EQ(ipoib_ndo_open(&world.dev()), 0);
    world.rtnl = false;
    world.run_work();
    world.ca.port.active = false;
    world.answer_broadcast();
    world.run_work();
    EXPECT_FALSE(world.dev().carrier);
    activate_port(world);
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
    EXPECT_EQ(world.join_requests, 0U);
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
    const unsigned int changes = world.dev().address_changes;
    world.ca.pkey = 0x8001;
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    EXPECT_EQ(world.dev().address_changes, changes + 1);
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
    const unsigned int joins = world.join_requests;
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
    EXPECT_EQ(world.leaves, 0U);
    EXPECT_EQ(world.join_requests, joins);
}

TEST_F(InterfaceTest, new_gid_changes_the_address)
{
    open();
    world.ca.gid.raw[0] = 0xfd;
    world.event(SHIM_IB_EVENT_GID_CHANGE);
    world.run_work();
    EXPECT_EQ(HwAddr::from(world.dev().address.data()).gid(), Gid::from(world.ca.gid));
}

// ib_core reports a change of any entry of the port's table, of which virtual functions have many.
TEST_F(InterfaceTest, gid_of_somebody_else_changes_nothing)
{
    open();
    const unsigned int joins = world.join_requests;
    world.ca.gids.push_back({{0xfe, 0x80, 1}});
    world.event(SHIM_IB_EVENT_GID_CHANGE);
    world.run_work();
    EXPECT_EQ(world.leaves, 0U);
    EXPECT_EQ(world.join_requests, joins);
}

// The address handles of groups contain the index of the GID.
TEST_F(InterfaceTest, gid_at_another_index_joins_the_groups_again)
{
    open();
    const unsigned int joins = world.join_requests;
    world.ca.gids.push_back(world.ca.gid);
    world.event(SHIM_IB_EVENT_GID_CHANGE);
    world.run_work();
    EXPECT_EQ(world.join_requests, joins + 1);
    world.event(SHIM_IB_EVENT_GID_CHANGE);
    world.run_work();
    EXPECT_EQ(world.join_requests, joins + 1);
    world.answer_broadcast();
    world.run_work();
    // GID and index at once, and the index back.
    world.ca.gid.raw[0] = 0xfd;
    world.ca.gids.clear();
    world.event(SHIM_IB_EVENT_GID_CHANGE);
    world.run_work();
    EXPECT_EQ(world.join_requests, joins + 2);
    world.answer_broadcast();
    world.run_work();
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    EXPECT_EQ(world.join_requests, joins + 2);
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
    const auto heavy = [this] { return std::count(world.trace.begin(), world.trace.end(), "flush heavy"); };
    for (const char* query : {"ib_query_gid", "ib_ask_gid", "ib_query_pkey", "ib_query_port"}) {
        world.refused = query;
        const auto before = heavy();
        world.event(SHIM_IB_EVENT_PKEY_CHANGE);
        world.advance(250);
        EXPECT_TRUE(world.dev().carrier) << query;
        EXPECT_GE(heavy() - before, 2) << query << " is repeated";
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
    EXPECT_EQ(interface().rx[0].ring.ib_mtu(), 2048U);
    world.ca.port.active_mtu = 4096;
    world.event(SHIM_IB_EVENT_PORT_ACTIVE);
    world.run_work();
    EXPECT_EQ(interface().rx[0].ring.ib_mtu(), 4096U);
    EXPECT_EQ(world.qp().state, "rts");
}

// Omni-Path's port has an MTU of 10240 bytes, and reports an active one of 4096.
TEST_F(InterfaceTest, omni_path_buffers_have_the_ports_mtu)
{
    world.ca.omni_path = true;
    world.ca.port.active_mtu = 4096;
    open();
    EXPECT_EQ(interface().rx[0].ring.ib_mtu(), 4096U);
    world.ca.port.max_mtu = 10240;
    world.event(SHIM_IB_EVENT_PORT_ACTIVE);
    world.run_work();
    EXPECT_EQ(interface().rx[0].ring.ib_mtu(), 10240U);
    EXPECT_EQ(world.qp().state, "rts");
}

TEST_F(InterfaceTest, lost_pkey_ends_the_retries_of_a_restart)
{
    open();
    world.fail_pages = true;
    ipoib_ndo_tx_timeout(&world.dev(), 0);
    world.run_work();
    world.fail_pages = false;
    world.ca.pkey = 0;
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.advance(200);
    EXPECT_EQ(world.qp().state, "reset");
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

} // namespace
} // namespace ipoib
