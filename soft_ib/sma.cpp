// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Subnet management agents of HCAs and switches (IBA 14.2), for OpenSM's Gets and Sets. Called for each SMP that
// arrives at its node; keeps no state of its own.
#include <cstring>

#include "node.hpp"

namespace soft_ib {

namespace {

enum SubnetAttribute : std::uint16_t {
    notice = 0x0002,
    node_description = 0x0010,
    node_info = 0x0011,
    switch_info = 0x0012,
    guid_info = 0x0014,
    port_info = 0x0015,
    pkey_table = 0x0016,
    sl_to_vl_table = 0x0017,
    vl_arbitration_table = 0x0018,
    linear_forwarding_table = 0x0019,
    multicast_forwarding_table = 0x001b,
    sm_info = 0x0020,
};

void respond(Mad mad, std::uint16_t status = 0)
{
    mad.set_method(Method::response);
    const bool directed = mad.management_class() == ManagementClass::subnet_directed;
    mad.set_status(static_cast<std::uint16_t>(status | (directed ? Mad::direction_bit : 0)));
}

// Answers a request of another base or class version (IBA 13.4.7).
bool refuse_version(Mad mad)
{
    respond(mad, Mad::unsupported_class);
    return true;
}

void write_description(const Node& node, std::uint8_t* data) { std::memcpy(data, node.description, smp_data_bytes); }

void write_node_info(const Node& node, unsigned int port, std::uint64_t port_guid, std::uint8_t* data)
{
    std::memset(data, 0, smp_data_bytes);
    data[0] = data[1] = 1;
    data[2] = static_cast<std::uint8_t>(node.type);
    data[3] = node.port_count;
    store(data + 4, node.guid);
    store(data + 12, node.guid);
    store(data + 20, port_guid);
    store<std::uint16_t>(data + 28, FABRIC_PKEYS);
    store<std::uint16_t>(data + 30, 1);
    data[36] = static_cast<std::uint8_t>(port);
    data[39] = 1;
}

// GUIDs of a port. Returns true if one changed. The first cannot be set.
bool access_guids(Port& port, bool set, std::uint8_t* data)
{
    bool changed = false;
    for (unsigned int i = 0; i < FABRIC_GUIDS; ++i) {
        std::uint64_t& guid = port.guids[i];
        const auto value = load<std::uint64_t>(data + 8 * i);
        if (set && i > 0 && value != guid) {
            guid = value;
            changed = true;
        }
        store(data + 8 * i, guid);
    }
    return changed;
}

constexpr unsigned int pkeys_per_block = 32;

// A block of P_Keys. Returns true if one changed.
bool access_pkeys(Port& port, unsigned int block, bool set, std::uint8_t* data)
{
    bool changed = false;
    for (unsigned int i = 0; i < pkeys_per_block; ++i) {
        std::uint16_t& pkey = port.pkeys[block * pkeys_per_block + i];
        const auto value = load<std::uint16_t>(data + 2 * i);
        if (set && value != pkey) {
            pkey = value;
            changed = true;
        }
        store(data + 2 * i, pkey);
    }
    return changed;
}

bool is_pkey_block(Mad mad) { return (mad.modifier() & 0xffff) < FABRIC_PKEYS / pkeys_per_block; }

void access_bytes(std::uint8_t* stored, unsigned int bytes, bool set, std::uint8_t* data)
{
    if (set)
        std::memcpy(stored, data, bytes);
    std::memset(data, 0, smp_data_bytes);
    std::memcpy(data, stored, bytes);
}

void access_switch_info(Switch& node, bool set, std::uint8_t* data)
{
    if (set) {
        node.forwarding_top = load<std::uint16_t>(data + 6);
        node.default_port = data[8];
        node.life_time = data[11] >> 3;
        // Writing a one clears the bit.
        if (data[11] & 1 << 2)
            node.port_state_change = false;
    }
    std::memset(data, 0, smp_data_bytes);
    store<std::uint16_t>(data + 0, Switch::unicast_lids);
    store<std::uint16_t>(data + 4, Switch::multicast_lids);
    store(data + 6, node.forwarding_top);
    data[8] = node.default_port;
    data[11] = static_cast<std::uint8_t>(node.life_time << 3 | (node.port_state_change ? 1 << 2 : 0));
    store<std::uint16_t>(data + 12, 1);
    store<std::uint16_t>(data + 14, FABRIC_PKEYS);
}

// Returns false if the block does not exist.
bool access_forwarding(Switch& node, std::uint32_t block, bool set, std::uint8_t* data)
{
    if (block >= Switch::unicast_lids / smp_data_bytes)
        return false;
    access_bytes(node.forwarding + block * smp_data_bytes, smp_data_bytes, set, data);
    return true;
}

// A block is 32 MLIDs, a position 16 ports.
bool access_multicast(Switch& node, std::uint32_t modifier, bool set, std::uint8_t* data)
{
    const unsigned int first = (modifier & 0x1ff) * 32, shift = (modifier >> 28) * 16;
    if (first + 32 > Switch::multicast_lids || shift >= 64)
        return false;
    for (unsigned int i = 0; i < 32; ++i) {
        std::uint64_t& ports = node.multicast[first + i];
        if (set) {
            const std::uint64_t mask = std::uint64_t(0xffff) << shift;
            ports = (ports & ~mask) | std::uint64_t(load<std::uint16_t>(data + 2 * i)) << shift;
        }
        store(data + 2 * i, static_cast<std::uint16_t>(ports >> shift));
    }
    return true;
}

// Attributes of HCA and switch ports. Returns false for other attributes.
bool answer_port_table(Port& port, Mad mad, bool set, unsigned int& events)
{
    switch (mad.attribute()) {
    case pkey_table:
        if (access_pkeys(port, mad.modifier() & 0xffff, set, mad.data()))
            events |= FABRIC_PKEY_CHANGE;
        return true;
    case sl_to_vl_table:
        access_bytes(port.sl_to_vl, sizeof(port.sl_to_vl), set, mad.data());
        return true;
    case vl_arbitration_table: {
        const unsigned int block = (mad.modifier() >> 16) - 1;
        access_bytes(port.vl_arbitration[block & 3], smp_data_bytes, set, mad.data());
        return true;
    }
    default:
        return false;
    }
}

// Attributes of a switch that each of its ports has. Returns the status of the response.
std::uint16_t answer_switch_port(Switch& node, Mad mad, bool set, unsigned int ingress)
{
    const bool pkeys = mad.attribute() == pkey_table;
    if (pkeys && !is_pkey_block(mad))
        return Mad::invalid_value;
    const unsigned int number = pkeys ? mad.modifier() >> 16 : mad.modifier() & 0xff;
    if (number > node.port_count)
        return Mad::invalid_value;
    Port& port = node.ports[number];
    unsigned int ignored = 0;
    if (mad.attribute() != port_info) {
        answer_port_table(port, mad, set, ignored);
        return 0;
    }
    const PortRole role = !number                                        ? PortRole::own
                          : node.peers[number].kind == Peer::Kind::trunk ? PortRole::trunk
                                                                         : PortRole::external;
    const std::uint16_t status = access_port_info(port, role, set, mad.data(), ignored);
    node.links_due |= port.link_due;
    write_port_info(port, ingress, 1, mad.data());
    return status;
}

} // namespace

bool answer_smp(Hca& hca, Mad mad, unsigned int& events)
{
    events = 0;
    const bool set = mad.method() == Method::set;
    if (!set && mad.method() != Method::get)
        return false;
    if (!mad.is_version_1())
        return refuse_version(mad);
    std::uint16_t status = 0;
    switch (mad.attribute()) {
    // The subnet manager, if one runs here, answers itself.
    case sm_info:
        return false;
    case node_description:
        write_description(hca, mad.data());
        break;
    case node_info:
        write_node_info(hca, 1, hca.port.guids[0], mad.data());
        break;
    case guid_info:
        // There is one block.
        if (mad.modifier() != 0)
            status = Mad::invalid_value;
        else if (access_guids(hca.port, set, mad.data()))
            events |= FABRIC_GID_CHANGE;
        break;
    case port_info:
        status = access_port_info(hca.port, PortRole::hca, set, mad.data(), events);
        hca.links_due |= hca.port.link_due;
        write_port_info(hca.port, 1, FABRIC_GUIDS, mad.data());
        break;
    case pkey_table:
        if (!is_pkey_block(mad)) {
            status = Mad::invalid_value;
            break;
        }
        [[fallthrough]];
    default:
        if (!answer_port_table(hca.port, mad, set, events))
            status = Mad::unsupported_method_attribute;
    }
    respond(mad, status);
    return true;
}

bool answer_smp(Switch& node, Mad mad, unsigned int ingress)
{
    const bool set = mad.method() == Method::set;
    if (!set && mad.method() != Method::get)
        return false;
    if (!mad.is_version_1())
        return refuse_version(mad);
    std::uint16_t status = 0;
    switch (mad.attribute()) {
    case node_description:
        write_description(node, mad.data());
        break;
    case node_info:
        write_node_info(node, ingress, node.guid, mad.data());
        break;
    case switch_info:
        access_switch_info(node, set, mad.data());
        break;
    case guid_info:
        std::memset(mad.data(), 0, smp_data_bytes);
        store(mad.data(), node.guid);
        break;
    case linear_forwarding_table:
        if (!access_forwarding(node, mad.modifier(), set, mad.data()))
            status = Mad::invalid_value;
        break;
    case multicast_forwarding_table:
        if (!access_multicast(node, mad.modifier(), set, mad.data()))
            status = Mad::invalid_value;
        break;
    case port_info:
    case pkey_table:
    case sl_to_vl_table:
    case vl_arbitration_table:
        status = answer_switch_port(node, mad, set, ingress);
        break;
    default:
        status = Mad::unsupported_method_attribute;
    }
    respond(mad, status);
    return true;
}

} // namespace soft_ib
