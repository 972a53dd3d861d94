// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The performance management agents (IBA 16.1): port counters of 32 and 64 bits, of HCAs and of the switch.
#include <algorithm>
#include <cstring>

#include "node.hpp"

namespace soft_ib {

namespace {

enum PerformanceAttribute : std::uint16_t {
    class_port_info = 0x0001,
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
    data[7] = static_cast<std::uint8_t>(std::min<std::uint32_t>(counters.link_downed, 0xff));
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
    store(data + 40, counters.sent_frames - counters.sent_multicast);
    store(data + 48, counters.received_frames - counters.received_multicast);
    store(data + 56, counters.sent_multicast);
    store(data + 64, counters.received_multicast);
}

// ports[n] is port first + n.
bool answer(Port* ports, unsigned int first, unsigned int count, Mad mad)
{
    const bool set = mad.method() == Method::set;
    if (!set && mad.method() != Method::get)
        return false;
    std::uint8_t* data = mad.data();
    std::uint16_t status = 0;
    mad.set_method(Method::response);
    if (mad.attribute() == class_port_info) {
        std::memset(data, 0, data_bytes);
        data[0] = data[1] = 1;
        store(data + 2, extended_width_supported);
        data[7] = 18;
    } else if (mad.attribute() != port_counters && mad.attribute() != port_counters_extended) {
        status = Mad::unsupported_method_attribute;
    } else if (const unsigned int number = data[1]; number < first || number >= first + count) {
        status = Mad::invalid_value;
    } else {
        PortCounters& counters = ports[number - first].counters;
        if (set)
            counters = {};
        if (mad.attribute() == port_counters)
            write_counters(counters, data);
        else
            write_extended(counters, data);
    }
    mad.set_status(status);
    return true;
}

} // namespace

bool answer_performance(Hca& hca, Mad mad) { return answer(&hca.port, 1, 1, mad); }
bool answer_performance(Switch& node, Mad mad) { return answer(node.ports, 0, node.port_count + 1U, mad); }

} // namespace soft_ib
