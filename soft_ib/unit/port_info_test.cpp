// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Set(PortInfo) and links: states, widths and speeds (IBA 14.2.5.6). HCA 1 is at port 2 of the switch; HCA 0 asks.
#include "fabric_fixture.hpp"

namespace soft_ib {
namespace {

class PortInfoTest : public FabricTest {
protected:
    static constexpr unsigned int hca = 1;
    static constexpr std::uint32_t port = hca + 1;
    using Data = std::array<std::uint8_t, 64>;

    void SetUp() override
    {
        FabricTest::SetUp();
        activate(0, 1);
        activate(hca, 2);
        // The subnet manager is at HCA 0.
        Data data = get(0);
        store<std::uint16_t>(data.data() + 16, 7);
        store<std::uint16_t>(data.data() + 18, 1);
        EXPECT_EQ(set(0, data), 0);
        while (fabric_switch_trap(f(), &h, trap.data(), &route)) {}
    }
    const fabric_port& at_hca() { return *fabric_hca_port(f(), hca); }
    Data get(std::uint32_t number)
    {
        MadBytes mad = directed(Method::get, port_info, number, {});
        EXPECT_TRUE(ask_switch(mad));
        Data data;
        std::memcpy(data.data(), mad.data() + 64, data.size());
        return data;
    }
    // PortInfo as ibportstate sets it: as read, with no change of states, width and speed.
    Data unchanged(std::uint32_t number)
    {
        Data data = get(number);
        data[29] = data[63] = 0;
        data[32] &= 0xf0;
        data[33] &= 0x0f;
        data[35] &= 0xf0;
        return data;
    }
    // Sets PortInfo of a port of the switch. Returns the status; the answer's attribute is in answer.
    std::uint16_t set(std::uint32_t number, const Data& data)
    {
        MadBytes mad = directed(Method::set, port_info, number, {});
        std::memcpy(mad.data() + 64, data.data(), data.size());
        EXPECT_TRUE(ask_switch(mad));
        std::memcpy(answer.data(), mad.data() + 64, answer.size());
        return load<std::uint16_t>(mad.data() + 4) & 0x7fff;
    }
    std::uint16_t set_physical(std::uint32_t number, std::uint8_t state)
    {
        Data data = unchanged(number);
        data[33] = static_cast<std::uint8_t>(state << 4);
        return set(number, data);
    }
    std::uint16_t set_enabled(std::uint32_t number, std::uint8_t widths, std::uint8_t speeds)
    {
        Data data = unchanged(number);
        data[29] = widths;
        data[35] = speeds;
        return set(number, data);
    }
    // Events of the HCA at that port, after all changes.
    unsigned int settle()
    {
        unsigned int all = 0, number = 0, events = 0;
        while (fabric_settle(f(), &number, &events)) {
            EXPECT_EQ(number, hca);
            all |= events;
        }
        EXPECT_FALSE(fabric_unsettled(f()));
        return all;
    }

    Data answer{};
    MadBytes trap{};
    fabric_headers h{};
};

TEST_F(PortInfoTest, disabled_port_takes_the_link_down_at_both_ends_after_its_answer)
{
    EXPECT_EQ(set_physical(port, disabled), 0);
    EXPECT_EQ(answer[32] & 0x0f, 1);
    EXPECT_EQ(answer[33] >> 4, disabled);
    EXPECT_EQ(at_hca().state, 4) << "the answer has not left yet";
    EXPECT_FALSE(fabric_switch_trap(f(), &h, trap.data(), &route));
    EXPECT_TRUE(fabric_unsettled(f()));
    EXPECT_EQ(settle(), unsigned(FABRIC_PORT_ERROR));
    EXPECT_EQ(at_hca().state, 1);
    EXPECT_EQ(at_hca().physical_state, polling);
    const Data info = get(port);
    EXPECT_EQ(info[32] & 0x0f, 1);
    EXPECT_EQ(info[33] >> 4, disabled);
    ASSERT_TRUE(fabric_switch_trap(f(), &h, trap.data(), &route));
    EXPECT_EQ(route.hcas, 1U) << "to the subnet manager";
    EXPECT_EQ(load<std::uint16_t>(trap.data() + 64 + 4), 128);
    EXPECT_FALSE(fabric_switch_trap(f(), &h, trap.data(), &route));
    auto of_switch = directed(Method::get, switch_info, 0, {});
    ASSERT_TRUE(ask_switch(of_switch));
    EXPECT_TRUE(of_switch[64 + 11] & 4) << "PortStateChange";
    fabric_set_link(f(), hca, false);
    fabric_set_link(f(), hca, true);
    EXPECT_EQ(at_hca().state, 1) << "another cable does not enable it";
    EXPECT_EQ(set_physical(port, polling), 0);
    EXPECT_EQ(settle(), 0U);
    EXPECT_EQ(at_hca().state, 2);
    EXPECT_EQ(at_hca().physical_state, link_up);
    EXPECT_EQ(get(port)[33] >> 4, link_up);
}

TEST_F(PortInfoTest, request_is_done_before_the_next_one)
{
    EXPECT_EQ(set_physical(port, disabled), 0);
    EXPECT_EQ(get(port)[33] >> 4, disabled);
    EXPECT_EQ(at_hca().state, 1);
    EXPECT_EQ(set_physical(port, polling), 0);
    EXPECT_EQ(settle(), unsigned(FABRIC_PORT_ERROR));
    EXPECT_EQ(at_hca().state, 2);
}

TEST_F(PortInfoTest, error_of_a_port_is_reported_before_it_is_active_again)
{
    EXPECT_EQ(set_physical(port, polling), 0);
    EXPECT_EQ(get(port)[32] & 0x0f, 2) << "done";
    EXPECT_EQ(set_hca_state(hca, 2, PortState::armed), unsigned(FABRIC_PORT_ERROR));
    EXPECT_EQ(set_hca_state(hca, 2, PortState::active), unsigned(FABRIC_PORT_ACTIVE));
    EXPECT_EQ(settle(), 0U) << "it is reported once";
    // By a MAD for an agent of its own, too.
    activate(hca, 2);
    EXPECT_EQ(set_physical(port, polling), 0);
    EXPECT_EQ(get(port)[32] & 0x0f, 2);
    MadBytes mad = directed(Method::get, 0x20, 0, {}), reply{};
    unsigned int events = 0;
    EXPECT_FALSE(fabric_hca_mad(f(), hca, mad.data(), reply.data(), &events)) << "SMInfo";
    EXPECT_EQ(events, unsigned(FABRIC_PORT_ERROR));
}

TEST_F(PortInfoTest, another_hca_does_not_carry_out_requests_to_the_one_before)
{
    MadBytes mad = directed(Method::set, port_info, 0, {}), reply{};
    unsigned int events = 0;
    store(mad.data() + 64 + 8, default_subnet_prefix);
    store<std::uint16_t>(mad.data() + 64 + 16, 2);
    store<std::uint16_t>(mad.data() + 64 + 18, 1);
    mad[64 + 33] = polling << 4;
    ASSERT_TRUE(fabric_hca_mad(f(), hca, mad.data(), reply.data(), &events));
    fabric_renew_hca(f(), hca);
    fabric_set_link(f(), hca, true);
    const std::uint32_t downs = static_cast<const Port&>(at_hca()).counters.link_downed;
    EXPECT_EQ(settle(), 0U);
    EXPECT_EQ(at_hca().state, 2);
    EXPECT_EQ(static_cast<const Port&>(at_hca()).counters.link_downed, downs);
}

TEST_F(PortInfoTest, polling_or_down_brings_an_active_link_up_anew)
{
    EXPECT_EQ(set_physical(port, polling), 0);
    EXPECT_EQ(settle(), unsigned(FABRIC_PORT_ERROR));
    EXPECT_EQ(at_hca().state, 2);
    EXPECT_EQ(get(port)[32] & 0x0f, 2);
    activate(hca, 2);
    Data data = unchanged(port);
    data[32] |= 1;
    EXPECT_EQ(set(port, data), 0);
    EXPECT_EQ(settle(), unsigned(FABRIC_PORT_ERROR));
    EXPECT_EQ(at_hca().state, 2);
}

TEST_F(PortInfoTest, hca_carries_out_what_its_own_port_is_told)
{
    MadBytes mad = directed(Method::set, port_info, 0, {}), reply{};
    unsigned int events = 0;
    store(mad.data() + 64 + 8, default_subnet_prefix);
    store<std::uint16_t>(mad.data() + 64 + 16, 2);
    store<std::uint16_t>(mad.data() + 64 + 18, 1);
    mad[64 + 33] = disabled << 4;
    ASSERT_TRUE(fabric_hca_mad(f(), hca, mad.data(), reply.data(), &events));
    EXPECT_EQ(load<std::uint16_t>(reply.data() + 4) & 0x7fff, 0);
    EXPECT_EQ(at_hca().state, 4);
    EXPECT_EQ(settle(), unsigned(FABRIC_PORT_ERROR));
    EXPECT_EQ(at_hca().physical_state, disabled);
    EXPECT_EQ(get(port)[33] >> 4, polling);
    fabric_set_link(f(), hca, false);
    fabric_renew_hca(f(), hca);
    fabric_set_link(f(), hca, true);
    EXPECT_EQ(at_hca().state, 2) << "another HCA is not disabled";
}

TEST_F(PortInfoTest, width_and_speed_are_negotiated_when_the_link_comes_up)
{
    EXPECT_EQ(at_hca().active_width, width_4x);
    EXPECT_EQ(at_hca().active_speed, speed_qdr);
    EXPECT_EQ(set_enabled(port, width_1x, speed_sdr | speed_ddr), 0);
    EXPECT_EQ(answer[29], width_1x);
    EXPECT_EQ(answer[35] & 0x0f, speed_sdr | speed_ddr);
    EXPECT_FALSE(fabric_unsettled(f()));
    EXPECT_EQ(at_hca().active_width, width_4x);
    EXPECT_EQ(set_physical(port, polling), 0);
    settle();
    EXPECT_EQ(at_hca().active_width, width_1x);
    EXPECT_EQ(at_hca().active_speed, speed_ddr);
    EXPECT_EQ(get(port)[31], width_1x);
    EXPECT_EQ(get(port)[35] >> 4, speed_ddr);
    // The values for all supported ones.
    EXPECT_EQ(set_enabled(port, 0xff, 0x0f), 0);
    EXPECT_EQ(answer[29], width_1x | width_4x);
    EXPECT_EQ(answer[35] & 0x0f, 7);
    EXPECT_EQ(set_physical(port, polling), 0);
    settle();
    EXPECT_EQ(at_hca().active_width, width_4x);
    EXPECT_EQ(at_hca().active_speed, speed_qdr);
}

TEST_F(PortInfoTest, extended_speeds_are_negotiated)
{
    const std::uint8_t fdr = 1 << 4, edr = 2 << 4, base = speed_sdr | speed_ddr | speed_qdr;
    fabric_plan plan = plan_of(hcas);
    plan.speeds = base | fdr | edr;
    fabric_construct(f(), &plan);
    for (unsigned int i = 0; i < hcas; ++i)
        fabric_set_link(f(), i, true);
    EXPECT_EQ(at_hca().active_speed, edr);
    EXPECT_TRUE(at_hca().capabilities & 1 << 14);
    Data info = get(port);
    EXPECT_EQ(info[32] >> 4, base);
    EXPECT_EQ(info[35], speed_qdr << 4 | base);
    EXPECT_EQ(info[62], 2 << 4 | 3);
    EXPECT_EQ(info[63], 3);
    const struct {
        std::uint8_t set, enabled, speed;
    } steps[] = {{1, 1, fdr}, {0, 1, fdr}, {30, 0, speed_qdr}, {31, 3, edr}};
    for (const auto& step : steps) {
        info = unchanged(port);
        info[63] = step.set;
        EXPECT_EQ(set(port, info), 0) << int(step.set);
        EXPECT_EQ(answer[63], step.enabled) << int(step.set);
        EXPECT_EQ(set_physical(port, polling), 0);
        settle();
        EXPECT_EQ(at_hca().active_speed, step.speed) << int(step.set);
    }
    EXPECT_EQ(get(port)[62] >> 4, 2);
    info = unchanged(port);
    info[63] = 4;
    EXPECT_EQ(set(port, info), Mad::invalid_value) << "HDR";
    fabric_limit_link(f(), hca, 0, base);
    EXPECT_EQ(at_hca().active_speed, speed_qdr);
    EXPECT_EQ(get(port)[62] >> 4, 0);
    EXPECT_FALSE(at_hca().capabilities & 1 << 14) << "IsExtendedSpeedsSupported without such a speed";
    const std::uint32_t others = at_hca().capabilities;
    fabric_limit_link(f(), hca, 0, base | fdr);
    EXPECT_EQ(at_hca().capabilities, others | 1 << 14);
}

TEST_F(PortInfoTest, link_without_a_common_width_or_speed_stays_down)
{
    EXPECT_EQ(fabric_limit_link(f(), hca, width_1x, 0), unsigned(FABRIC_PORT_ERROR));
    EXPECT_EQ(at_hca().state, 2);
    EXPECT_EQ(at_hca().active_width, width_1x);
    EXPECT_EQ(at_hca().active_speed, speed_qdr);
    EXPECT_EQ(set_enabled(port, width_4x, 0), 0);
    EXPECT_EQ(set_physical(port, polling), 0);
    settle();
    EXPECT_EQ(at_hca().state, 1);
    EXPECT_EQ(at_hca().physical_state, polling);
    fabric_limit_link(f(), hca, width_1x | width_4x, speed_sdr);
    EXPECT_EQ(at_hca().state, 2);
    EXPECT_EQ(at_hca().active_width, width_4x);
    EXPECT_EQ(at_hca().active_speed, speed_sdr);
    fabric_set_link(f(), hca, false);
    fabric_renew_hca(f(), hca);
    fabric_set_link(f(), hca, true);
    EXPECT_EQ(at_hca().active_speed, speed_sdr) << "the slot is limited, not the HCA";
}

TEST_F(PortInfoTest, sleeping_ports_do_not_find_each_other)
{
    Data data = unchanged(port);
    data[33] = sleeping;
    EXPECT_EQ(set(port, data), 0);
    EXPECT_EQ(answer[33] & 0x0f, sleeping);
    EXPECT_FALSE(fabric_unsettled(f()));
    fabric_set_link(f(), hca, false);
    EXPECT_EQ(get(port)[33] >> 4, sleeping);
    fabric_set_link(f(), hca, true);
    EXPECT_EQ(at_hca().state, 2) << "the other end polls";
    MadBytes mad = directed(Method::set, port_info, 0, {}), reply{};
    unsigned int events = 0;
    store<std::uint16_t>(mad.data() + 64 + 16, 2);
    store<std::uint16_t>(mad.data() + 64 + 18, 1);
    mad[64 + 33] = sleeping << 4;
    ASSERT_TRUE(fabric_hca_mad(f(), hca, mad.data(), reply.data(), &events));
    settle();
    EXPECT_EQ(at_hca().state, 1);
    EXPECT_EQ(at_hca().physical_state, sleeping);
    EXPECT_EQ(set_physical(port, polling), 0);
    settle();
    EXPECT_EQ(at_hca().state, 2);
}

TEST_F(PortInfoTest, invalid_values_are_refused_and_change_nothing)
{
    const struct {
        unsigned int offset;
        std::uint8_t value;
        const char* reason;
    } wrong[] = {
        {32, 2, "PortState INIT"},
        {32, 5, "no PortState"},
        {32, 3, "ARMED of an ACTIVE port"},
        {33, 4 << 4, "PortPhysicalState training"},
        {33, 5 << 4, "PortPhysicalState LinkUp"},
        {33, 3, "no LinkDownDefaultState"},
        {29, 4, "LinkWidthEnabled 8x"},
        {29, 0x13, "LinkWidthEnabled with 2x"},
        {35, 8, "no LinkSpeedEnabled"},
        {63, 1, "LinkSpeedExtEnabled FDR"},
        {43, 2 << 4, "OperationalVLs of two lanes"},
    };
    for (const auto& one : wrong) {
        Data data = unchanged(port);
        data[one.offset] = static_cast<std::uint8_t>(data[one.offset] & (one.offset == 32 ? 0xf0 : 0)) | one.value;
        data[34] = 3;
        EXPECT_EQ(set(port, data), Mad::invalid_value) << one.reason;
        EXPECT_FALSE(fabric_unsettled(f())) << one.reason;
        EXPECT_EQ(get(port)[34] & 7, 0) << one.reason;
        EXPECT_EQ(at_hca().state, 4) << one.reason;
    }
    Data data = unchanged(port);
    data[32] |= 4;
    data[33] = polling << 4;
    EXPECT_EQ(set(port, data), Mad::invalid_value) << "ACTIVE and polling";
    for (const std::uint16_t lid : {0, 0xc000, 0xffff}) {
        data = unchanged(0);
        store(data.data() + 16, lid);
        EXPECT_EQ(set(0, data), Mad::invalid_value) << "LID " << lid;
    }
}

TEST_F(PortInfoTest, state_advances_step_by_step)
{
    settle();
    EXPECT_EQ(set_physical(port, polling), 0);
    settle();
    Data data = unchanged(port);
    data[32] |= 4;
    EXPECT_EQ(set(port, data), Mad::invalid_value) << "INIT to ACTIVE";
    fabric_set_link(f(), hca, false);
    data[32] = static_cast<std::uint8_t>((data[32] & 0xf0) | 3);
    EXPECT_EQ(set(port, data), Mad::invalid_value) << "DOWN to ARMED";
}

} // namespace
} // namespace soft_ib
