// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// PortInfo of the ports of HCAs and switches (IBA 14.2.5.6).
#include <cstring>

#include "node.hpp"

namespace soft_ib {

namespace {

// Values of LinkWidthEnabled, LinkSpeedEnabled and LinkSpeedExtEnabled that stand for all supported ones, and for no
// extended speed; 0 changes nothing.
constexpr std::uint8_t all_widths = 0xff, all_speeds = 0x0f, all_extended = 31, no_extended = 30;
// Speeds are bits of one mask: up to QDR, and the extended ones from FDR on.
constexpr unsigned int extended_shift = 4;
constexpr std::uint8_t base_speeds = 0x0f, speed_qdr = 4;

bool is_unicast(std::uint16_t lid) { return lid && lid < FABRIC_FIRST_MULTICAST_LID; }

// Components of a Set(PortInfo).
struct Request {
    PortState state;
    std::uint8_t physical_state, down_default, widths, speeds, extended, vls;
    std::uint16_t lid, sm_lid;

    explicit Request(const std::uint8_t* data)
        : state(static_cast<PortState>(data[32] & 0x0f)), physical_state(data[33] >> 4), down_default(data[33] & 0x0f),
          widths(data[29]), speeds(data[35] & 0x0f), extended(data[63] & 0x1f), vls(data[43] >> 4),
          lid(load<std::uint16_t>(data + 16)), sm_lid(load<std::uint16_t>(data + 18))
    {
    }
};

// The state changes of the port in one step (IBA 7.2.7). PortState 0 is no change.
bool may_become(const Port& port, PortState wanted)
{
    switch (wanted) {
    case PortState::none:
    case PortState::down:
        return true;
    case PortState::armed:
        return port.port_state() == PortState::initialise || port.port_state() == PortState::armed;
    case PortState::active:
        return port.port_state() == PortState::armed || port.active();
    default:
        return false;
    }
}

bool is_valid_extended(const Port& port, std::uint8_t speeds)
{
    return speeds == all_extended || speeds == no_extended || !(speeds & ~(port.speeds_supported >> extended_shift));
}

bool is_valid_link(const Port& port, const Request& request)
{
    const bool stays = request.state == PortState::armed || request.state == PortState::active;
    return may_become(port, request.state) && request.physical_state <= disabled &&
           !(stays && request.physical_state) && request.down_default <= polling &&
           (request.widths == all_widths || !(request.widths & ~port.widths_supported)) &&
           request.vls <= port.vls_supported &&
           (request.speeds == all_speeds || !(request.speeds & ~(port.speeds_supported & base_speeds))) &&
           is_valid_extended(port, request.extended);
}

// True if the request leaves the link as it is: up, with all widths and speeds that the port supports.
bool keeps_link(const Port& port, const Request& request)
{
    return request.state != PortState::down && !request.physical_state && request.down_default != sleeping &&
           (!request.widths || request.widths == all_widths || request.widths == port.widths_supported) &&
           (!request.speeds || request.speeds == all_speeds ||
            request.speeds == (port.speeds_supported & base_speeds)) &&
           (!request.extended || request.extended == all_extended ||
            request.extended == port.speeds_supported >> extended_shift);
}

bool is_valid(const Port& port, PortRole role, const Request& request)
{
    const bool has_lid = role == PortRole::own || role == PortRole::hca;
    if (has_lid && !(is_unicast(request.lid) && is_unicast(request.sm_lid)))
        return false;
    return role == PortRole::own ||
           (is_valid_link(port, request) && (role != PortRole::trunk || keeps_link(port, request)));
}

// Components that are not about the link. Returns the events caused.
unsigned int set_addresses(Port& port, const std::uint8_t* data)
{
    unsigned int events = 0;
    const auto prefix = load<std::uint64_t>(data + 8);
    const auto lid = load<std::uint16_t>(data + 16);
    const auto sm_lid = load<std::uint16_t>(data + 18);
    const std::uint8_t sm_sl = data[36] & 0x0f;
    if (prefix != port.subnet_prefix)
        events |= FABRIC_GID_CHANGE;
    if (lid != port.lid)
        events |= FABRIC_LID_CHANGE;
    if (sm_lid != port.sm_lid || sm_sl != port.sm_sl)
        events |= FABRIC_SM_CHANGE;
    if (data[51] & 0x80)
        events |= FABRIC_REREGISTER;
    port.subnet_prefix = prefix;
    port.lid = lid;
    port.sm_lid = sm_lid;
    port.sm_sl = sm_sl;
    port.lmc = data[34] & 0x07;
    port.subnet_timeout = data[51] & 0x1f;
    return events;
}

void set_speeds(Port& port, const Request& request)
{
    std::uint8_t base = port.speeds_enabled & base_speeds, extended = port.speeds_enabled & ~base_speeds;
    if (request.speeds)
        base = port.speeds_supported & (request.speeds == all_speeds ? base_speeds : request.speeds);
    if (request.extended == all_extended)
        extended = port.speeds_supported & ~base_speeds;
    else if (request.extended == no_extended)
        extended = 0;
    else if (request.extended)
        extended = static_cast<std::uint8_t>(request.extended << extended_shift);
    port.speeds_enabled = base | extended;
}

// A link that is to go down, or to be tried again, is so after the answer (fabric_settle()). Enabled widths and speeds
// take effect when the link comes up the next time.
unsigned int set_link(Port& port, const Request& request)
{
    if (request.widths)
        port.widths_enabled = request.widths == all_widths ? port.widths_supported : request.widths;
    set_speeds(port, request);
    if (request.vls)
        port.vls_operational = request.vls;
    if (request.down_default) {
        port.down_default = request.down_default;
        if (port.port_state() != PortState::down)
            port.down_state = request.down_default;
    }
    if (request.physical_state)
        port.down_state = request.physical_state;
    port.link_due |=
        request.physical_state || (request.state == PortState::down && port.port_state() != PortState::down);
    if (request.state == PortState::none || request.state == PortState::down)
        return 0;
    const bool was_active = port.active();
    port.set_port_state(request.state);
    if (port.active() == was_active)
        return 0;
    return was_active ? FABRIC_PORT_ERROR : FABRIC_PORT_ACTIVE;
}

} // namespace

std::uint16_t access_port_info(Port& port, PortRole role, bool set, const std::uint8_t* data, unsigned int& events)
{
    if (!set)
        return 0;
    const Request request(data);
    if (!is_valid(port, role, request))
        return Mad::invalid_value;
    events |= set_addresses(port, data);
    if (role != PortRole::own)
        events |= set_link(port, request);
    return 0;
}

void write_port_info(const Port& port, unsigned int local_port, std::uint8_t guid_count, std::uint8_t* data)
{
    const PortState state = port.link_due ? PortState::down : port.port_state();
    const std::uint8_t physical_state = port.link_due ? port.down_state : port.physical_state;
    std::memset(data, 0, smp_data_bytes);
    store(data + 8, port.subnet_prefix);
    store(data + 16, port.lid);
    store(data + 18, port.sm_lid);
    store(data + 20, port.capabilities);
    data[28] = static_cast<std::uint8_t>(local_port);
    data[29] = port.widths_enabled;
    data[30] = port.widths_supported;
    data[31] = port.active_width;
    data[32] = static_cast<std::uint8_t>(port.speeds_supported << 4 | static_cast<std::uint8_t>(state));
    data[33] = static_cast<std::uint8_t>(physical_state << 4 | port.down_default);
    data[34] = port.lmc;
    // Beside an extended speed, LinkSpeedActive has no meaning.
    const bool extended = port.active_speed > base_speeds;
    data[35] = static_cast<std::uint8_t>((extended ? speed_qdr : port.active_speed) << 4 |
                                         (port.speeds_enabled & base_speeds));
    data[36] = static_cast<std::uint8_t>(port.mtu << 4 | port.sm_sl);
    data[37] = static_cast<std::uint8_t>(port.vls_supported << 4);
    data[39] = data[40] = 8;
    data[41] = port.mtu;
    data[43] = static_cast<std::uint8_t>(port.vls_operational << 4);
    data[50] = guid_count;
    data[51] = port.subnet_timeout;
    data[52] = 16;
    data[62] = static_cast<std::uint8_t>((port.active_speed & ~base_speeds) | port.speeds_supported >> extended_shift);
    data[63] = port.speeds_enabled >> extended_shift;
}

} // namespace soft_ib
