// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A fabric of three HCAs for tests, and what a subnet manager does to it.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include <core.h>

#include "management.hpp"
#include "node.hpp"

namespace soft_ib {

class FabricTest : public testing::Test {
protected:
    static constexpr unsigned int hcas = 3;

    void SetUp() override
    {
        memory = fabric_memory();
        construct(1);
    }
    void construct(unsigned int subnets)
    {
        fabric_plan plan = plan_of(hcas);
        plan.subnets = subnets;
        fabric_construct(memory.get(), &plan);
        for (unsigned int i = 0; i < hcas; ++i)
            fabric_set_link(memory.get(), i, true);
    }
    struct fabric* f() { return memory.get(); }

    // Sends an SMP to the switch; the answer is in mad.
    bool ask_switch(std::array<std::uint8_t, 256>& mad, unsigned int ingress = 0)
    {
        fabric_headers h = smp_headers();
        return fabric_switch_mad(f(), ingress, &h, mad.data(), &route) && route.hcas == std::uint64_t(1) << ingress;
    }
    bool set_on_switch(std::uint16_t attribute, std::uint32_t modifier, const std::array<std::uint8_t, 64>& data,
                       unsigned int ingress = 0)
    {
        auto mad = directed(Method::set, attribute, modifier, {});
        std::memcpy(mad.data() + 64, data.data(), 64);
        return ask_switch(mad, ingress);
    }
    // Sets the state of an HCA's port, with its LID. Returns the events.
    unsigned int set_hca_state(unsigned int hca, std::uint16_t lid, PortState state)
    {
        unsigned int events = 0;
        MadBytes mad = directed(Method::set, port_info, 0, {}), reply{};
        store<std::uint64_t>(mad.data() + 64 + 8, 0xfe80000000000000);
        store(mad.data() + 64 + 16, lid);
        store<std::uint16_t>(mad.data() + 64 + 18, 1);
        mad[64 + 32] = static_cast<std::uint8_t>(state);
        EXPECT_TRUE(fabric_hca_mad(f(), hca, mad.data(), reply.data(), &events));
        return events;
    }
    // Same for the switch's port towards it.
    void set_switch_state(unsigned int hca, PortState state)
    {
        std::array<std::uint8_t, 64> data{};
        data[32] = static_cast<std::uint8_t>(state);
        store<std::uint64_t>(data.data() + 8, 0xfe80000000000000);
        EXPECT_TRUE(set_on_switch(port_info, hca + 1, data, hca));
    }
    // Configures the port of an HCA, and of the switch towards it, as a subnet manager does.
    unsigned int activate(unsigned int hca, std::uint16_t lid)
    {
        unsigned int all = 0;
        for (const PortState state : {PortState::armed, PortState::active}) {
            all |= set_hca_state(hca, lid, state);
            set_switch_state(hca, state);
        }
        std::array<std::uint8_t, 64> table{};
        table.fill(Switch::no_port);
        for (unsigned int i = 0; i <= hca; ++i)
            table[i + 1] = static_cast<std::uint8_t>(i + 1);
        EXPECT_TRUE(set_on_switch(linear_table, 0, table, hca));
        EXPECT_TRUE(set_on_switch(switch_info, 0, forwarding_top(), hca));
        return all;
    }

    FabricMemory memory;
    fabric_route route{};
};

} // namespace soft_ib
