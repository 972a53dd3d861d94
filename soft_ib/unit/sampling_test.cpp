// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Samples of port counters (IBA 16.1.3.2). HCA i has LID i + 1; a tick is a microsecond.
#include "fabric_fixture.hpp"

namespace soft_ib {
namespace {

constexpr std::uint16_t samples_control = 0x10, samples_result = 0x11, port_counters = 0x12;

class SamplingTest : public FabricTest {
protected:
    void SetUp() override
    {
        FabricTest::SetUp();
        activate(0, 1);
        activate(1, 2);
        fabric_sample(f(), us(1000));
    }
    static constexpr std::uint64_t us(std::uint64_t ticks) { return 1000 * ticks; }
    std::uint16_t ask(MadBytes& mad)
    {
        unsigned int events = 0;
        MadBytes reply{};
        EXPECT_TRUE(fabric_hca_mad(f(), 0, mad.data(), reply.data(), &events));
        mad = reply;
        return load<std::uint16_t>(mad.data() + 4);
    }
    // Data and packets, sent and received; the last of the counters has no such quantity.
    MadBytes control(std::uint32_t start, std::uint32_t interval, std::uint8_t port = 1)
    {
        MadBytes mad = performance(Method::set, samples_control, port);
        store(mad.data() + 64 + 28, start);
        store(mad.data() + 64 + 32, interval);
        store<std::uint16_t>(mad.data() + 64 + 36, 0x4711);
        const std::uint16_t selects[] = {1, 2, 3, 4, 0x1234};
        for (unsigned int i = 0; i < std::size(selects); ++i)
            store(mad.data() + 64 + 38 + 2 * i, selects[i]);
        return mad;
    }
    unsigned int status()
    {
        MadBytes mad = performance(Method::get, samples_result, 0);
        EXPECT_EQ(ask(mad), 0);
        EXPECT_EQ(load<std::uint16_t>(mad.data() + 64), 0x4711) << "the tag";
        return load<std::uint16_t>(mad.data() + 64 + 2);
    }
    std::uint32_t value(unsigned int counter)
    {
        MadBytes mad = performance(Method::get, samples_result, 0);
        EXPECT_EQ(ask(mad), 0);
        return load<std::uint32_t>(mad.data() + 64 + 4 + 4 * counter);
    }
    void send(unsigned int count)
    {
        const fabric_headers h = datagram(1, 2);
        for (unsigned int i = 0; i < count; ++i)
            fabric_route_frame(f(), 0, &h);
    }
};

TEST_F(SamplingTest, agent_describes_its_mechanism)
{
    MadBytes mad = performance(Method::get, samples_control, 1);
    ASSERT_EQ(ask(mad), 0);
    EXPECT_EQ(mad[64 + 1], 1);
    EXPECT_EQ((mad[64 + 2] + 1) * 4, 1000) << "nanoseconds of a tick";
    EXPECT_EQ(mad[64 + 3], 4) << "counters of 32 bits";
    EXPECT_EQ(load<std::uint32_t>(mad.data() + 64 + 4), 0x09249249U) << "counters 0 to 9 take mandatory quantities";
    EXPECT_EQ(load<std::uint16_t>(mad.data() + 64 + 8), 0x1249U);
    EXPECT_EQ(mad[64 + 10], 0) << "one mechanism";
    EXPECT_EQ(mad[64 + 11], 0) << "done";
}

TEST_F(SamplingTest, frames_of_the_interval_are_counted)
{
    MadBytes mad = control(100, 200);
    ASSERT_EQ(ask(mad), 0);
    EXPECT_EQ(mad[64 + 11], 1) << "waiting";
    EXPECT_EQ(fabric_sample(f(), us(1000)), us(100));
    send(1);
    EXPECT_EQ(fabric_sample(f(), us(1099)), us(1));
    EXPECT_EQ(status(), 1U);
    EXPECT_EQ(fabric_sample(f(), us(1100)), us(200));
    EXPECT_EQ(status(), 2U);
    send(3);
    EXPECT_EQ(value(2), 0U) << "not before it is done";
    EXPECT_EQ(fabric_sample(f(), us(1300)), 0U);
    send(5);
    EXPECT_EQ(status(), 0U);
    EXPECT_EQ(value(2), 3U);
    EXPECT_EQ(value(3), 0U);
    const fabric_headers h = datagram(1, 2);
    EXPECT_EQ(value(0), 3 * words(h));
    EXPECT_EQ(value(4), 0U);
    mad = performance(Method::get, samples_control, 1);
    ASSERT_EQ(ask(mad), 0);
    EXPECT_EQ(load<std::uint32_t>(mad.data() + 64 + 28), 100U);
    EXPECT_EQ(load<std::uint32_t>(mad.data() + 64 + 32), 200U);
    EXPECT_EQ(load<std::uint16_t>(mad.data() + 64 + 38 + 2 * 4), 0x1234);
}

TEST_F(SamplingTest, late_timer_ends_a_whole_sample)
{
    MadBytes mad = control(100, 200);
    ASSERT_EQ(ask(mad), 0);
    EXPECT_EQ(fabric_sample(f(), us(5000)), 0U);
    EXPECT_EQ(status(), 0U);
    EXPECT_EQ(value(2), 0U);
}

TEST_F(SamplingTest, sample_in_progress_is_not_interrupted)
{
    MadBytes mad = control(0, 200);
    ASSERT_EQ(ask(mad), 0);
    fabric_sample(f(), us(1000));
    send(2);
    mad = control(0, 900);
    ASSERT_EQ(ask(mad), 0);
    EXPECT_EQ(load<std::uint32_t>(mad.data() + 64 + 32), 200U);
    // Nor by a cleared counter, nor by one that is not.
    for (const std::uint16_t select : {1 << 14, 1 << 15}) {
        mad = performance(Method::set, port_counters, 1);
        store(mad.data() + 64 + 2, select);
        ASSERT_EQ(ask(mad), 0);
    }
    send(1);
    fabric_sample(f(), us(1200));
    EXPECT_EQ(status(), 0U);
    EXPECT_EQ(value(2), 3U);
}

TEST_F(SamplingTest, counters_of_a_sample_stop_at_their_maximum)
{
    MadBytes mad = control(0, 200);
    ASSERT_EQ(ask(mad), 0);
    fabric_sample(f(), us(1000));
    fabric_headers h = datagram(1, 2);
    h.payload_bytes = 1U << 31;
    for (unsigned int i = 0; i < 9; ++i)
        fabric_route_frame(f(), 0, &h);
    fabric_sample(f(), us(1200));
    EXPECT_EQ(value(0), 0xffffffffU) << "more than 2^32 words";
    EXPECT_EQ(value(2), 9U);
}

TEST_F(SamplingTest, another_hca_takes_no_sample)
{
    MadBytes mad = control(0, 200);
    ASSERT_EQ(ask(mad), 0);
    fabric_sample(f(), us(1000));
    fabric_renew_hca(f(), 0);
    EXPECT_EQ(fabric_sample(f(), us(1001)), 0U);
}

TEST_F(SamplingTest, wrong_requests_get_a_status)
{
    MadBytes mad = control(0, 1, 2);
    EXPECT_EQ(ask(mad), Mad::invalid_value) << "an HCA has one port";
    mad = control(0, 1);
    mad[23] = 1;
    EXPECT_EQ(ask(mad), Mad::invalid_value) << "there is no second mechanism";
    mad = performance(Method::set, samples_result, 0);
    EXPECT_EQ(ask(mad), Mad::unsupported_method_attribute);
    // Optional attributes: PortRcvErrorDetails, PortSamplesResultExtended.
    for (const std::uint16_t attribute : {0x15, 0x1e}) {
        mad = performance(Method::get, attribute, 1);
        EXPECT_EQ(ask(mad), Mad::unsupported_method_attribute);
    }
    EXPECT_EQ(fabric_sample(f(), us(1000)), 0U);
}

TEST_F(SamplingTest, switch_samples_one_of_its_ports)
{
    MadBytes mad = control(0, 200, 2);
    fabric_headers h = gmp_headers(1, 7);
    ASSERT_TRUE(fabric_switch_mad(f(), 0, &h, mad.data(), &route));
    EXPECT_EQ(load<std::uint16_t>(mad.data() + 4), 0);
    fabric_sample(f(), us(1000));
    h = datagram(1, 2);
    for (unsigned int i = 0; i < 4; ++i)
        fabric_count_received(f(), 1, &h);
    fabric_sample(f(), us(1200));
    mad = performance(Method::get, samples_result, 0);
    h = gmp_headers(1, 7);
    ASSERT_TRUE(fabric_switch_mad(f(), 0, &h, mad.data(), &route));
    EXPECT_EQ(load<std::uint32_t>(mad.data() + 64 + 4 + 4 * 2), 4U) << "sent by port 2";
}

} // namespace
} // namespace soft_ib
