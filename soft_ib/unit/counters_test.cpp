// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The choice of port counters that a Set of the performance management agent clears.
#include "fabric_fixture.hpp"

namespace soft_ib {
namespace {

constexpr std::uint16_t port_counters = 0x12, port_counters_extended = 0x1d;

// Counters of HCA 0, in the order of their bits: of PortCounters from bit 12 on, and the extended ones.
class CounterSelectTest : public FabricTest {
protected:
    void SetUp() override
    {
        FabricTest::SetUp();
        fabric_set_link(f(), 0, false);
        fabric_set_link(f(), 0, true);
        activate(0, 1);
        activate(1, 2);
        for (const std::uint16_t dlid : {2, 2, 0xc005}) {
            const fabric_headers sent = datagram(1, dlid);
            fabric_route_frame(f(), 0, &sent);
        }
        const fabric_headers received = datagram(2, 1);
        fabric_count_received(f(), 0, &received);
    }
    MadBytes ask(Method method, std::uint16_t attribute, std::uint16_t select)
    {
        MadBytes mad = performance(method, attribute, 1), reply{};
        store(mad.data() + 64 + 2, select);
        unsigned int events;
        EXPECT_TRUE(fabric_hca_mad(f(), 0, mad.data(), reply.data(), &events));
        EXPECT_EQ(load<std::uint16_t>(reply.data() + 4), 0);
        return reply;
    }
    std::array<std::uint32_t, 4> counters()
    {
        const MadBytes reply = ask(Method::get, port_counters, 0);
        std::array<std::uint32_t, 4> all;
        for (unsigned int i = 0; i < all.size(); ++i)
            all[i] = load<std::uint32_t>(reply.data() + 64 + 24 + 4 * i);
        return all;
    }
    std::array<std::uint64_t, 8> extended()
    {
        const MadBytes reply = ask(Method::get, port_counters_extended, 0);
        std::array<std::uint64_t, 8> all;
        for (unsigned int i = 0; i < all.size(); ++i)
            all[i] = load<std::uint64_t>(reply.data() + 64 + 8 + 8 * i);
        return all;
    }
    unsigned int link_downed() { return ask(Method::get, port_counters, 0)[64 + 7]; }
};

TEST_F(CounterSelectTest, set_clears_selected_counters_only)
{
    ASSERT_EQ(link_downed(), 1U);
    auto left = counters();
    ask(Method::set, port_counters, 0x0fff & ~(1 << 2));
    EXPECT_EQ(counters(), left) << "errors are cleared";
    EXPECT_EQ(link_downed(), 1U);
    ask(Method::set, port_counters, 1 << 2);
    EXPECT_EQ(link_downed(), 0U);
    for (unsigned int i = 0; i < left.size(); ++i) {
        EXPECT_NE(left[i], 0U) << i;
        left[i] = 0;
        ask(Method::set, port_counters, static_cast<std::uint16_t>(1 << (12 + i)));
        EXPECT_EQ(counters(), left) << i;
    }
    EXPECT_EQ(extended()[4], 2U) << "unicast packets are counted by themselves";
}

TEST_F(CounterSelectTest, set_clears_selected_extended_counters_only)
{
    auto left = extended();
    EXPECT_EQ(left[4], 2U);
    EXPECT_EQ(left[6], 1U);
    ask(Method::set, port_counters_extended, 0xff00);
    EXPECT_EQ(extended(), left);
    for (unsigned int i = 0; i < left.size(); ++i) {
        left[i] = 0;
        ask(Method::set, port_counters_extended, static_cast<std::uint16_t>(1 << i));
        EXPECT_EQ(extended(), left) << i;
    }
    EXPECT_EQ(link_downed(), 1U);
}

} // namespace
} // namespace soft_ib
