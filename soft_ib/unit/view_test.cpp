// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Ports as debugfs shows them: HCA 0 at port 1 of switch 0, whose port 2 leads to port 3 of switch 1.
#include <gtest/gtest.h>

#include "management.hpp"
#include "node.hpp"

namespace soft_ib {
namespace {

constexpr std::uint8_t switch_ports[] = {3, 3};
constexpr fabric_cable cables[] = {{0, 1, 0, 0}, {0, 2, 1, 3}};

class ViewTest : public testing::Test {
protected:
    void SetUp() override
    {
        fabric_plan plan = plan_of(2);
        plan.switches = std::size(switch_ports);
        plan.switch_ports = switch_ports;
        plan.cables = cables;
        plan.cable_count = std::size(cables);
        fabric_construct(f(), &plan);
    }
    struct fabric* f() const { return memory.get(); }
    fabric_port_view port(unsigned int number, unsigned int port) const
    {
        fabric_port_view view{};
        EXPECT_TRUE(fabric_view_switch_port(f(), number, port, &view));
        return view;
    }

    FabricMemory memory = fabric_memory();
};

TEST_F(ViewTest, cables_are_seen_from_both_ends)
{
    const fabric_port_view to_hca = port(0, 1), to_switch = port(0, 2), back = port(1, 3),
                           hca = fabric_view_hca(f(), 0);
    EXPECT_EQ(to_hca.peer_kind, FABRIC_HCA);
    EXPECT_EQ(to_hca.peer, 0);
    EXPECT_EQ(to_switch.peer_kind, FABRIC_SWITCH);
    EXPECT_EQ(to_switch.peer, 1);
    EXPECT_EQ(to_switch.peer_port, 3);
    EXPECT_EQ(back.peer, 0);
    EXPECT_EQ(back.peer_port, 2);
    EXPECT_EQ(hca.peer_kind, FABRIC_SWITCH);
    EXPECT_EQ(hca.peer, 0);
    EXPECT_EQ(hca.peer_port, 1);
}

TEST_F(ViewTest, ports_without_cable_have_no_peer)
{
    fabric_port_view view{};
    EXPECT_EQ(port(0, 3).peer_kind, FABRIC_NOTHING);
    EXPECT_EQ(port(0, 0).peer_kind, FABRIC_NOTHING);
    EXPECT_EQ(fabric_view_hca(f(), 1).peer_kind, FABRIC_NOTHING);
    EXPECT_FALSE(fabric_view_switch_port(f(), 0, 4, &view));
}

TEST_F(ViewTest, trunks_lead_to_other_machines)
{
    fabric_plan plan = plan_of(1);
    plan.trunks = 2;
    fabric_construct(f(), &plan);
    EXPECT_EQ(port(0, 2).peer_kind, FABRIC_OTHER_MACHINE);
    EXPECT_EQ(port(0, 3).peer_kind, FABRIC_OTHER_MACHINE);
    EXPECT_EQ(port(0, 3).peer, 1);
}

TEST_F(ViewTest, states_names_and_counters_are_those_of_the_port)
{
    fabric_name_switch(f(), 1, "spine");
    fabric_set_description(f(), 0, "host");
    EXPECT_STREQ(port(1, 3).name, "spine");
    EXPECT_STREQ(fabric_view_hca(f(), 0).name, "host");
    EXPECT_EQ(port(1, 3).port->state, 2) << "initialise: the cable between switches";
    EXPECT_EQ(port(0, 1).port->state, 1) << "down: the HCA's cable is not connected yet";

    fabric_set_link(f(), 0, true);
    fabric_headers h = smp_headers();
    fabric_route_frame(f(), 0, &h);
    EXPECT_EQ(fabric_view_hca(f(), 0).sent_packets, 1U);
    EXPECT_EQ(fabric_view_hca(f(), 0).sent_bytes, 4U * words(h));
    EXPECT_EQ(port(0, 1).received_packets, 1U);
    EXPECT_EQ(port(0, 1).received_bytes, 4U * words(h));

    fabric_set_link(f(), 0, false);
    EXPECT_EQ(port(0, 1).link_downed, 1U);
    EXPECT_EQ(fabric_view_hca(f(), 0).port->state, 1);
}

} // namespace
} // namespace soft_ib
