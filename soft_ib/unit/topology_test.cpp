// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A ring of three switches of three ports: HCA i, of LID i + 1, is at port 1 of switch i, of LID 11 + i. Port 2 leads
// to the next switch of the ring, port 3 to the one before.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <initializer_list>

#include "management.hpp"
#include "node.hpp"

namespace soft_ib {
namespace {

constexpr unsigned int ring = 3;
constexpr std::uint8_t switch_ports[ring] = {3, 3, 3};
constexpr fabric_cable cables[] = {{0, 1, 0, 0}, {1, 1, 1, 0}, {2, 1, 2, 0}, {0, 2, 1, 3}, {1, 2, 2, 3}, {2, 2, 0, 3}};
constexpr std::uint8_t to_hca = 1, to_next = 2, to_former = 3;
constexpr std::uint16_t group = 0xc000;

std::uint16_t lid_of(unsigned int hca) { return static_cast<std::uint16_t>(hca + 1); }

fabric_plan ring_plan()
{
    fabric_plan plan = plan_of(ring);
    plan.switches = ring;
    plan.switch_ports = switch_ports;
    plan.cables = cables;
    plan.cable_count = std::size(cables);
    return plan;
}

class TopologyTest : public testing::Test {
protected:
    void SetUp() override
    {
        const fabric_plan plan = ring_plan();
        fabric_construct(f(), &plan);
        for (unsigned int i = 0; i < ring; ++i)
            fabric_set_link(f(), i, true);
        for (unsigned int i = 0; i < ring; ++i)
            for (const PortState state : {PortState::armed, PortState::active})
                activate(i, state);
    }
    struct fabric* f() const { return memory.get(); }

    // Sends an SMP from an HCA to the end of the path. Returns true if the answer returns.
    bool ask(unsigned int hca, MadBytes& mad)
    {
        fabric_headers h = smp_headers();
        return fabric_switch_mad(f(), hca, &h, mad.data(), &route) && route.hcas == std::uint64_t(1) << hca;
    }
    // Sets an attribute of switch i.
    void set(unsigned int i, std::uint16_t attribute, std::uint32_t modifier, const std::array<std::uint8_t, 64>& data)
    {
        MadBytes mad = directed(Method::set, attribute, modifier, {});
        std::memcpy(mad.data() + 64, data.data(), data.size());
        ASSERT_TRUE(ask(i, mad));
        ASSERT_EQ(mad[5], 0) << "status";
    }
    static std::array<std::uint8_t, 64> port_data(PortState state, std::uint16_t lid)
    {
        std::array<std::uint8_t, 64> data{};
        store(data.data() + 8, default_subnet_prefix);
        store(data.data() + 16, lid);
        store(data.data() + 18, lid_of(0));
        data[32] = static_cast<std::uint8_t>(state);
        return data;
    }
    void activate(unsigned int i, PortState state)
    {
        set(i, port_info, 0, port_data(PortState(), static_cast<std::uint16_t>(11 + i)));
        for (const std::uint32_t port : {to_hca, to_next, to_former})
            set(i, port_info, port, port_data(state, 0));
        MadBytes mad = directed(Method::set, port_info, 0, {}), reply{};
        const auto data = port_data(state, lid_of(i));
        unsigned int events = 0;
        std::memcpy(mad.data() + 64, data.data(), data.size());
        ASSERT_TRUE(fabric_hca_mad(f(), i, mad.data(), reply.data(), &events));
    }
    // Entries of switch i for LIDs 1 to 3, and 11 to 13.
    void set_table(unsigned int i, std::initializer_list<std::uint8_t> hcas, std::initializer_list<std::uint8_t> nodes)
    {
        std::array<std::uint8_t, 64> table;
        table.fill(Switch::no_port);
        std::copy(hcas.begin(), hcas.end(), table.begin() + 1);
        std::copy(nodes.begin(), nodes.end(), table.begin() + 11);
        set(i, linear_table, 0, table);
        set(i, switch_info, 0, forwarding_top());
    }
    // Shortest routes.
    void set_tables()
    {
        set_table(0, {to_hca, to_next, to_former}, {0, to_next, to_former});
        set_table(1, {to_former, to_hca, to_next}, {to_former, 0, to_next});
        set_table(2, {to_next, to_former, to_hca}, {to_next, to_former, 0});
    }
    void set_groups(std::initializer_list<std::uint16_t> ports)
    {
        unsigned int i = 0;
        for (const std::uint16_t mask : ports) {
            std::array<std::uint8_t, 64> table{};
            store(table.data(), mask);
            set(i++, multicast_table, 0, table);
        }
    }
    // HCAs with events, as bits, after all changes of links.
    unsigned int settle()
    {
        unsigned int hcas = 0, hca = 0, events = 0;
        while (fabric_settle(f(), &hca, &events)) {
            EXPECT_EQ(events, unsigned(FABRIC_PORT_ERROR));
            hcas |= 1U << hca;
        }
        return hcas;
    }
    fabric_route send(unsigned int hca, std::uint16_t dlid)
    {
        const fabric_headers h = datagram(lid_of(hca), dlid);
        return fabric_route_frame(f(), hca, &h);
    }
    // Frames that a port of switch i has sent.
    std::uint32_t sent(unsigned int i, std::uint8_t port)
    {
        MadBytes mad = performance(Method::get, 0x12, port);
        fabric_headers h = gmp_headers(lid_of(i), static_cast<std::uint16_t>(11 + i));
        EXPECT_TRUE(fabric_switch_mad(f(), i, &h, mad.data(), &route));
        return load<std::uint32_t>(mad.data() + 64 + 32);
    }
    std::uint32_t sent_between_switches()
    {
        std::uint32_t sum = 0;
        for (unsigned int i = 0; i < ring; ++i)
            sum += sent(i, to_next) + sent(i, to_former);
        return sum;
    }

    FabricMemory memory = fabric_memory();
    fabric_route route{};
};

TEST_F(TopologyTest, directed_route_leads_through_several_switches_and_back)
{
    MadBytes mad = directed(Method::get, node_info, 0, {to_next, to_next});
    ASSERT_TRUE(ask(0, mad));
    EXPECT_EQ(mad[64 + 2], 2) << "a switch";
    EXPECT_EQ(mad[64 + 36], to_former) << "asked by that port";
    MadBytes own = directed(Method::get, node_info, 0, {});
    ASSERT_TRUE(ask(2, own));
    EXPECT_EQ(std::memcmp(own.data() + 64 + 4, mad.data() + 64 + 4, 8), 0) << "switch 2";
    // To HCA 1 by the long way.
    mad = directed(Method::get, node_info, 0, {to_former, to_former, to_hca});
    fabric_headers h = smp_headers();
    ASSERT_TRUE(fabric_switch_mad(f(), 0, &h, mad.data(), &route));
    EXPECT_EQ(route.hcas, std::uint64_t(1) << 1);
    mad[4] = 0x80;
    ASSERT_TRUE(fabric_switch_mad(f(), 1, &h, mad.data(), &route));
    EXPECT_EQ(route.hcas, std::uint64_t(1) << 0);
}

TEST_F(TopologyTest, unicast_is_forwarded_hop_by_hop)
{
    set_tables();
    for (unsigned int from = 0; from < ring; ++from)
        for (unsigned int to = 0; to < ring; ++to)
            EXPECT_EQ(send(from, lid_of(to)).hcas, std::uint64_t(1) << to) << from << " to " << to;
    const std::uint32_t before = sent(0, to_former);
    EXPECT_EQ(sent(2, to_former), 1U);
    // HCA 1 by way of switch 2.
    set_table(0, {to_hca, to_former, to_former}, {0, to_next, to_former});
    EXPECT_EQ(send(0, lid_of(1)).hcas, std::uint64_t(1) << 1);
    EXPECT_EQ(sent(0, to_former), before + 1);
    EXPECT_EQ(sent(2, to_former), 2U);
    set_table(2, {to_next, Switch::no_port, to_hca}, {to_next, to_former, 0});
    EXPECT_EQ(send(0, lid_of(1)).hcas, 0U) << "that switch has no entry";
}

TEST_F(TopologyTest, lids_above_the_top_of_a_forwarding_table_are_not_forwarded)
{
    set_tables();
    set(0, switch_info, 0, forwarding_top(lid_of(1)));
    EXPECT_EQ(send(0, lid_of(1)).hcas, std::uint64_t(1) << 1);
    EXPECT_EQ(send(0, lid_of(2)).hcas, 0U);
    EXPECT_EQ(send(1, lid_of(2)).hcas, std::uint64_t(1) << 2) << "the top is that of one switch";
}

TEST_F(TopologyTest, inactive_link_between_switches_passes_management_only)
{
    set_tables();
    // Makes the link come up anew.
    set(1, port_info, to_former, port_data(PortState::down, 0));
    EXPECT_EQ(settle(), 0U) << "no HCA's link has changed";
    EXPECT_EQ(send(0, lid_of(1)).hcas, 0U);
    EXPECT_EQ(send(1, lid_of(0)).hcas, 0U);
    EXPECT_EQ(send(0, lid_of(2)).hcas, std::uint64_t(1) << 2);
    MadBytes mad = directed(Method::get, node_info, 0, {to_next});
    EXPECT_TRUE(ask(0, mad));
}

TEST_F(TopologyTest, loop_of_the_tables_ends)
{
    for (unsigned int i = 0; i < ring; ++i)
        set_table(i, {to_next, to_next, to_next}, {to_next, to_next, to_next});
    const fabric_route lost = send(0, lid_of(1));
    EXPECT_EQ(lost.hcas, 0U);
    EXPECT_GT(lost.sent_words, 0);
    set_tables();
    EXPECT_EQ(sent_between_switches(), 64U);
    // All ports at all switches: copies in both directions.
    set_groups({0b1110, 0b1110, 0b1110});
    EXPECT_EQ(send(0, group).hcas, 0b111U);
    // The first switch sends two.
    EXPECT_EQ(sent_between_switches(), 64U + 64U + 2U);
}

TEST_F(TopologyTest, answer_to_a_request_that_cuts_its_way_arrives)
{
    set_tables();
    fabric_headers h = smp_headers(lid_of(0), 12);
    route = fabric_route_frame(f(), 0, &h);
    MadBytes mad = directed(Method::set, port_info, to_former, {});
    mad[1] = 0x01;
    mad[64 + 33] = disabled << 4;
    ASSERT_TRUE(fabric_switch_mad(f(), route.to_switch, &h, mad.data(), &route));
    EXPECT_EQ(route.hcas, std::uint64_t(1) << 0);
    EXPECT_EQ(load<std::uint16_t>(mad.data() + 4), 0);
    settle();
    h = smp_headers(lid_of(0), 12);
    EXPECT_FALSE(fabric_route_frame(f(), 0, &h).to_switch) << "the link is down";
}

TEST_F(TopologyTest, group_frame_is_replicated_at_each_switch)
{
    // The tree is 1 - 0 - 2.
    set_groups({1 << to_hca | 1 << to_next | 1 << to_former, 1 << to_hca | 1 << to_former, 1 << to_hca | 1 << to_next});
    for (unsigned int from = 0; from < ring; ++from)
        EXPECT_EQ(send(from, group).hcas, 0b111U) << from;
    set_tables();
    EXPECT_EQ(sent_between_switches(), 3 * 2U) << "each by two cables";
    set_groups({1 << to_hca | 1 << to_next, 1 << to_hca | 1 << to_former, 0});
    EXPECT_EQ(send(0, group).hcas, 0b011U);
    EXPECT_EQ(send(2, group).hcas, 0b100U) << "its own members only";
}

TEST_F(TopologyTest, switch_behind_another_one_is_asked_by_lid)
{
    set_tables();
    fabric_headers h = smp_headers(lid_of(0), 12);
    route = fabric_route_frame(f(), 0, &h);
    ASSERT_TRUE(route.to_switch);
    EXPECT_EQ(route.hcas, 0U);
    MadBytes mad = directed(Method::get, node_info, 0, {});
    mad[1] = 0x01;
    ASSERT_TRUE(fabric_switch_mad(f(), route.to_switch, &h, mad.data(), &route));
    EXPECT_EQ(route.hcas, std::uint64_t(1) << 0);
    EXPECT_EQ(h.dlid, lid_of(0));
    EXPECT_EQ(mad[64 + 36], to_former) << "received by that port";
    // By LID to switch 1, then by its port 2 to switch 2, which answers.
    mad = directed(Method::get, node_info, 0, {});
    mad[6] = 0;
    mad[128 + 1] = to_next;
    store(mad.data() + 32, lid_of(0));
    h = smp_headers(lid_of(0), 12);
    route = fabric_route_frame(f(), 0, &h);
    ASSERT_TRUE(fabric_switch_mad(f(), route.to_switch, &h, mad.data(), &route));
    EXPECT_EQ(route.hcas, std::uint64_t(1) << 0);
    EXPECT_EQ(mad[6], 0);
    EXPECT_EQ(h.slid, 12) << "of the switch where the directed part began";
}

TEST_F(TopologyTest, directed_route_goes_on_by_lid_to_a_third_switch)
{
    set_tables();
    // By its port to switch 1, from there by LID to switch 2.
    MadBytes mad = directed(Method::get, node_info, 0, {to_next});
    store<std::uint16_t>(mad.data() + 34, 13);
    ASSERT_TRUE(ask(0, mad));
    EXPECT_EQ(mad[3], 0x81);
    EXPECT_EQ(mad[64 + 36], to_former) << "switch 2, asked by that port";
}

TEST_F(TopologyTest, trap_of_a_distant_switch_reaches_the_manager)
{
    set_tables();
    MadBytes mad{};
    fabric_headers h{};
    while (fabric_switch_trap(f(), &h, mad.data(), &route)) {}
    fabric_set_link(f(), 1, false);
    ASSERT_TRUE(fabric_switch_trap(f(), &h, mad.data(), &route));
    EXPECT_EQ(route.hcas, std::uint64_t(1) << 0);
    EXPECT_EQ(h.slid, 12);
    EXPECT_FALSE(fabric_switch_trap(f(), &h, mad.data(), &route));
}

TEST_F(TopologyTest, disconnected_cable_takes_both_ends_down)
{
    set_tables();
    EXPECT_TRUE(fabric_set_cable(f(), 0, to_next, false));
    EXPECT_FALSE(settle());
    EXPECT_EQ(send(0, lid_of(1)).hcas, 0U);
    EXPECT_EQ(send(1, lid_of(0)).hcas, 0U);
    EXPECT_EQ(send(0, lid_of(2)).hcas, std::uint64_t(1) << 2);
    MadBytes mad = directed(Method::get, node_info, 0, {to_next});
    EXPECT_FALSE(ask(0, mad));
    mad = directed(Method::get, port_info, to_former, {to_former, to_former});
    ASSERT_TRUE(ask(0, mad)) << "switch 1 by the long way";
    EXPECT_EQ(mad[64 + 32] & 0x0f, 1) << "its end is down too";
    EXPECT_TRUE(fabric_set_cable(f(), 1, to_former, true));
    mad = directed(Method::get, node_info, 0, {to_next});
    EXPECT_TRUE(ask(0, mad));
    EXPECT_EQ(send(0, lid_of(1)).hcas, 0U) << "not active yet";
    EXPECT_TRUE(fabric_set_cable(f(), 0, to_hca, false));
    EXPECT_EQ(settle(), 1U << 0);
    EXPECT_EQ(fabric_hca_port(f(), 0)->state, 1);
    EXPECT_FALSE(fabric_set_cable(f(), 0, 0, false));
    EXPECT_FALSE(fabric_set_cable(f(), 0, 4, false));
}

TEST_F(TopologyTest, removed_switch_returns_without_configuration)
{
    set_tables();
    EXPECT_TRUE(fabric_has_switch(f(), 2));
    fabric_plug_switch(f(), 2, false);
    EXPECT_FALSE(fabric_has_switch(f(), 2));
    EXPECT_EQ(settle(), 1U << 2) << "events of its HCA";
    EXPECT_EQ(fabric_hca_port(f(), 2)->state, 1);
    MadBytes mad = directed(Method::get, node_info, 0, {to_former});
    EXPECT_FALSE(ask(0, mad));
    EXPECT_EQ(send(0, lid_of(2)).hcas, 0U);
    EXPECT_EQ(send(0, lid_of(1)).hcas, std::uint64_t(1) << 1);
    // A cable is moved meanwhile.
    EXPECT_TRUE(fabric_set_cable(f(), 2, to_hca, false));
    EXPECT_TRUE(fabric_set_cable(f(), 2, to_hca, true));
    EXPECT_EQ(fabric_hca_port(f(), 2)->state, 1);
    fabric_plug_switch(f(), 2, true);
    EXPECT_EQ(fabric_hca_port(f(), 2)->state, 2);
    mad = directed(Method::get, port_info, 0, {});
    ASSERT_TRUE(ask(2, mad));
    EXPECT_EQ(load<std::uint16_t>(mad.data() + 64 + 16), 0) << "no LID";
    mad = directed(Method::get, linear_table, 0, {});
    ASSERT_TRUE(ask(2, mad));
    EXPECT_EQ(mad[64 + 1], Switch::no_port);
    mad = directed(Method::get, node_info, 0, {to_former});
    EXPECT_TRUE(ask(0, mad));
}

TEST_F(TopologyTest, switches_have_names)
{
    fabric_name_switch(f(), 1, "middle");
    MadBytes mad = directed(Method::get, 0x10, 0, {to_next});
    ASSERT_TRUE(ask(0, mad));
    EXPECT_STREQ(reinterpret_cast<char*>(mad.data() + 64), "middle");
    EXPECT_EQ(fabric_switches(f()), ring);
}

// The second of two HCAs.
TEST(HcaWithoutCable, carries_out_what_its_port_is_told)
{
    constexpr std::uint8_t ports[] = {2};
    constexpr fabric_cable cable[] = {{0, 1, 0, 0}};
    fabric_plan plan = plan_of(2);
    plan.switches = plan.cable_count = 1;
    plan.switch_ports = ports;
    plan.cables = cable;
    const FabricMemory memory = fabric_memory();
    fabric_construct(memory.get(), &plan);
    fabric_set_link(memory.get(), 1, true);
    const fabric_port* port = fabric_hca_port(memory.get(), 1);
    for (const std::uint8_t state : {disabled, polling}) {
        MadBytes mad = directed(Method::set, port_info, 0, {}), reply{};
        unsigned int events = 0, hca = 0;
        store<std::uint16_t>(mad.data() + 64 + 16, 2);
        store<std::uint16_t>(mad.data() + 64 + 18, 1);
        mad[64 + 33] = static_cast<std::uint8_t>(state << 4);
        ASSERT_TRUE(fabric_hca_mad(memory.get(), 1, mad.data(), reply.data(), &events));
        EXPECT_EQ(reply[5], 0);
        EXPECT_FALSE(fabric_settle(memory.get(), &hca, &events));
        EXPECT_FALSE(fabric_unsettled(memory.get()));
        EXPECT_EQ(port->state, 1);
        EXPECT_EQ(port->physical_state, state);
        mad = directed(Method::get, port_info, 0, {});
        ASSERT_TRUE(fabric_hca_mad(memory.get(), 1, mad.data(), reply.data(), &events));
        EXPECT_EQ(reply[64 + 33] >> 4, state);
    }
    fabric_renew_hca(memory.get(), 1);
    EXPECT_EQ(port->state, 1);
}

TEST(Cables, wrong_ones_are_found)
{
    fabric_plan plan = ring_plan();
    EXPECT_EQ(fabric_wrong_cable(&plan), plan.cable_count);
    const fabric_cable wrong[] = {{3, 1, 0, 0}, {0, 4, 0, 0}, {0, 0, 1, 0}, {0, 1, 3, 0},
                                  {0, 1, 1, 4}, {0, 1, 3, 1}, {0, 1, 0, 1}};
    for (const fabric_cable& cable : wrong) {
        plan.cables = &cable;
        plan.cable_count = 1;
        EXPECT_EQ(fabric_wrong_cable(&plan), 0U) << &cable - wrong;
    }
    const fabric_cable twice[] = {{0, 1, 0, 0}, {0, 2, 1, 1}, {1, 1, 1, 0}}, again[] = {{0, 1, 0, 0}, {1, 1, 0, 0}};
    plan.cables = twice;
    plan.cable_count = 3;
    EXPECT_EQ(fabric_wrong_cable(&plan), 2U) << "two cables at a port";
    plan.cables = again;
    plan.cable_count = 2;
    EXPECT_EQ(fabric_wrong_cable(&plan), 1U) << "two cables of an HCA";
}

} // namespace
} // namespace soft_ib
