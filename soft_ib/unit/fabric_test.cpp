// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The fabric's logic on the host: Gets and Sets of a subnet manager, routes of management and data frames. Each test
// has a fabric of three HCAs.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include <core.h>

#include "fabric_fixture.hpp"

namespace soft_ib {
namespace {

constexpr std::uint16_t port_counters = 0x12, class_port_info = 0x01;

TEST_F(FabricTest, switch_answers_and_returns_a_directed_route_smp)
{
    auto mad = directed(Method::get, node_info, 0, {});
    ASSERT_TRUE(ask_switch(mad, 1));
    EXPECT_EQ(mad[3], 0x81);
    EXPECT_EQ(load<std::uint16_t>(mad.data() + 4), 0x8000);
    EXPECT_EQ(mad[64 + 2], 2); // a switch
    EXPECT_EQ(mad[64 + 3], hcas);
    EXPECT_EQ(mad[64 + 36], 2); // by its port 2
    EXPECT_EQ(mad[6], 1);       // the last hop
}

TEST_F(FabricTest, directed_route_smp_hops_to_another_hca_and_its_answer_hops_back)
{
    auto mad = directed(Method::get, node_info, 0, {3});
    fabric_headers h = smp_headers();
    ASSERT_TRUE(fabric_switch_mad(f(), 0, &h, mad.data(), &route));
    EXPECT_EQ(route.hcas, std::uint64_t(1) << 2);
    EXPECT_EQ(mad[6], 2);
    EXPECT_EQ(mad[192 + 1], 1); // received by port 1
    // The HCA's ib_mad turns the SMP round.
    mad[4] = 0x80;
    mad[6] = 2;
    ASSERT_TRUE(fabric_switch_mad(f(), 2, &h, mad.data(), &route));
    EXPECT_EQ(route.hcas, std::uint64_t(1) << 0);
    EXPECT_EQ(mad[6], 1);
}

TEST_F(FabricTest, directed_route_smp_with_a_wrong_hop_is_discarded)
{
    for (const std::uint8_t pointer : {4, 63, 255}) {
        auto mad = directed(Method::get, node_info, 0, {3});
        mad[6] = pointer;
        fabric_headers h = smp_headers();
        EXPECT_FALSE(fabric_switch_mad(f(), 0, &h, mad.data(), &route)) << int(pointer);
    }
    auto mad = directed(Method::get, node_info, 0, {9});
    fabric_headers h = smp_headers();
    EXPECT_FALSE(fabric_switch_mad(f(), 0, &h, mad.data(), &route)) << "there is no port 9";
    fabric_set_link(f(), 2, false);
    mad = directed(Method::get, node_info, 0, {3});
    EXPECT_FALSE(fabric_switch_mad(f(), 0, &h, mad.data(), &route)) << "port 3 is down";
}

TEST_F(FabricTest, unknown_attributes_and_values_get_a_status)
{
    auto mad = directed(Method::get, 0x7777, 0, {});
    ASSERT_TRUE(ask_switch(mad));
    EXPECT_EQ(load<std::uint16_t>(mad.data() + 4), 0x8000 | Mad::unsupported_method_attribute);
    mad = directed(Method::get, port_info, hcas + 1, {});
    ASSERT_TRUE(ask_switch(mad));
    EXPECT_EQ(load<std::uint16_t>(mad.data() + 4), 0x8000 | Mad::invalid_value);
    mad = directed(Method::get, linear_table, 768, {});
    ASSERT_TRUE(ask_switch(mad));
    EXPECT_EQ(load<std::uint16_t>(mad.data() + 4), 0x8000 | Mad::invalid_value);
    mad = directed(Method::get, multicast_table, 0x1ff, {});
    ASSERT_TRUE(ask_switch(mad));
    EXPECT_EQ(load<std::uint16_t>(mad.data() + 4), 0x8000 | Mad::invalid_value);
}

TEST_F(FabricTest, smps_of_other_versions_get_a_status)
{
    for (const unsigned int at : {0, 2}) {
        MadBytes mad = directed(Method::set, guid_info, 0, {}), reply{};
        mad[at] = 2;
        store<std::uint64_t>(mad.data() + 64 + 8, 0x0002c9030000abcd);
        unsigned int events = 0;
        ASSERT_TRUE(fabric_hca_mad(f(), 0, mad.data(), reply.data(), &events));
        EXPECT_EQ(reply[3], 0x81);
        EXPECT_EQ(load<std::uint16_t>(reply.data() + 4) & 0x7fff, Mad::unsupported_class);
        EXPECT_EQ(fabric_hca_port(f(), 0)->guids[1], 0U) << "nothing is set";
        mad = directed(Method::get, node_info, 0, {});
        mad[at] = 2;
        ASSERT_TRUE(ask_switch(mad));
        EXPECT_EQ(load<std::uint16_t>(mad.data() + 4) & 0x7fff, Mad::unsupported_class);
    }
}

TEST_F(FabricTest, port_becomes_active_with_its_events)
{
    EXPECT_EQ(fabric_hca_port(f(), 0)->state, 2);
    const unsigned int events = activate(0, 1);
    EXPECT_EQ(events, unsigned(FABRIC_LID_CHANGE | FABRIC_SM_CHANGE | FABRIC_PORT_ACTIVE));
    EXPECT_EQ(fabric_hca_port(f(), 0)->state, 4);
    EXPECT_EQ(fabric_hca_port(f(), 0)->lid, 1);
}

TEST_F(FabricTest, unchanged_set_raises_no_event)
{
    activate(0, 1);
    EXPECT_EQ(activate(0, 1) & (FABRIC_LID_CHANGE | FABRIC_SM_CHANGE | FABRIC_GID_CHANGE), 0U);
}

TEST_F(FabricTest, pkey_table_is_set_and_read)
{
    MadBytes mad = directed(Method::set, pkey_table, 0, {}), reply{};
    store<std::uint16_t>(mad.data() + 64, 0xffff);
    store<std::uint16_t>(mad.data() + 64 + 2, 0x8001);
    unsigned int events = 0;
    ASSERT_TRUE(fabric_hca_mad(f(), 1, mad.data(), reply.data(), &events));
    EXPECT_EQ(events, unsigned(FABRIC_PKEY_CHANGE));
    EXPECT_EQ(fabric_hca_port(f(), 1)->pkeys[1], 0x8001);
    // The last block, and one that does not exist.
    auto block = mad;
    store<std::uint32_t>(block.data() + 20, 3);
    ASSERT_TRUE(fabric_hca_mad(f(), 1, block.data(), reply.data(), &events));
    EXPECT_EQ(fabric_hca_port(f(), 1)->pkeys[97], 0x8001);
    store<std::uint32_t>(block.data() + 20, 4);
    ASSERT_TRUE(fabric_hca_mad(f(), 1, block.data(), reply.data(), &events));
    EXPECT_NE(load<std::uint16_t>(reply.data() + 4) & 0x7fff, 0);
    ASSERT_TRUE(fabric_hca_mad(f(), 1, mad.data(), reply.data(), &events));
    EXPECT_EQ(events, 0U);
}

TEST_F(FabricTest, guid_table_is_set_and_read_except_its_first_entry)
{
    MadBytes mad = directed(Method::set, guid_info, 0, {}), reply{};
    store<std::uint64_t>(mad.data() + 64, 0x1111);
    store<std::uint64_t>(mad.data() + 64 + 8 * 7, 0x0002c9030000abcd);
    unsigned int events = 0;
    ASSERT_TRUE(fabric_hca_mad(f(), 1, mad.data(), reply.data(), &events));
    EXPECT_EQ(events, unsigned(FABRIC_GID_CHANGE));
    EXPECT_EQ(load<std::uint64_t>(reply.data() + 64), fabric_guid(1));
    EXPECT_EQ(load<std::uint64_t>(reply.data() + 64 + 8 * 7), 0x0002c9030000abcd);
    EXPECT_EQ(fabric_hca_port(f(), 1)->guids[0], fabric_guid(1));
    EXPECT_EQ(fabric_hca_port(f(), 1)->guids[7], 0x0002c9030000abcd);
    ASSERT_TRUE(fabric_hca_mad(f(), 1, mad.data(), reply.data(), &events));
    EXPECT_EQ(events, 0U) << "the same again";
    store<std::uint32_t>(mad.data() + 20, 1);
    ASSERT_TRUE(fabric_hca_mad(f(), 1, mad.data(), reply.data(), &events));
    EXPECT_NE(load<std::uint16_t>(reply.data() + 4) & 0x7fff, 0) << "there is no second block";
}

TEST_F(FabricTest, guid_cap_is_the_size_of_the_table)
{
    MadBytes mad = directed(Method::get, port_info, 0, {}), reply{};
    unsigned int events = 0;
    ASSERT_TRUE(fabric_hca_mad(f(), 0, mad.data(), reply.data(), &events));
    EXPECT_EQ(reply[64 + 50], FABRIC_GUIDS);
    auto of_switch = directed(Method::get, port_info, 0, {});
    ASSERT_TRUE(ask_switch(of_switch));
    EXPECT_EQ(of_switch[64 + 50], 1);
}

TEST_F(FabricTest, frame_with_a_grh_is_accepted_only_for_the_ports_gids)
{
    activate(0, 1);
    auto h = datagram(2, 1);
    const auto accepts = [&](std::uint64_t prefix, std::uint64_t guid) {
        h.grh = true;
        store(h.dgid, prefix);
        store(h.dgid + 8, guid);
        return fabric_accepts(f(), 0, &h);
    };
    const std::uint64_t alias = 0x0002c9030000abcd;
    EXPECT_TRUE(fabric_accepts(f(), 0, &h)) << "no GRH";
    EXPECT_TRUE(accepts(default_subnet_prefix, fabric_guid(0)));
    EXPECT_FALSE(accepts(default_subnet_prefix, fabric_guid(1)));
    EXPECT_FALSE(accepts(default_subnet_prefix, 0)) << "an empty entry is no GID";
    EXPECT_FALSE(accepts(default_subnet_prefix, alias));
    EXPECT_EQ(fabric_set_alias(f(), 0, 1, alias), unsigned(FABRIC_GID_CHANGE));
    EXPECT_EQ(fabric_set_alias(f(), 0, 1, alias), 0U);
    EXPECT_TRUE(accepts(default_subnet_prefix, alias));
    EXPECT_FALSE(accepts(0xfec0000000000001, alias)) << "another subnet";
    EXPECT_EQ(fabric_set_alias(f(), 0, 1, 0), unsigned(FABRIC_GID_CHANGE));
    EXPECT_FALSE(accepts(default_subnet_prefix, alias));
    fabric_set_alias(f(), 0, 1, alias);
    fabric_renew_hca(f(), 0);
    EXPECT_EQ(fabric_hca_port(f(), 0)->guids[1], 0U) << "another HCA has none";
}

TEST_F(FabricTest, sm_info_and_other_classes_are_left_to_the_agents)
{
    MadBytes mad = directed(Method::get, 0x20, 0, {}), reply{};
    unsigned int events = 0;
    EXPECT_FALSE(fabric_hca_mad(f(), 0, mad.data(), reply.data(), &events));
    mad[1] = 0x03; // subnet administration
    EXPECT_FALSE(fabric_hca_mad(f(), 0, mad.data(), reply.data(), &events));
}

TEST_F(FabricTest, unicast_follows_the_forwarding_table)
{
    for (unsigned int i = 0; i < hcas; ++i)
        activate(i, static_cast<std::uint16_t>(i + 1));
    auto h = datagram(1, 3);
    EXPECT_EQ(fabric_route_frame(f(), 0, &h).hcas, std::uint64_t(1) << 2);
    h.dlid = 9;
    EXPECT_EQ(fabric_route_frame(f(), 0, &h).hcas, 0U) << "no entry";
    h.dlid = 1;
    EXPECT_EQ(fabric_route_frame(f(), 0, &h).hcas, std::uint64_t(1) << 0) << "its own";
}

TEST_F(FabricTest, only_frames_that_leave_their_hca_are_on_the_wire)
{
    auto h = datagram(1, 2);
    EXPECT_EQ(fabric_route_frame(f(), 0, &h).sent_words, 0) << "the port is not active";
    activate(0, 1);
    EXPECT_GT(fabric_route_frame(f(), 0, &h).sent_words, 0) << "though the switch has nowhere to send it";
    h.dlid = 0xc005;
    EXPECT_GT(fabric_route_frame(f(), 0, &h).sent_words, 0);
    h.dlid = 1;
    EXPECT_EQ(fabric_route_frame(f(), 0, &h).sent_words, 0) << "its own";
    h = smp_headers();
    EXPECT_GT(fabric_route_frame(f(), 0, &h).sent_words, 0);
}

TEST_F(FabricTest, data_needs_both_ports_active)
{
    activate(0, 1);
    activate(1, 2);
    auto h = datagram(1, 2);
    EXPECT_EQ(fabric_route_frame(f(), 0, &h).hcas, std::uint64_t(1) << 1);
    fabric_set_link(f(), 1, false);
    EXPECT_EQ(fabric_route_frame(f(), 0, &h).hcas, 0U);
    fabric_set_link(f(), 1, true);
    EXPECT_EQ(fabric_route_frame(f(), 0, &h).hcas, 0U) << "initialised, not active";
    activate(1, 2);
    EXPECT_EQ(fabric_route_frame(f(), 0, &h).hcas, std::uint64_t(1) << 1);
}

TEST_F(FabricTest, data_needs_each_end_of_a_cable_active)
{
    const auto passes = [&](std::uint16_t from, std::uint16_t to) {
        const auto h = datagram(from, to);
        return fabric_route_frame(f(), from - 1U, &h).hcas != 0;
    };
    activate(0, 1);
    activate(1, 2);
    EXPECT_TRUE(passes(1, 2) && passes(2, 1));
    fabric_set_link(f(), 1, false);
    fabric_set_link(f(), 1, true);
    for (const PortState state : {PortState::armed, PortState::active})
        set_switch_state(1, state);
    EXPECT_FALSE(passes(1, 2)) << "the HCA's end is not active";
    fabric_set_link(f(), 1, false);
    fabric_set_link(f(), 1, true);
    for (const PortState state : {PortState::armed, PortState::active})
        set_hca_state(1, 2, state);
    EXPECT_FALSE(passes(1, 2)) << "the switch's end is not active";
    EXPECT_FALSE(passes(2, 1));
    for (const PortState state : {PortState::armed, PortState::active})
        set_switch_state(1, state);
    EXPECT_TRUE(passes(1, 2) && passes(2, 1));
}

TEST_F(FabricTest, multicast_follows_the_table_and_skips_the_sender)
{
    for (unsigned int i = 0; i < hcas; ++i)
        activate(i, static_cast<std::uint16_t>(i + 1));
    std::array<std::uint8_t, 64> table{};
    store<std::uint16_t>(table.data() + 2 * 5, 1 << 1 | 1 << 2); // ports 1 and 2
    ASSERT_TRUE(set_on_switch(multicast_table, 0, table));
    auto h = datagram(3, 0xc005);
    h.destination_qpn = 0xffffff;
    EXPECT_EQ(fabric_route_frame(f(), 2, &h).hcas, 0b111U) << "with its own members' copies";
    h.slid = 1;
    EXPECT_EQ(fabric_route_frame(f(), 0, &h).hcas, 0b011U);
    h.dlid = 0xc006;
    EXPECT_EQ(fabric_route_frame(f(), 0, &h).hcas, std::uint64_t(1) << 0);
}

TEST_F(FabricTest, two_subnets_are_separate)
{
    construct(2);
    for (unsigned int i = 0; i < hcas; ++i)
        activate(i, static_cast<std::uint16_t>(i + 1));
    auto h = datagram(1, 3);
    EXPECT_EQ(fabric_route_frame(f(), 0, &h).hcas, std::uint64_t(1) << 2);
    h.dlid = 2;
    EXPECT_EQ(fabric_route_frame(f(), 0, &h).hcas, 0U) << "HCA 1 is in the other subnet";
    // A group of all ports has members in both subnets.
    std::array<std::uint8_t, 64> table{};
    store<std::uint16_t>(table.data(), 1 << 1 | 1 << 2 | 1 << 3);
    ASSERT_TRUE(set_on_switch(multicast_table, 0, table, 0));
    ASSERT_TRUE(set_on_switch(multicast_table, 0, table, 1));
    h.dlid = 0xc000;
    EXPECT_EQ(fabric_route_frame(f(), 0, &h).hcas, 0b101U);
    EXPECT_EQ(fabric_route_frame(f(), 1, &h).hcas, 0b010U);
}

TEST_F(FabricTest, switch_of_the_default_fabric_is_removed_and_returns)
{
    EXPECT_EQ(fabric_switches(f()), 1U);
    EXPECT_TRUE(fabric_plug_switch(f(), 0, false));
    EXPECT_EQ(fabric_hca_port(f(), 2)->state, 1);
    EXPECT_TRUE(fabric_plug_switch(f(), 0, true));
    EXPECT_EQ(fabric_hca_port(f(), 2)->state, 2);
    construct(2);
    EXPECT_EQ(fabric_switches(f()), 2U);
}

TEST_F(FabricTest, each_subnet_has_its_own_switch)
{
    construct(2);
    std::uint64_t guids[hcas];
    for (unsigned int i = 0; i < hcas; ++i) {
        auto mad = directed(Method::get, node_info, 0, {});
        ASSERT_TRUE(ask_switch(mad, i));
        guids[i] = load<std::uint64_t>(mad.data() + 64 + 4);
    }
    EXPECT_NE(guids[0], guids[1]);
    EXPECT_EQ(guids[0], guids[2]);
    // No route connects the subnets.
    fabric_headers h = smp_headers();
    auto mad = directed(Method::get, node_info, 0, {2});
    EXPECT_FALSE(fabric_switch_mad(f(), 0, &h, mad.data(), &route));
    mad = directed(Method::get, node_info, 0, {3});
    EXPECT_TRUE(fabric_switch_mad(f(), 0, &h, mad.data(), &route));
}

TEST_F(FabricTest, link_change_is_reported_to_its_subnets_manager)
{
    construct(2);
    for (unsigned int i = 0; i < hcas; ++i)
        activate(i, static_cast<std::uint16_t>(i + 1));
    // Both switches have a manager: HCA 0 (LID 1) and HCA 1 (LID 2).
    for (unsigned int i = 0; i < 2; ++i) {
        std::array<std::uint8_t, 64> data{};
        store<std::uint64_t>(data.data() + 8, default_subnet_prefix);
        store(data.data() + 16, static_cast<std::uint16_t>(7 + i));
        store(data.data() + 18, static_cast<std::uint16_t>(1 + i));
        ASSERT_TRUE(set_on_switch(port_info, 0, data, i));
    }
    std::array<std::uint8_t, 256> mad{};
    fabric_headers h{};
    while (fabric_switch_trap(f(), &h, mad.data(), &route)) {}
    fabric_set_link(f(), 2, false);
    ASSERT_TRUE(fabric_switch_trap(f(), &h, mad.data(), &route));
    EXPECT_EQ(route.hcas, std::uint64_t(1) << 0);
    EXPECT_FALSE(fabric_switch_trap(f(), &h, mad.data(), &route));
}

TEST_F(FabricTest, link_change_is_reported_once_by_trap_and_bit)
{
    activate(0, 1);
    activate(1, 2);
    std::array<std::uint8_t, 64> data{};
    store<std::uint64_t>(data.data() + 8, 0xfe80000000000000);
    store<std::uint16_t>(data.data() + 16, 7);
    store<std::uint16_t>(data.data() + 18, 1);
    ASSERT_TRUE(set_on_switch(port_info, 0, data));
    std::array<std::uint8_t, 256> mad{};
    fabric_headers h{};
    while (fabric_switch_trap(f(), &h, mad.data(), &route)) {}
    EXPECT_EQ(fabric_set_link(f(), 1, false), unsigned(FABRIC_PORT_ERROR));
    EXPECT_EQ(fabric_set_link(f(), 1, false), 0U);
    ASSERT_TRUE(fabric_switch_trap(f(), &h, mad.data(), &route));
    EXPECT_EQ(route.hcas, std::uint64_t(1) << 0);
    EXPECT_EQ(mad[3], 5);
    EXPECT_EQ(load<std::uint16_t>(mad.data() + 64 + 4), 128);
    EXPECT_EQ(load<std::uint16_t>(mad.data() + 64 + 10), 7);
    EXPECT_FALSE(fabric_switch_trap(f(), &h, mad.data(), &route));
    auto info = directed(Method::get, switch_info, 0, {});
    ASSERT_TRUE(ask_switch(info));
    EXPECT_TRUE(info[64 + 11] & 4);
}

TEST_F(FabricTest, replugged_hca_has_lost_its_configuration)
{
    activate(0, 1);
    fabric_set_link(f(), 0, false);
    fabric_renew_hca(f(), 0);
    fabric_set_link(f(), 0, true);
    EXPECT_EQ(fabric_hca_port(f(), 0)->lid, 0);
    EXPECT_EQ(fabric_hca_port(f(), 0)->state, 2);
    EXPECT_EQ(fabric_hca_port(f(), 0)->guids[0], fabric_guid(0));
}

TEST_F(FabricTest, hca_is_plugged_into_a_connected_cable)
{
    activate(0, 1);
    fabric_set_link(f(), 0, false);
    // While the slot is empty.
    fabric_set_link(f(), 0, true);
    fabric_renew_hca(f(), 0);
    fabric_set_link(f(), 0, true);
    EXPECT_EQ(fabric_hca_port(f(), 0)->state, 2);
    EXPECT_EQ(activate(0, 1) & FABRIC_PORT_ACTIVE, unsigned(FABRIC_PORT_ACTIVE));
    EXPECT_EQ(fabric_set_link(f(), 0, false), unsigned(FABRIC_PORT_ERROR));
}

TEST_F(FabricTest, counters_count_both_ends_of_a_cable)
{
    activate(0, 1);
    activate(1, 2);
    auto h = datagram(1, 2);
    fabric_route_frame(f(), 0, &h);
    fabric_count_received(f(), 1, &h);
    const auto read = [&](unsigned int hca) {
        MadBytes mad = performance(Method::get, port_counters, 1), reply{};
        unsigned int events;
        EXPECT_TRUE(fabric_hca_mad(f(), hca, mad.data(), reply.data(), &events));
        return std::pair(load<std::uint32_t>(reply.data() + 64 + 32), load<std::uint32_t>(reply.data() + 64 + 36));
    };
    EXPECT_EQ(read(0), std::pair(1U, 0U));
    EXPECT_EQ(read(1), std::pair(0U, 1U));
    MadBytes mad = performance(Method::get, port_counters, 2);
    auto to_switch = gmp_headers(1, 7);
    ASSERT_TRUE(fabric_switch_mad(f(), 0, &to_switch, mad.data(), &route));
    EXPECT_EQ(load<std::uint32_t>(mad.data() + 64 + 32), 1U) << "the switch sent it by port 2";
}

TEST_F(FabricTest, performance_agent_reports_its_class_and_refuses_other_ports)
{
    MadBytes mad = performance(Method::get, class_port_info, 0), reply{};
    unsigned int events;
    ASSERT_TRUE(fabric_hca_mad(f(), 0, mad.data(), reply.data(), &events));
    EXPECT_TRUE(load<std::uint16_t>(reply.data() + 64 + 2) & 1 << 9);
    mad = performance(Method::get, port_counters, 2);
    ASSERT_TRUE(fabric_hca_mad(f(), 0, mad.data(), reply.data(), &events));
    EXPECT_EQ(load<std::uint16_t>(reply.data() + 4), Mad::invalid_value);
}

TEST_F(FabricTest, switch_refuses_requests_of_other_classes_only)
{
    activate(0, 1);
    const auto ask = [&](std::uint8_t management_class, std::uint8_t version, std::uint8_t method, MadBytes& mad) {
        mad = {};
        mad[0] = 1;
        mad[1] = management_class;
        mad[2] = version;
        mad[3] = method;
        auto h = gmp_headers(1, 7);
        h.source_qpn = 5;
        return fabric_switch_mad(f(), 0, &h, mad.data(), &route) && route.hcas == 1 && h.dlid == 1 && h.slid == 7 &&
               h.destination_qpn == 5 && h.source_qpn == 1;
    };
    MadBytes mad;
    // Subnet administration, communication management, congestion control, vendors' classes.
    for (const std::uint8_t management_class : {0x03, 0x07, 0x21, 0x0a, 0x32})
        for (const std::uint8_t method : {1, 2}) {
            ASSERT_TRUE(ask(management_class, 2, method, mad)) << int(management_class);
            EXPECT_EQ(mad[3], 0x81);
            EXPECT_EQ(load<std::uint16_t>(mad.data() + 4), Mad::unsupported_class);
        }
    for (const std::uint8_t method : {0x81, 0x03, 0x05, 0x07, 0x12, 0x92})
        EXPECT_FALSE(ask(0x21, 2, method, mad)) << "no Get or Set: " << int(method);
    ASSERT_TRUE(ask(0x04, 2, 1, mad));
    EXPECT_EQ(load<std::uint16_t>(mad.data() + 4), Mad::unsupported_class) << "a class of another version";
    // An SMP to queue pair 1, another MAD to queue pair 0.
    EXPECT_FALSE(ask(0x01, 1, 1, mad));
    auto h = smp_headers(1, 7);
    mad[1] = 0x21;
    mad[3] = 1;
    EXPECT_FALSE(fabric_switch_mad(f(), 0, &h, mad.data(), &route));
}

TEST_F(FabricTest, answer_to_a_request_with_a_grh_has_the_requesters_gid)
{
    activate(0, 1);
    // Congestion control, which no agent takes; performance management.
    for (const std::uint8_t management_class : {0x21, 0x04}) {
        MadBytes mad = performance(Method::get, class_port_info, 0);
        mad[1] = management_class;
        auto h = gmp_headers(1, 7);
        h.grh = true;
        store(h.sgid, default_subnet_prefix);
        store(h.sgid + 8, fabric_guid(0));
        store(h.dgid, default_subnet_prefix);
        store<std::uint64_t>(h.dgid + 8, 0x1234);
        ASSERT_TRUE(fabric_switch_mad(f(), 0, &h, mad.data(), &route));
        EXPECT_TRUE(fabric_accepts(f(), 0, &h)) << int(management_class);
        EXPECT_EQ(load<std::uint64_t>(h.sgid + 8), 0x1234U);
    }
}

TEST(PKeys, match_when_one_is_a_full_member)
{
    EXPECT_TRUE(fabric_pkeys_match(0x8001, 0x0001));
    EXPECT_TRUE(fabric_pkeys_match(0x8001, 0x8001));
    EXPECT_FALSE(fabric_pkeys_match(0x0001, 0x0001));
    EXPECT_FALSE(fabric_pkeys_match(0x8001, 0x8002));
    EXPECT_FALSE(fabric_pkeys_match(0x8000, 0x8000));
}

} // namespace
} // namespace soft_ib
