// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The performance management agents (IBA 16.1) of HCAs and switches: port counters of 32 and 64 bits, and samples of
// them.
#include <algorithm>
#include <cstring>

#include "node.hpp"

namespace soft_ib {

namespace {

enum PerformanceAttribute : std::uint16_t {
    class_port_info = 0x0001,
    port_samples_control = 0x0010,
    port_samples_result = 0x0011,
    port_counters = 0x0012,
    port_counters_extended = 0x001d
};
constexpr unsigned int data_bytes = 192;
constexpr std::uint16_t extended_width_supported = 1 << 9;

std::uint32_t saturated(std::uint64_t value)
{
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, 0xffffffff));
}

void write_counters(const PortCounters& counters, std::uint8_t* data)
{
    std::memset(data + 4, 0, data_bytes - 4);
    data[7] = static_cast<std::uint8_t>(std::min<std::uint64_t>(counters.link_downed, 0xff));
    store(data + 24, saturated(counters.sent_words));
    store(data + 28, saturated(counters.received_words));
    store(data + 32, saturated(counters.sent_frames));
    store(data + 36, saturated(counters.received_frames));
}

void write_extended(const PortCounters& counters, std::uint8_t* data)
{
    std::memset(data + 4, 0, data_bytes - 4);
    store(data + 8, counters.sent_words);
    store(data + 16, counters.received_words);
    store(data + 24, counters.sent_frames);
    store(data + 32, counters.received_frames);
    store(data + 40, counters.sent_unicast);
    store(data + 48, counters.received_unicast);
    store(data + 56, counters.sent_multicast);
    store(data + 64, counters.received_multicast);
}

// Counters that a Set clears, by their bits in CounterSelect (IBA 16.1.3.5, 16.1.4.11). Both attributes show the same
// counters of data and packets.
struct Selectable {
    unsigned int bit;
    std::uint64_t PortCounters::*counter;
};
constexpr Selectable in_counters[] = {{2, &PortCounters::link_downed},
                                      {12, &PortCounters::sent_words},
                                      {13, &PortCounters::received_words},
                                      {14, &PortCounters::sent_frames},
                                      {15, &PortCounters::received_frames}};
constexpr Selectable in_extended[] = {{0, &PortCounters::sent_words},     {1, &PortCounters::received_words},
                                      {2, &PortCounters::sent_frames},    {3, &PortCounters::received_frames},
                                      {4, &PortCounters::sent_unicast},   {5, &PortCounters::received_unicast},
                                      {6, &PortCounters::sent_multicast}, {7, &PortCounters::received_multicast}};

template <std::size_t count>
void clear(PortCounters& counters, const Selectable (&all)[count], std::uint16_t select)
{
    for (const Selectable& each : all)
        if (select >> each.bit & 1)
            counters.*each.counter = 0;
}

// A tick is ten times the time of a bit at 2.5 Gb/s, 4 ns, times this value and one: a microsecond.
constexpr std::uint8_t tick = 249;
constexpr std::uint64_t tick_ns = 4 * (tick + 1);
constexpr std::uint8_t counters_of_32_bits = 4;

// Quantity that a value of CounterSelect stands for; no packet ever waits for credits (PortXmitWait). 0: no quantity.
std::uint64_t quantity(const PortCounters& counters, std::uint16_t select)
{
    switch (select) {
    case 1:
        return counters.sent_words;
    case 2:
        return counters.received_words;
    case 3:
        return counters.sent_frames;
    case 4:
        return counters.received_frames;
    default:
        return 0;
    }
}

void start_sampling(Sampling& sampling, const std::uint8_t* data, std::uint64_t now)
{
    sampling.status = SampleStatus::waiting;
    sampling.port = data[1];
    sampling.start = load<std::uint32_t>(data + 28);
    sampling.interval = load<std::uint32_t>(data + 32);
    sampling.tag = load<std::uint16_t>(data + 36);
    for (unsigned int i = 0; i < Sampling::count; ++i) {
        sampling.select[i] = load<std::uint16_t>(data + 38 + 2 * i);
        sampling.values[i] = 0;
    }
    sampling.begin_ns = now + sampling.start * tick_ns;
    sampling.end_ns = sampling.begin_ns + sampling.interval * tick_ns;
}

void write_samples_control(const Sampling& sampling, std::uint8_t* data)
{
    std::memset(data + 2, 0, data_bytes - 2);
    data[2] = tick;
    data[3] = counters_of_32_bits;
    // Each counter takes any of the mandatory quantities: three bits for each, in fields of ten and of five.
    store<std::uint32_t>(data + 4, 0b001001001001001001001001001001);
    store<std::uint16_t>(data + 8, 0b001001001001001);
    data[11] = static_cast<std::uint8_t>(sampling.status);
    store(data + 28, sampling.start);
    store(data + 32, sampling.interval);
    store(data + 36, sampling.tag);
    for (unsigned int i = 0; i < Sampling::count; ++i)
        store(data + 38 + 2 * i, sampling.select[i]);
}

void write_samples_result(const Sampling& sampling, std::uint8_t* data)
{
    std::memset(data, 0, data_bytes);
    store(data, sampling.tag);
    store(data + 2, static_cast<std::uint16_t>(sampling.status));
    for (unsigned int i = 0; sampling.status == SampleStatus::done && i < Sampling::count; ++i)
        store(data + 4 + 4 * i, saturated(sampling.values[i]));
}

// Counts from now on, or until now, by the difference of two values of a counter.
void subtract(Sampling& sampling, const PortCounters& counters)
{
    for (unsigned int i = 0; i < Sampling::count; ++i)
        sampling.values[i] -= quantity(counters, sampling.select[i]);
}
void add(Sampling& sampling, const PortCounters& counters)
{
    for (unsigned int i = 0; i < Sampling::count; ++i)
        sampling.values[i] += quantity(counters, sampling.select[i]);
}

// A node's ports, from the number first on, and its one sampling mechanism.
struct Agent {
    Port* ports;
    unsigned int first, count;
    Sampling& sampling;

    bool has(unsigned int number) const { return number >= first && number < first + count; }
    Port& port(unsigned int number) const { return ports[number - first]; }
};
Agent agent_of(Hca& hca) { return {&hca.port, 1, 1, hca.sampling}; }
Agent agent_of(Switch& node) { return {node.ports, 0, node.port_count + 1U, node.sampling}; }

std::uint16_t access_counters(const Agent& agent, Mad mad, bool set)
{
    const unsigned int number = mad.data()[1];
    if (!agent.has(number))
        return Mad::invalid_value;
    PortCounters& counters = agent.port(number).counters;
    if (set) {
        const bool sampled = agent.sampling.status == SampleStatus::running && agent.sampling.port == number;
        const auto select = load<std::uint16_t>(mad.data() + 2);
        // A sample in progress goes on.
        if (sampled)
            add(agent.sampling, counters);
        if (mad.attribute() == port_counters)
            clear(counters, in_counters, select);
        else
            clear(counters, in_extended, select);
        if (sampled)
            subtract(agent.sampling, counters);
    }
    if (mad.attribute() == port_counters)
        write_counters(counters, mad.data());
    else
        write_extended(counters, mad.data());
    return 0;
}

// The attribute modifier is the number of the sampling mechanism.
std::uint16_t access_samples_control(const Agent& agent, Mad mad, bool set, std::uint64_t now)
{
    if (mad.modifier() || !agent.has(mad.data()[1]))
        return Mad::invalid_value;
    // A sample in progress is not interrupted.
    if (set && agent.sampling.status == SampleStatus::done)
        start_sampling(agent.sampling, mad.data(), now);
    write_samples_control(agent.sampling, mad.data());
    return 0;
}

// Returns the status.
std::uint16_t access(const Agent& agent, Mad mad, bool set, std::uint64_t now)
{
    std::uint8_t* data = mad.data();
    if (!mad.is_version_1())
        return Mad::unsupported_class;
    switch (mad.attribute()) {
    case class_port_info:
        std::memset(data, 0, data_bytes);
        data[0] = data[1] = 1;
        store(data + 2, extended_width_supported);
        data[7] = 18;
        return 0;
    case port_counters:
    case port_counters_extended:
        return access_counters(agent, mad, set);
    case port_samples_control:
        return access_samples_control(agent, mad, set, now);
    case port_samples_result:
        if (set)
            return Mad::unsupported_method_attribute;
        if (mad.modifier())
            return Mad::invalid_value;
        write_samples_result(agent.sampling, data);
        return 0;
    default:
        return Mad::unsupported_method_attribute;
    }
}

bool answer(const Agent& agent, Mad mad, std::uint64_t now)
{
    const bool set = mad.method() == Method::set;
    if (!set && mad.method() != Method::get)
        return false;
    const std::uint16_t status = access(agent, mad, set, now);
    mad.set_method(Method::response);
    mad.set_status(status);
    return true;
}

std::uint64_t sample(const Agent& agent, std::uint64_t now)
{
    Sampling& sampling = agent.sampling;
    if (sampling.status == SampleStatus::waiting && now >= sampling.begin_ns) {
        sampling.status = SampleStatus::running;
        subtract(sampling, agent.port(sampling.port).counters);
    }
    if (sampling.status == SampleStatus::running && now >= sampling.end_ns) {
        sampling.status = SampleStatus::done;
        add(sampling, agent.port(sampling.port).counters);
    }
    switch (sampling.status) {
    case SampleStatus::waiting:
        return sampling.begin_ns;
    case SampleStatus::running:
        return sampling.end_ns;
    default:
        return never;
    }
}

} // namespace

bool answer_performance(Hca& hca, Mad mad, std::uint64_t now) { return answer(agent_of(hca), mad, now); }
bool answer_performance(Switch& node, Mad mad, std::uint64_t now) { return answer(agent_of(node), mad, now); }
std::uint64_t sample(Hca& hca, std::uint64_t now) { return sample(agent_of(hca), now); }
std::uint64_t sample(Switch& node, std::uint64_t now) { return sample(agent_of(node), now); }

} // namespace soft_ib
