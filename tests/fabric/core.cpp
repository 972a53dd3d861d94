// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The whole fabric, behind core.h: HCAs joined by a switch for each subnet, routing by the switch's tables, links that
// go up and down.
#include <cstring>
#include <new>
#include <utility>

#include "node.hpp"
#include <core.h>

using namespace soft_ib;

struct fabric {
    unsigned int hca_count, subnet_count;
    Hca hcas[FABRIC_MAX_HCAS];
    Switch nodes[FABRIC_MAX_SUBNETS];
};

namespace soft_ib {

// Initial state, without a cable.
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
// First GUID; the next follow.
constexpr std::uint64_t switch_guid = guid_prefix | 0xffff00;
// IsTrapSupported: the switch reports port changes.
constexpr std::uint32_t trap_capability = 1 << 3;
// IsClientReregistrationSupported.
constexpr std::uint32_t reregister_capability = 1 << 25;

bool multicast(std::uint16_t lid) { return lid >= FABRIC_FIRST_MULTICAST_LID && lid != FABRIC_PERMISSIVE_LID; }

void add(std::uint64_t& counter, std::uint64_t amount) { __atomic_fetch_add(&counter, amount, __ATOMIC_RELAXED); }

void count(std::uint64_t& all_words, std::uint64_t& frames, std::uint64_t& groups, const fabric_headers& h)
{
    add(all_words, words(h));
    add(frames, 1);
    if (multicast(h.dlid))
        add(groups, 1);
}

// Switch of an HCA's subnet. Its ports for HCAs of other subnets have no cable.
Switch& switch_of(struct fabric& f, unsigned int hca) { return f.nodes[hca % f.subnet_count]; }

// Switch, and port of it, that a frame arrived at.
Switch& switch_at(struct fabric& f, unsigned int ingress)
{
    return ingress == FABRIC_TRUNK ? f.nodes[0] : switch_of(f, ingress);
}
unsigned int port_at(const Switch& node, unsigned int ingress)
{
    return ingress == FABRIC_TRUNK ? node.trunk : ingress + 1;
}

bool link_is_up(const Switch& node, unsigned int switch_port)
{
    return node.ports[switch_port].port_state() != PortState::down;
}

// True for the LIDs of the port: 2^LMC of them.
bool is_own_lid(const Port& port, std::uint16_t lid) { return port.lid && (lid >> port.lmc) == (port.lid >> port.lmc); }

// True for the port's GIDs; the default subnet prefix is always accepted (IBA 4.1.1).
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

// Sends a frame out of a port of the switch, if that has a cable.
void leave(Switch& node, unsigned int port, const fabric_headers& h, fabric_route& route)
{
    if (!port || port > node.port_count || port >= Switch::max_ports || !link_is_up(node, port))
        return;
    if (port == node.trunk) {
        PortCounters& counters = node.ports[port].counters;
        count(counters.sent_words, counters.sent_frames, counters.sent_multicast, h);
        route.to_trunk = true;
    } else {
        route.hcas |= std::uint64_t(1) << (port - 1);
    }
}

// Forwards by the unicast table; not for the switch itself.
bool forward(Switch& node, const fabric_headers& h, fabric_route& route)
{
    leave(node, h.dlid < Switch::unicast_lids ? node.forwarding[h.dlid] : Switch::no_port, h, route);
    return route.hcas || route.to_trunk;
}

// A part of a directed route begins at the switch: addresses the frame to the next hop, or to a LID.
bool send_directed(Switch& node, const Hop& hop, fabric_headers& h, fabric_route& route)
{
    switch (hop.action) {
    case Hop::Action::forward:
        h.slid = h.dlid = FABRIC_PERMISSIVE_LID;
        leave(node, hop.egress, h, route);
        return route.hcas || route.to_trunk;
    case Hop::Action::route_by_lid:
        h.slid = node.ports[0].lid;
        h.dlid = hop.lid;
        return forward(node, h, route);
    default:
        return false;
    }
}

bool directed_smp(struct fabric& f, unsigned int ingress, fabric_headers& h, Mad smp, fabric_route& route)
{
    Switch& node = switch_at(f, ingress);
    const unsigned int ingress_port = port_at(node, ingress);
    Hop hop = arrive_by_directed_route(smp, ingress_port, node.port_count);
    if (hop.action == Hop::Action::answer_here) {
        if (!answer_smp(node, smp, ingress_port))
            return false;
        hop = depart_with_answer(smp, h.slid, node.port_count);
    }
    return send_directed(node, hop, h, route);
}

// Sets the state of one end of a cable, and counts a disconnection.
void set_cable(Port& port, bool up)
{
    port.set_port_state(up ? PortState::initialise : PortState::down);
    port.physical_state = up ? link_up : polling;
    if (!up)
        ++port.counters.link_downed;
}

// Constructs a switch, no port of which has a cable.
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

void fabric_construct(struct fabric* memory, const fabric_plan* plan)
{
    struct fabric& f = *new (memory) struct fabric();
    f.hca_count = plan->hcas;
    f.subnet_count = plan->subnets;
    for (unsigned int i = 0; i < f.hca_count; ++i) {
        Hca& hca = f.hcas[i];
        hca.type = NodeType::hca;
        hca.port_count = 1;
        hca.guid = fabric_guid(plan->first_hca + i);
        reset_port(hca.port, hca.guid, plan->mtu);
        hca.port.capabilities = reregister_capability;
    }
    for (unsigned int i = 0; i < f.subnet_count; ++i) {
        const bool trunk = plan->trunk && i == 0;
        construct_switch(f.nodes[i], switch_guid + std::uint64_t(FABRIC_MAX_SUBNETS) * plan->first_hca + i,
                         f.hca_count + trunk, plan->mtu);
        f.nodes[i].trunk = trunk ? f.nodes[i].port_count : 0;
    }
}

std::uint64_t fabric_guid(unsigned int number) { return guid_prefix | std::uint64_t(0x100) * number | 0x10; }

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
    for (Port* port : ends)
        set_cable(*port, up);
    node.port_state_change = true;
    node.trap_pending = true;
    return was_active ? FABRIC_PORT_ERROR : 0;
}

void fabric_set_trunk(struct fabric* f, bool up)
{
    Switch& node = f->nodes[0];
    if (!node.trunk || up == link_is_up(node, node.trunk))
        return;
    set_cable(node.ports[node.trunk], up);
    node.port_state_change = true;
    node.trap_pending = true;
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
    Switch& node = switch_at(*f, ingress);
    Mad mad(bytes);
    const bool performance = mad.management_class() == ManagementClass::performance;
    if (h->destination_qpn != (performance ? 1 : 0))
        return false;
    switch (mad.management_class()) {
    case ManagementClass::subnet_directed:
        return directed_smp(*f, ingress, *h, mad, *route);
    case ManagementClass::subnet_lid:
        if (mad.method() == Method::trap_repress || !answer_smp(node, mad, port_at(node, ingress)))
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
    return forward(node, *h, *route);
}

namespace {

bool trap_of(Switch& node, fabric_headers* h, std::uint8_t* bytes, fabric_route* route)
{
    const std::uint16_t sm_lid = node.ports[0].sm_lid;
    if (!node.trap_pending)
        return false;
    std::memset(bytes, 0, FABRIC_MAD_BYTES);
    bytes[0] = bytes[2] = 1;
    bytes[1] = static_cast<std::uint8_t>(ManagementClass::subnet_lid);
    bytes[3] = static_cast<std::uint8_t>(Method::trap);
    store(bytes + 8, ++node.trap_transaction);
    store<std::uint16_t>(bytes + 16, 0x0002);
    // Generic, urgent notice of a switch: 128, a link's state has changed (IBA 13.4.8.2, 14.2.5.1).
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
    *route = {};
    node.trap_pending = !forward(node, *h, *route);
    return !node.trap_pending;
}

} // namespace

bool fabric_switch_trap(struct fabric* f, fabric_headers* h, std::uint8_t* bytes, fabric_route* route)
{
    for (unsigned int i = 0; i < f->subnet_count; ++i)
        if (trap_of(f->nodes[i], h, bytes, route))
            return true;
    return false;
}

namespace {

// Ports that a frame leaves the switch by; bit p is port p.
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

// Management packets pass before the subnet is up; they have their own lane.
bool is_subnet_management(const fabric_headers& h) { return h.destination_qpn == 0; }

// Forwards a frame that arrived at a port of the switch.
void pass_switch(struct fabric& f, Switch& node, unsigned int ingress_port, const fabric_headers& h,
                 fabric_route& route)
{
    const bool subnet_management = is_subnet_management(h);
    if (h.dlid == FABRIC_PERMISSIVE_LID) {
        route.to_switch = subnet_management;
        return;
    }
    if (!subnet_management && !node.ports[ingress_port].active())
        return;
    const std::uint64_t ports = egress_ports(node, ingress_port, h.dlid);
    route.to_switch = ports & 1;
    for (unsigned int port = 1; port <= node.port_count; ++port) {
        const bool passes = subnet_management || (port == node.trunk ? node.ports[port].active()
                                                                     : cable_active(node, f.hcas[port - 1], port));
        if ((ports >> port & 1) && passes)
            leave(node, port, h, route);
    }
}

} // namespace

fabric_route fabric_route_frame(struct fabric* f, unsigned int ingress, const fabric_headers* h)
{
    const Port& source = f->hcas[ingress].port;
    const std::uint64_t self = std::uint64_t(1) << ingress;
    if (source.port_state() == PortState::down || (!is_subnet_management(*h) && !source.active()))
        return {};
    if (is_own_lid(source, h->dlid))
        return {self, false, false, false};
    count_sent(*f, ingress, *h);
    // An HCA delivers to its own group members; the switch sends no copy back.
    fabric_route route{multicast(h->dlid) ? self : 0, false, false, true};
    pass_switch(*f, switch_of(*f, ingress), ingress + 1, *h, route);
    return route;
}

fabric_route fabric_route_from_trunk(struct fabric* f, const fabric_headers* h)
{
    Switch& node = f->nodes[0];
    fabric_route route{};
    if (!node.trunk || !link_is_up(node, node.trunk))
        return route;
    PortCounters& counters = node.ports[node.trunk].counters;
    count(counters.received_words, counters.received_frames, counters.received_multicast, *h);
    pass_switch(*f, node, node.trunk, *h, route);
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
