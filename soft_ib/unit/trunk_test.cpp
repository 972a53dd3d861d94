// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Two machines, one HCA each, with a trunk between their switches: port 1 is the HCA's, port 2 the trunk's.
#include <array>
#include <cstring>
#include <gtest/gtest.h>

#include <core.h>

#include "management.hpp"
#include "node.hpp"

namespace soft_ib {
namespace {

constexpr std::uint8_t hca_port = 1, trunk_port = 2;

class Machine {
public:
    explicit Machine(unsigned int number, unsigned int trunks = 1)
    {
        fabric_plan plan = plan_of(1);
        plan.first_hca = number;
        plan.trunks = static_cast<std::uint8_t>(trunks);
        fabric_construct(f(), &plan);
        fabric_set_link(f(), 0, true);
        for (unsigned int i = 0; i < trunks; ++i)
            fabric_set_trunk(f(), i, true);
    }
    struct fabric* f() const { return fabric_.get(); }

    // Sends an SMP to this machine's switch, with an empty path.
    void set(std::uint16_t attribute, std::uint32_t modifier, const std::array<std::uint8_t, 64>& data) const
    {
        MadBytes mad = directed(Method::set, attribute, modifier, {});
        std::memcpy(mad.data() + 64, data.data(), data.size());
        fabric_headers h = smp_headers();
        fabric_route route{};
        ASSERT_TRUE(fabric_switch_mad(f(), 0, &h, mad.data(), &route));
    }
    // Activates all ports with LID 1 here at port 1 and the other machine's, 2, behind the trunk, or the other way
    // round.
    void activate(std::uint16_t own_lid) const
    {
        for (const PortState state : {PortState::armed, PortState::active}) {
            std::array<std::uint8_t, 64> data{};
            store(data.data() + 8, default_subnet_prefix);
            store(data.data() + 16, own_lid);
            store<std::uint16_t>(data.data() + 18, 1);
            data[32] = static_cast<std::uint8_t>(state);
            set(port_info, hca_port, data);
            set(port_info, trunk_port, data);
            MadBytes mad = directed(Method::set, port_info, 0, {}), reply{};
            unsigned int events = 0;
            std::memcpy(mad.data() + 64, data.data(), data.size());
            ASSERT_TRUE(fabric_hca_mad(f(), 0, mad.data(), reply.data(), &events));
        }
        std::array<std::uint8_t, 64> table;
        table.fill(Switch::no_port);
        table[1] = own_lid == 1 ? hca_port : trunk_port;
        table[2] = own_lid == 2 ? hca_port : trunk_port;
        set(linear_table, 0, table);
        set(switch_info, 0, forwarding_top());
    }

private:
    FabricMemory fabric_ = fabric_memory();
};

class TrunkTest : public testing::Test {
protected:
    Machine a{0}, b{1};
    fabric_route route{};

    // Queries the node at the end of the path.
    static MadBytes ask(std::initializer_list<std::uint8_t> path) { return directed(Method::get, node_info, 0, path); }
    static fabric_headers frame(std::uint16_t slid, std::uint16_t dlid)
    {
        fabric_headers h = datagram(slid, dlid);
        h.payload_bytes = 100;
        return h;
    }
};

TEST_F(TrunkTest, manager_queries_the_other_machines_switch)
{
    auto mad = ask({trunk_port});
    fabric_headers h = smp_headers();
    ASSERT_TRUE(fabric_switch_mad(a.f(), 0, &h, mad.data(), &route));
    EXPECT_TRUE(route.trunks);
    EXPECT_EQ(route.hcas, 0U);
    ASSERT_TRUE(fabric_switch_mad(b.f(), FABRIC_TRUNK, &h, mad.data(), &route));
    EXPECT_TRUE(route.trunks);
    ASSERT_TRUE(fabric_switch_mad(a.f(), FABRIC_TRUNK, &h, mad.data(), &route));
    EXPECT_EQ(route.hcas, 1U);
    EXPECT_FALSE(route.trunks);
    EXPECT_EQ(mad[64 + 2], 2) << "a switch";
    EXPECT_EQ(mad[64 + 3], 2) << "of two ports";
    EXPECT_EQ(mad[64 + 36], trunk_port) << "asked by that port";
    // A GUID other than the first machine's.
    MadBytes own = ask({});
    ASSERT_TRUE(fabric_switch_mad(a.f(), 0, &h, own.data(), &route));
    EXPECT_NE(std::memcmp(own.data() + 64 + 12, mad.data() + 64 + 12, 8), 0);
}

TEST_F(TrunkTest, manager_queries_the_other_machines_hca)
{
    auto mad = ask({trunk_port, hca_port});
    fabric_headers h = smp_headers();
    ASSERT_TRUE(fabric_switch_mad(a.f(), 0, &h, mad.data(), &route));
    ASSERT_TRUE(fabric_switch_mad(b.f(), FABRIC_TRUNK, &h, mad.data(), &route));
    EXPECT_EQ(route.hcas, 1U);
    EXPECT_FALSE(route.trunks);
    MadBytes reply{};
    unsigned int events = 0;
    ASSERT_TRUE(fabric_hca_mad(b.f(), 0, mad.data(), reply.data(), &events));
    EXPECT_EQ(load<std::uint64_t>(reply.data() + 64 + 20), fabric_guid(1));
    ASSERT_TRUE(fabric_switch_mad(b.f(), 0, &h, reply.data(), &route));
    EXPECT_TRUE(route.trunks);
    ASSERT_TRUE(fabric_switch_mad(a.f(), FABRIC_TRUNK, &h, reply.data(), &route));
    EXPECT_EQ(route.hcas, 1U);
}

TEST_F(TrunkTest, frame_to_the_other_machine_follows_the_tables)
{
    const auto h = frame(1, 2);
    a.activate(1);
    b.activate(2);
    route = fabric_route_frame(a.f(), 0, &h);
    EXPECT_TRUE(route.trunks);
    EXPECT_EQ(route.hcas, 0U);
    route = fabric_route_from_trunk(b.f(), 0, &h);
    EXPECT_FALSE(route.trunks);
    EXPECT_EQ(route.hcas, 1U);
}

TEST_F(TrunkTest, frame_with_more_payload_than_the_mtu_is_dropped)
{
    b.activate(2);
    for (const std::uint16_t dlid : {2, 0xc000}) {
        std::array<std::uint8_t, 64> table{};
        store<std::uint16_t>(table.data(), 1 << hca_port);
        b.set(multicast_table, 0, table);
        auto h = frame(1, dlid);
        h.payload_bytes = 2048;
        EXPECT_EQ(fabric_route_from_trunk(b.f(), 0, &h).hcas, 1U) << dlid;
        h.payload_bytes = 2049;
        EXPECT_EQ(fabric_route_from_trunk(b.f(), 0, &h).hcas, 0U) << dlid;
    }
}

TEST_F(TrunkTest, management_frame_of_a_queue_pair_is_not_taken)
{
    fabric_headers h = smp_headers();
    EXPECT_TRUE(fabric_route_from_trunk(a.f(), 0, &h).to_switch);
    h.source_qpn = 0x100;
    EXPECT_FALSE(fabric_route_from_trunk(a.f(), 0, &h).to_switch);
}

TEST_F(TrunkTest, group_frame_reaches_both_machines_and_skips_the_sender)
{
    const auto h = frame(1, 0xc000);
    std::array<std::uint8_t, 64> table{};
    store<std::uint16_t>(table.data(), 1 << hca_port | 1 << trunk_port);
    a.activate(1);
    b.activate(2);
    a.set(multicast_table, 0, table);
    b.set(multicast_table, 0, table);
    route = fabric_route_frame(a.f(), 0, &h);
    EXPECT_TRUE(route.trunks);
    EXPECT_EQ(route.hcas, 1U) << "its own copy";
    route = fabric_route_from_trunk(b.f(), 0, &h);
    EXPECT_FALSE(route.trunks);
    EXPECT_EQ(route.hcas, 1U);
}

// A chain: the middle machine's second trunk, at port 3, leads to the third machine.
TEST_F(TrunkTest, machine_in_the_middle_passes_frames_from_trunk_to_trunk)
{
    Machine middle{1, 2};
    auto mad = ask({trunk_port, trunk_port + 1, hca_port});
    fabric_headers h = smp_headers();
    ASSERT_TRUE(fabric_switch_mad(a.f(), 0, &h, mad.data(), &route));
    EXPECT_EQ(route.trunks, 1);
    ASSERT_TRUE(fabric_switch_mad(middle.f(), FABRIC_TRUNK, &h, mad.data(), &route));
    EXPECT_EQ(route.trunks, 2);
    EXPECT_EQ(route.hcas, 0U);
    ASSERT_TRUE(fabric_switch_mad(b.f(), FABRIC_TRUNK, &h, mad.data(), &route));
    EXPECT_EQ(route.hcas, 1U);
    MadBytes reply{};
    unsigned int events = 0;
    ASSERT_TRUE(fabric_hca_mad(b.f(), 0, mad.data(), reply.data(), &events));
    ASSERT_TRUE(fabric_switch_mad(b.f(), 0, &h, reply.data(), &route));
    ASSERT_TRUE(fabric_switch_mad(middle.f(), FABRIC_TRUNK + 1, &h, reply.data(), &route));
    EXPECT_EQ(route.trunks, 1);

    // A group of all ports: a frame leaves by all trunks but the one that it came by.
    const auto to_group = frame(1, 0xc000);
    std::array<std::uint8_t, 64> table{};
    store<std::uint16_t>(table.data(), 1 << hca_port | 1 << trunk_port | 1 << (trunk_port + 1));
    middle.activate(2);
    middle.set(multicast_table, 0, table);
    route = fabric_route_from_trunk(middle.f(), 0, &to_group);
    EXPECT_EQ(route.trunks, 0) << "its second trunk is not active";
    std::array<std::uint8_t, 64> data{};
    for (const PortState state : {PortState::armed, PortState::active}) {
        data[32] = static_cast<std::uint8_t>(state);
        middle.set(port_info, trunk_port + 1, data);
    }
    route = fabric_route_from_trunk(middle.f(), 0, &to_group);
    EXPECT_EQ(route.trunks, 2);
    EXPECT_EQ(route.hcas, 1U);
    route = fabric_route_frame(middle.f(), 0, &to_group);
    EXPECT_EQ(route.trunks, 3);
    fabric_set_trunk(middle.f(), 0, false);
    EXPECT_EQ(fabric_route_frame(middle.f(), 0, &to_group).trunks, 2) << "each trunk has a state of its own";
}

TEST_F(TrunkTest, inactive_trunk_passes_no_frames)
{
    const auto h = frame(1, 2);
    a.activate(1);
    fabric_set_trunk(a.f(), 0, false);
    EXPECT_FALSE(fabric_route_frame(a.f(), 0, &h).trunks);
    EXPECT_EQ(fabric_route_from_trunk(a.f(), 0, &h).hcas, 0U);
    fabric_set_trunk(a.f(), 0, true);
    EXPECT_FALSE(fabric_route_frame(a.f(), 0, &h).trunks) << "no manager made it ACTIVE again";
    auto mad = ask({trunk_port});
    fabric_headers smp = smp_headers();
    EXPECT_TRUE(fabric_switch_mad(a.f(), 0, &smp, mad.data(), &route)) << "but management passes";
}

// A link has two ends, and the trunk's other one is on the other machine.
TEST_F(TrunkTest, link_of_the_trunk_is_not_set_at_one_end)
{
    a.activate(1);
    const auto set = [&](unsigned int offset, unsigned int value) {
        MadBytes mad = directed(Method::set, port_info, trunk_port, {});
        mad[64 + offset] = static_cast<std::uint8_t>(value);
        fabric_headers h = smp_headers();
        EXPECT_TRUE(fabric_switch_mad(a.f(), 0, &h, mad.data(), &route));
        EXPECT_FALSE(fabric_unsettled(a.f()));
        return load<std::uint16_t>(mad.data() + 4) & 0x7fff;
    };
    for (const unsigned int state : {sleeping, polling, disabled})
        EXPECT_EQ(set(33, state << 4), Mad::invalid_value) << "PortPhysicalState " << state;
    EXPECT_EQ(set(32, 1), Mad::invalid_value) << "PortState DOWN";
    EXPECT_EQ(set(33, sleeping), Mad::invalid_value) << "LinkDownDefaultState";
    EXPECT_EQ(set(29, width_1x), Mad::invalid_value) << "LinkWidthEnabled";
    EXPECT_EQ(set(35, speed_sdr), Mad::invalid_value) << "LinkSpeedEnabled";
    // As a subnet manager sets it: no change, or all that is supported.
    for (const unsigned int widths : {0U, 0xffU, unsigned(width_1x | width_4x)})
        EXPECT_EQ(set(29, widths), 0) << widths;
    for (const unsigned int speeds : {0, 15, speed_sdr | speed_ddr | speed_qdr})
        EXPECT_EQ(set(35, speeds), 0) << speeds;
    EXPECT_EQ(set(33, polling), 0) << "LinkDownDefaultState";
    EXPECT_EQ(set(32, 4), 0) << "PortState ACTIVE, which it is";
    const auto h = frame(1, 2);
    EXPECT_TRUE(fabric_route_frame(a.f(), 0, &h).trunks);
}

TEST_F(TrunkTest, switch_of_the_trunk_stays)
{
    EXPECT_FALSE(fabric_plug_switch(a.f(), 0, false));
    EXPECT_TRUE(fabric_has_switch(a.f(), 0));
    EXPECT_FALSE(fabric_set_cable(a.f(), 0, trunk_port, false));
    EXPECT_TRUE(fabric_set_cable(a.f(), 0, hca_port, false));
    EXPECT_EQ(fabric_hca_port(a.f(), 0)->state, 1);
}

TEST_F(TrunkTest, trap_reaches_the_manager_across_the_trunk)
{
    // The manager is the other machine's LID 1.
    b.activate(2);
    std::array<std::uint8_t, 64> data{};
    store(data.data() + 8, default_subnet_prefix);
    store<std::uint16_t>(data.data() + 16, 7);
    store<std::uint16_t>(data.data() + 18, 1);
    b.set(port_info, 0, data);
    MadBytes mad{};
    fabric_headers h{};
    while (fabric_switch_trap(b.f(), &h, mad.data(), &route)) {}
    fabric_set_link(b.f(), 0, false);
    ASSERT_TRUE(fabric_switch_trap(b.f(), &h, mad.data(), &route));
    EXPECT_TRUE(route.trunks);
    fabric_set_link(b.f(), 0, true);
    fabric_set_trunk(b.f(), 0, false);
    EXPECT_FALSE(fabric_switch_trap(b.f(), &h, mad.data(), &route)) << "there is no way to it";
    fabric_set_trunk(b.f(), 0, true);
    EXPECT_TRUE(fabric_switch_trap(b.f(), &h, mad.data(), &route)) << "nothing of it was forgotten";
}

} // namespace
} // namespace soft_ib
