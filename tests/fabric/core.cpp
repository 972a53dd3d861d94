// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The fabric as a whole, behind core.h: HCAs joined by a switch for each subnet, frames between wire bytes and fields,
// routing by the switch's tables, links that go up and down.
#include <cstring>
#include <new>
#include <utility>

#include "node.hpp"
#include <core.h>

using namespace soft_ib;

struct fabric {
    unsigned int hca_count, subnet_count;
    Hca hcas[FABRIC_MOST_HCAS];
    Switch nodes[FABRIC_MOST_SUBNETS];
};

namespace soft_ib {

// As new, with no cable in it.
void reset_port(Port& port, std::uint64_t guid, std::uint8_t mtu)
{
    port = {};
    port.guids[0] = guid;
    port.subnet_prefix = default_subnet_prefix;
    port.mtu = mtu;
    port.pkeys[0] = 0xffff;
    port.subnet_timeout = 18;
    port.set_port_state(PortState::down);
    port.physical_state = polling;
}

} // namespace soft_ib

namespace {

constexpr std::uint64_t guid_prefix = 0x0002c90300000000;
// Of the first; the next follow.
constexpr std::uint64_t switch_guid = guid_prefix | 0xffff00;
constexpr std::uint8_t management_lane = 15;
// IsTrapSupported: the switch tells when a port changes.
constexpr std::uint32_t trap_capability = 1 << 3;
// IsClientReregistrationSupported.
constexpr std::uint32_t reregister_capability = 1 << 25;

constexpr unsigned int lrh_bytes = 8, grh_bytes = 40, bth_bytes = 12, deth_bytes = 8, aeth_bytes = 4, icrc_bytes = 4;
constexpr std::uint8_t next_header_iba = 0x1b;
constexpr std::uint8_t solicited_bit = 0x80;
constexpr std::uint32_t ack_request_bit = 0x80000000;

// What follows the BTH, by opcode (IBA 9.2.1).
unsigned int extension_bytes(std::uint8_t opcode)
{
    switch (opcode) {
    case FABRIC_UD_SEND_ONLY:
        return deth_bytes;
    case FABRIC_RC_ACKNOWLEDGE:
        return aeth_bytes;
    default:
        return 0;
    }
}

bool known(std::uint8_t opcode)
{
    return opcode <= FABRIC_RC_SEND_LAST || opcode == FABRIC_RC_SEND_ONLY || opcode == FABRIC_RC_ACKNOWLEDGE ||
           opcode == FABRIC_UD_SEND_ONLY;
}

unsigned int header_bytes(const fabric_headers& h)
{
    return lrh_bytes + (h.grh ? grh_bytes : 0) + bth_bytes + extension_bytes(h.opcode);
}

// What LRH's length and the data counters count: 4-byte words to the ICRC, without the VCRC.
unsigned int words(const fabric_headers& h)
{
    return (header_bytes(h) + ((h.payload_bytes + 3) & ~3U) + icrc_bytes) / 4;
}

bool multicast(std::uint16_t lid) { return lid >= FABRIC_FIRST_MULTICAST_LID && lid != FABRIC_PERMISSIVE_LID; }

void add(std::uint64_t& counter, std::uint64_t amount) { __atomic_fetch_add(&counter, amount, __ATOMIC_RELAXED); }

void count(std::uint64_t& all_words, std::uint64_t& frames, std::uint64_t& groups, const fabric_headers& h)
{
    add(all_words, words(h));
    add(frames, 1);
    if (multicast(h.dlid))
        add(groups, 1);
}

// The HCA on a port of the switch, as a bit.
std::uint64_t hca_at(unsigned int switch_port)
{
    return switch_port - 1 < FABRIC_MOST_HCAS ? std::uint64_t(1) << (switch_port - 1) : 0;
}

// The switch of an HCA's subnet. Its ports for HCAs of other subnets have no cable in them.
Switch& switch_of(struct fabric& f, unsigned int hca) { return f.nodes[hca % f.subnet_count]; }

bool link_is_up(const Switch& node, unsigned int switch_port)
{
    return node.ports[switch_port].port_state() != PortState::down;
}

// One of the LIDs that the port answers to; 2^LMC of them.
bool is_own_lid(const Port& port, std::uint16_t lid) { return port.lid && (lid >> port.lmc) == (port.lid >> port.lmc); }

// One of the port's GIDs; the default subnet prefix will do always (IBA 4.1.1).
bool is_own_gid(const Port& port, const std::uint8_t* gid)
{
    const auto prefix = load<std::uint64_t>(gid), guid = load<std::uint64_t>(gid + 8);
    if (prefix != port.subnet_prefix && prefix != default_subnet_prefix)
        return false;
    for (const std::uint64_t own : port.guids)
        if (own && own == guid)
            return true;
    return false;
}

// Both ends of a cable pass data.
bool cable_active(const Switch& node, const Hca& hca, unsigned int switch_port)
{
    return hca.port.active() && node.ports[switch_port].active();
}

// The HCA that the switch's unicast table names, as a bit; none for its own port or no port.
std::uint64_t hca_behind(const Switch& node, std::uint16_t lid)
{
    const unsigned int port = lid < Switch::unicast_lids ? node.forwarding[lid] : Switch::no_port;
    return port <= node.port_count ? hca_at(port) : 0;
}

bool directed_smp(struct fabric& f, unsigned int ingress, Mad smp, fabric_route& route)
{
    Switch& node = switch_of(f, ingress);
    Hop hop = arrive_by_directed_route(smp, ingress + 1, node.port_count);
    if (hop.action == Hop::Action::answer_here) {
        if (!answer_smp(node, smp, ingress + 1))
            return false;
        hop = depart_with_answer(smp);
    }
    if (hop.action != Hop::Action::forward || !link_is_up(node, hop.egress))
        return false;
    route.hcas = hca_at(hop.egress);
    return route.hcas;
}

// With no cable in it.
void construct_switch(Switch& node, std::uint64_t guid, unsigned int ports, std::uint8_t mtu)
{
    node.type = NodeType::switch_;
    node.port_count = static_cast<std::uint8_t>(ports);
    node.guid = guid;
    std::memcpy(node.description, "soft_ib switch", sizeof("soft_ib switch"));
    for (unsigned int i = 0; i <= ports; ++i)
        reset_port(node.ports[i], guid, mtu);
    node.ports[0].set_port_state(PortState::active);
    node.ports[0].physical_state = link_up;
    node.ports[0].capabilities = trap_capability;
    node.life_time = 18;
    std::memset(node.forwarding, Switch::no_port, sizeof(node.forwarding));
}

} // namespace

std::size_t fabric_bytes() { return sizeof(struct fabric); }

void fabric_construct(struct fabric* memory, unsigned int hcas, unsigned int subnets, std::uint8_t mtu)
{
    struct fabric& f = *new (memory) struct fabric();
    f.hca_count = hcas;
    f.subnet_count = subnets;
    for (unsigned int i = 0; i < hcas; ++i) {
        Hca& hca = f.hcas[i];
        hca.type = NodeType::hca;
        hca.port_count = 1;
        hca.guid = fabric_guid(i);
        reset_port(hca.port, hca.guid, mtu);
        hca.port.capabilities = reregister_capability;
    }
    for (unsigned int i = 0; i < subnets; ++i)
        construct_switch(f.nodes[i], switch_guid + i, hcas, mtu);
}

std::uint64_t fabric_guid(unsigned int hca) { return guid_prefix | std::uint64_t(0x100) * hca | 0x10; }

const fabric_port* fabric_hca_port(const struct fabric* f, unsigned int hca) { return &f->hcas[hca].port; }

void fabric_renew_hca(struct fabric* f, unsigned int hca)
{
    Port& port = f->hcas[hca].port;
    reset_port(port, port.guids[0], port.mtu);
    port.capabilities = reregister_capability;
}

void fabric_set_capabilities(struct fabric* f, unsigned int hca, std::uint32_t set, std::uint32_t clear)
{
    std::uint32_t& capabilities = f->hcas[hca].port.capabilities;
    capabilities = (capabilities | set) & ~clear;
}

void fabric_set_description(struct fabric* f, unsigned int hca, const char* text)
{
    char* to = f->hcas[hca].description;
    unsigned int i = 0;
    for (; text[i] && i < sizeof(f->hcas[hca].description) - 1; ++i)
        to[i] = text[i];
    std::memset(to + i, 0, sizeof(f->hcas[hca].description) - i);
}

unsigned int fabric_set_alias(struct fabric* f, unsigned int hca, unsigned int index, std::uint64_t guid)
{
    std::uint64_t& alias = f->hcas[hca].port.guids[index];
    if (alias == guid)
        return 0;
    alias = guid;
    return FABRIC_GID_CHANGE;
}

unsigned int fabric_set_link(struct fabric* f, unsigned int hca, bool up)
{
    Port& near = f->hcas[hca].port;
    Switch& node = switch_of(*f, hca);
    Port& far = node.ports[hca + 1];
    const bool was_up = near.port_state() != PortState::down;
    if (up == was_up)
        return 0;
    const bool was_active = near.active();
    Port* const ends[] = {&near, &far};
    for (Port* port : ends) {
        port->set_port_state(up ? PortState::initialise : PortState::down);
        port->physical_state = up ? link_up : polling;
        if (!up)
            ++port->counters.link_downed;
    }
    node.port_state_change = true;
    node.trap_pending = true;
    return was_active ? FABRIC_PORT_ERROR : 0;
}

bool fabric_hca_mad(struct fabric* f, unsigned int hca, const std::uint8_t* mad, std::uint8_t* reply,
                    unsigned int* events)
{
    std::memcpy(reply, mad, FABRIC_MAD_BYTES);
    *events = 0;
    Mad answer(reply);
    switch (answer.management_class()) {
    case ManagementClass::subnet_lid:
    case ManagementClass::subnet_directed:
        return answer_smp(f->hcas[hca], answer, *events);
    case ManagementClass::performance:
        return answer_performance(f->hcas[hca], answer);
    }
    return false;
}

bool fabric_switch_mad(struct fabric* f, unsigned int ingress, fabric_headers* h, std::uint8_t* bytes,
                       fabric_route* route)
{
    *route = {};
    Switch& node = switch_of(*f, ingress);
    Mad mad(bytes);
    const bool performance = mad.management_class() == ManagementClass::performance;
    if (h->destination_qpn != (performance ? 1 : 0))
        return false;
    switch (mad.management_class()) {
    case ManagementClass::subnet_directed:
        return directed_smp(*f, ingress, mad, *route);
    case ManagementClass::subnet_lid:
        if (mad.method() == Method::trap_repress || !answer_smp(node, mad, ingress + 1))
            return false;
        break;
    case ManagementClass::performance:
        if (!answer_performance(node, mad))
            return false;
        break;
    default:
        return false;
    }
    std::swap(h->source_qpn, h->destination_qpn);
    std::swap(h->slid, h->dlid);
    route->hcas = hca_behind(node, h->dlid);
    return route->hcas;
}

namespace {

bool trap_of(Switch& node, fabric_headers* h, std::uint8_t* bytes, fabric_route* route)
{
    const std::uint16_t sm_lid = node.ports[0].sm_lid;
    if (!node.trap_pending || !hca_behind(node, sm_lid))
        return false;
    node.trap_pending = false;
    std::memset(bytes, 0, FABRIC_MAD_BYTES);
    bytes[0] = bytes[2] = 1;
    bytes[1] = static_cast<std::uint8_t>(ManagementClass::subnet_lid);
    bytes[3] = static_cast<std::uint8_t>(Method::trap);
    store(bytes + 8, ++node.trap_transaction);
    store<std::uint16_t>(bytes + 16, 0x0002);
    // A generic, urgent notice by a switch: 128, a link's state has changed (IBA 13.4.8.2, 14.2.5.1).
    std::uint8_t* notice = bytes + 64;
    notice[0] = 0x80 | 1;
    notice[3] = 2;
    store<std::uint16_t>(notice + 4, 128);
    store(notice + 6, node.ports[0].lid);
    store(notice + 10, node.ports[0].lid);
    *h = {};
    h->opcode = FABRIC_UD_SEND_ONLY;
    h->slid = node.ports[0].lid;
    h->dlid = sm_lid;
    h->pkey = 0xffff;
    h->sl = 0;
    h->payload_bytes = FABRIC_MAD_BYTES;
    *route = {hca_behind(node, sm_lid), false};
    return route->hcas;
}

} // namespace

bool fabric_switch_trap(struct fabric* f, fabric_headers* h, std::uint8_t* bytes, fabric_route* route)
{
    for (unsigned int i = 0; i < f->subnet_count; ++i)
        if (trap_of(f->nodes[i], h, bytes, route))
            return true;
    return false;
}

unsigned int fabric_build_headers(const fabric_headers* h, std::uint8_t* wire)
{
    const unsigned int pad = -h->payload_bytes & 3;
    std::uint8_t* at = wire;
    at[0] = static_cast<std::uint8_t>((h->destination_qpn == 0 ? management_lane : 0) << 4);
    at[1] = static_cast<std::uint8_t>(h->sl << 4 | (h->grh ? 3 : 2));
    store(at + 2, h->dlid);
    store(at + 4, static_cast<std::uint16_t>(words(*h)));
    store(at + 6, h->slid);
    at += lrh_bytes;
    if (h->grh) {
        store(at, 6U << 28 | std::uint32_t(h->traffic_class) << 20 | (h->flow_label & 0xfffff));
        store(at + 4,
              static_cast<std::uint16_t>(bth_bytes + extension_bytes(h->opcode) + h->payload_bytes + pad + icrc_bytes));
        at[6] = next_header_iba;
        at[7] = h->hop_limit;
        std::memcpy(at + 8, h->sgid, 16);
        std::memcpy(at + 24, h->dgid, 16);
        at += grh_bytes;
    }
    at[0] = h->opcode;
    at[1] = static_cast<std::uint8_t>((h->solicited ? solicited_bit : 0) | pad << 4);
    store(at + 2, h->pkey);
    store(at + 4, h->destination_qpn & 0xffffff);
    store(at + 8, (h->ack_request ? ack_request_bit : 0) | (h->psn & FABRIC_PSN_MASK));
    at += bth_bytes;
    if (h->opcode == FABRIC_UD_SEND_ONLY) {
        store(at, h->qkey);
        store(at + 4, h->source_qpn & 0xffffff);
    } else if (h->opcode == FABRIC_RC_ACKNOWLEDGE) {
        store(at, h->aeth);
    }
    at += extension_bytes(h->opcode);
    return static_cast<unsigned int>(at - wire);
}

bool fabric_parse_headers(const std::uint8_t* wire, unsigned int bytes, fabric_headers* h)
{
    *h = {};
    if (bytes < lrh_bytes + bth_bytes)
        return false;
    const unsigned int next = wire[1] & 3;
    h->sl = wire[1] >> 4;
    h->grh = next == 3;
    if (next < 2 || (h->grh && bytes < lrh_bytes + grh_bytes + bth_bytes))
        return false;
    h->dlid = load<std::uint16_t>(wire + 2);
    h->slid = load<std::uint16_t>(wire + 6);
    const unsigned int frame_bytes = load<std::uint16_t>(wire + 4) * 4U;
    const std::uint8_t* at = wire + lrh_bytes;
    if (h->grh) {
        const auto first = load<std::uint32_t>(at);
        h->traffic_class = static_cast<std::uint8_t>(first >> 20);
        h->flow_label = first & 0xfffff;
        h->hop_limit = at[7];
        std::memcpy(h->sgid, at + 8, 16);
        std::memcpy(h->dgid, at + 24, 16);
        at += grh_bytes;
    }
    h->opcode = at[0];
    if (!known(h->opcode) || bytes < header_bytes(*h))
        return false;
    h->solicited = at[1] & solicited_bit;
    const unsigned int pad = at[1] >> 4 & 3;
    h->pkey = load<std::uint16_t>(at + 2);
    h->destination_qpn = load<std::uint32_t>(at + 4) & 0xffffff;
    h->ack_request = load<std::uint32_t>(at + 8) & ack_request_bit;
    h->psn = load<std::uint32_t>(at + 8) & FABRIC_PSN_MASK;
    at += bth_bytes;
    if (h->opcode == FABRIC_UD_SEND_ONLY) {
        h->qkey = load<std::uint32_t>(at);
        h->source_qpn = load<std::uint32_t>(at + 4) & 0xffffff;
    } else if (h->opcode == FABRIC_RC_ACKNOWLEDGE) {
        h->aeth = load<std::uint32_t>(at);
    }
    const unsigned int around = header_bytes(*h) + icrc_bytes + pad;
    if (frame_bytes < around)
        return false;
    h->payload_bytes = frame_bytes - around;
    return true;
}

namespace {

// The switch's ports that a frame leaves by; bit p is port p.
std::uint64_t egress_ports(const Switch& node, unsigned int ingress_port, std::uint16_t dlid)
{
    const std::uint64_t others = ~(std::uint64_t(1) << ingress_port);
    if (multicast(dlid)) {
        const unsigned int index = dlid - FABRIC_FIRST_MULTICAST_LID;
        return index < Switch::multicast_lids ? node.multicast[index] & others : 0;
    }
    const unsigned int port = node.forwarding[dlid];
    return port <= node.port_count ? (std::uint64_t(1) << port) & others : 0;
}

void count_sent(struct fabric& f, unsigned int hca, const fabric_headers& h)
{
    PortCounters& near = f.hcas[hca].port.counters;
    PortCounters& far = switch_of(f, hca).ports[hca + 1].counters;
    count(near.sent_words, near.sent_frames, near.sent_multicast, h);
    count(far.received_words, far.received_frames, far.received_multicast, h);
}

} // namespace

fabric_route fabric_route_frame(struct fabric* f, unsigned int ingress, const fabric_headers* h)
{
    const Port& source = f->hcas[ingress].port;
    const std::uint64_t self = std::uint64_t(1) << ingress;
    // Management passes before the subnet is up; it has a lane of its own.
    const bool subnet_management = h->destination_qpn == 0;
    if (source.port_state() == PortState::down || (!subnet_management && !source.active()))
        return {};
    if (is_own_lid(source, h->dlid))
        return {self, false};
    count_sent(*f, ingress, *h);
    if (h->dlid == FABRIC_PERMISSIVE_LID)
        return {0, subnet_management};
    // A HCA gives its own group members their copies; the switch sends none back.
    fabric_route route{multicast(h->dlid) ? self : 0, false};
    const Switch& node = switch_of(*f, ingress);
    if (!subnet_management && !node.ports[ingress + 1].active())
        return route;
    const std::uint64_t ports = egress_ports(node, ingress + 1, h->dlid);
    route.to_switch = ports & 1;
    for (unsigned int hca = 0; hca < f->hca_count; ++hca)
        if ((ports >> (hca + 1) & 1) &&
            (subnet_management ? link_is_up(node, hca + 1) : cable_active(node, f->hcas[hca], hca + 1)))
            route.hcas |= std::uint64_t(1) << hca;
    return route;
}

bool fabric_accepts(const struct fabric* f, unsigned int hca, const fabric_headers* h)
{
    const Port& port = f->hcas[hca].port;
    if (port.port_state() == PortState::down)
        return false;
    if (multicast(h->dlid))
        return true;
    return (h->dlid == FABRIC_PERMISSIVE_LID || is_own_lid(port, h->dlid)) && (!h->grh || is_own_gid(port, h->dgid));
}

void fabric_count_received(struct fabric* f, unsigned int hca, const fabric_headers* h)
{
    PortCounters& near = f->hcas[hca].port.counters;
    PortCounters& far = switch_of(*f, hca).ports[hca + 1].counters;
    count(near.received_words, near.received_frames, near.received_multicast, *h);
    count(far.sent_words, far.sent_frames, far.sent_multicast, *h);
}

bool fabric_pkeys_match(std::uint16_t a, std::uint16_t b)
{
    return (a & 0x7fff) && (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000);
}
