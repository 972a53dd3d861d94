// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The fabric behind core.h: construction, attributes of HCAs, and MADs to the agents of its nodes.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "fabric.hpp"

using namespace soft_ib;

namespace soft_ib {

namespace {

// IsTrapSupported: the switch reports port changes.
constexpr std::uint32_t trap_capability = 1 << 3;

} // namespace

void reset_port(Port& port, std::uint64_t guid, const PortAbilities& abilities)
{
    port = {};
    port.guids[0] = guid;
    port.subnet_prefix = default_subnet_prefix;
    port.mtu = abilities.mtu;
    port.pkeys[0] = 0xffff;
    port.subnet_timeout = 18;
    port.set_port_state(PortState::down);
    port.physical_state = port.down_state = port.down_default = polling;
    port.widths_supported = port.widths_enabled = abilities.widths;
    port.speeds_supported = port.speeds_enabled = abilities.speeds;
    port.vls_supported = port.vls_operational = abilities.vls;
    // Those of a link that never was up are the best ones.
    port.active_width = best_of(abilities.widths);
    port.active_speed = best_of(abilities.speeds);
}

void describe(Node& node, const char* text)
{
    std::size_t i = 0;
    for (; text[i] && i < sizeof(node.description) - 1; ++i)
        node.description[i] = text[i];
    std::memset(node.description + i, 0, sizeof(node.description) - i);
}

void reset_switch(Switch& node, const PortAbilities& abilities)
{
    for (unsigned int i = 0; i <= node.port_count; ++i) {
        const bool cabled = node.ports[i].cabled;
        reset_port(node.ports[i], node.guid, abilities);
        node.ports[i].cabled = cabled;
    }
    node.ports[0].set_port_state(PortState::active);
    node.ports[0].physical_state = link_up;
    node.ports[0].capabilities = trap_capability | extended_speeds(abilities.speeds);
    node.links_due = false;
    node.sampling = {};
    node.life_time = 18;
    node.forwarding_top = 0;
    node.default_port = 0;
    std::memset(node.forwarding, Switch::no_port, sizeof(node.forwarding));
    std::memset(node.multicast, 0, sizeof(node.multicast));
}

} // namespace soft_ib

namespace {

constexpr std::uint64_t guid_prefix = 0x0002c90300000000;
// First GUID; the next follow.
constexpr std::uint64_t switch_guid = guid_prefix | 0xffff00;
// Switches on the way of an SMP and back, with parts by LID.
constexpr unsigned int max_smp_hops = 256;
// IsClientReregistrationSupported.
constexpr std::uint32_t reregister_capability = 1 << 25;

bool leaves(const fabric_route& route) { return route.hcas || route.trunks; }

void join_hca(struct fabric& f, unsigned int hca, unsigned int node, unsigned int port)
{
    f.hcas[hca].node = &f.nodes[node];
    f.hcas[hca].node_port = static_cast<std::uint8_t>(port);
    f.nodes[node].peers[port] = {Peer::Kind::hca, static_cast<std::uint8_t>(hca), 1, &f.hcas[hca].port};
}

// Switches and cables that the plan describes.
void join_as_planned(struct fabric& f, const fabric_plan& plan)
{
    for (unsigned int i = 0; i < plan.cable_count; ++i) {
        const fabric_cable& cable = plan.cables[i];
        Switch &node = f.nodes[cable.node], &peer = f.nodes[cable.peer];
        if (cable.peer_port) {
            node.peers[cable.port] = {Peer::Kind::switch_, cable.peer, cable.peer_port, &peer.ports[cable.peer_port]};
            peer.peers[cable.peer_port] = {Peer::Kind::switch_, cable.node, cable.port, &node.ports[cable.port]};
            set_cable(f, {&node, cable.port}, true);
        } else {
            join_hca(f, cable.peer, cable.node, cable.port);
        }
    }
}

// HCA i at port i + 1 of its subnet's switch; ports of HCAs of other subnets have no cable.
void join_by_subnet(struct fabric& f, const fabric_plan& plan)
{
    const unsigned int subnets = plan.subnets ? plan.subnets : 1;
    for (unsigned int i = 0; i < f.hca_count; ++i)
        join_hca(f, i, i % subnets, i + 1);
    if (plan.trunks)
        f.nodes[0].first_trunk = static_cast<std::uint8_t>(f.hca_count + 1);
    for (std::uint8_t i = 0; i < plan.trunks; ++i)
        f.nodes[0].peers[f.nodes[0].first_trunk + i] = {Peer::Kind::trunk, i, 0, nullptr};
}

} // namespace

std::size_t fabric_bytes() { return sizeof(struct fabric); }

void fabric_construct(struct fabric* memory, const fabric_plan* plan)
{
    struct fabric& f = *new (memory) struct fabric();
    const PortAbilities abilities{plan->mtu, plan->widths, plan->speeds, plan->vls};
    f.hca_count = plan->hcas;
    f.switch_count = plan->switches ? plan->switches : plan->subnets;
    for (unsigned int i = 0; i < f.hca_count; ++i) {
        Hca& hca = f.hcas[i];
        hca.type = NodeType::hca;
        hca.port_count = 1;
        hca.guid = fabric_guid(plan->first_hca + i);
        reset_port(hca.port, hca.guid, abilities);
        hca.port.capabilities = reregister_capability | extended_speeds(abilities.speeds);
    }
    for (unsigned int i = 0; i < f.switch_count; ++i) {
        const unsigned int ports = plan->switches ? plan->switch_ports[i] : f.hca_count + (i == 0 ? plan->trunks : 0U);
        Switch& node = f.nodes[i];
        node.type = NodeType::switch_;
        node.port_count = static_cast<std::uint8_t>(ports);
        node.guid = switch_guid + std::uint64_t(FABRIC_MAX_SWITCHES) * plan->first_hca + i;
        describe(node, "soft_ib switch");
        reset_switch(node, abilities);
    }
    if (plan->switches)
        join_as_planned(f, *plan);
    else
        join_by_subnet(f, *plan);
}

unsigned int fabric_wrong_cable(const fabric_plan* plan)
{
    std::uint64_t used[FABRIC_MAX_SWITCHES] = {}, joined = 0;
    const auto take = [&](unsigned int node, unsigned int port) {
        const std::uint64_t bit = std::uint64_t(1) << (port & 63);
        if (node >= plan->switches || port == 0 || port > plan->switch_ports[node] || (used[node] & bit))
            return false;
        used[node] |= bit;
        return true;
    };
    for (unsigned int i = 0; i < plan->cable_count; ++i) {
        const fabric_cable& cable = plan->cables[i];
        if (!take(cable.node, cable.port))
            return i;
        if (cable.peer_port ? !take(cable.peer, cable.peer_port)
                            : cable.peer >= plan->hcas || (joined >> cable.peer & 1))
            return i;
        if (!cable.peer_port)
            joined |= std::uint64_t(1) << cable.peer;
    }
    return plan->cable_count;
}

std::uint64_t fabric_guid(unsigned int number) { return guid_prefix | std::uint64_t(0x100) * number | 0x10; }

const fabric_port* fabric_hca_port(const struct fabric* f, unsigned int hca) { return &f->hcas[hca].port; }

void fabric_renew_hca(struct fabric* f, unsigned int hca)
{
    Hca& old = f->hcas[hca];
    Port& port = old.port;
    // The slot may be empty, but have a connected cable.
    if (old.node)
        set_cable(*f, {old.node, old.node_port}, false);
    reset_port(port, port.guids[0], abilities_of(port));
    port.capabilities = reregister_capability | extended_speeds(port.speeds_supported);
    old.links_due = false;
    old.events = 0;
    old.sampling = {};
}

void fabric_set_capabilities(struct fabric* f, unsigned int hca, std::uint32_t set, std::uint32_t clear)
{
    std::uint32_t& capabilities = f->hcas[hca].port.capabilities;
    capabilities = (capabilities | set) & ~clear;
}

void fabric_set_description(struct fabric* f, unsigned int hca, const char* text) { describe(f->hcas[hca], text); }

unsigned int fabric_switches(const struct fabric* f) { return f->switch_count; }

void fabric_name_switch(struct fabric* f, unsigned int number, const char* name) { describe(f->nodes[number], name); }

unsigned int fabric_set_alias(struct fabric* f, unsigned int hca, unsigned int index, std::uint64_t guid)
{
    std::uint64_t& alias = f->hcas[hca].port.guids[index];
    if (alias == guid)
        return 0;
    alias = guid;
    return FABRIC_GID_CHANGE;
}

namespace {

// Answers an SMP at an HCA or a switch, after what an earlier one has requested is done. argument: events of the HCA's
// port, or the port of the switch that it arrived at.
template <class NodeKind, class Argument>
bool answer_settled(struct fabric& f, NodeKind& node, Mad smp, Argument& argument)
{
    settle_links(f, node);
    const bool answered = answer_smp(node, smp, argument);
    f.unsettled |= node.links_due;
    return answered;
}

} // namespace

bool fabric_hca_mad(struct fabric* f, unsigned int hca, const std::uint8_t* mad, std::uint8_t* reply,
                    unsigned int* events)
{
    std::memcpy(reply, mad, FABRIC_MAD_BYTES);
    *events = 0;
    Mad answer(reply);
    bool answered = false;
    switch (answer.management_class()) {
    case ManagementClass::subnet_lid:
    case ManagementClass::subnet_directed:
        answered = answer_settled(*f, f->hcas[hca], answer, *events);
        break;
    case ManagementClass::performance:
        f->sampling = true;
        answered = answer_performance(f->hcas[hca], answer, f->now);
        break;
    }
    // Those of changes that are done come first.
    *events |= take_events(f->hcas[hca]);
    return answered;
}

namespace {

// Answers a request to an agent that a switch does not have (IBA 13.4.7). Returns false for other MADs.
bool refuse_class(Mad mad)
{
    if (mad.method() != Method::get && mad.method() != Method::set)
        return false;
    mad.set_method(Method::response);
    mad.set_status(Mad::unsupported_class);
    return true;
}

// A directed-route SMP at a switch, and at each one that it then arrives at, until it leaves for an HCA or a trunk.
bool directed_smp(struct fabric& f, Place at, fabric_headers& h, Mad smp, fabric_route& route)
{
    for (unsigned int i = 0; i < max_smp_hops; ++i) {
        Hop hop = arrive_by_directed_route(smp, at.port, at.node->port_count);
        if (hop.action == Hop::Action::answer_here) {
            if (!answer_settled(f, *at.node, smp, at.port))
                return false;
            hop = depart_with_answer(smp, h.slid, at.node->port_count);
        }
        if (hop.action == Hop::Action::discard)
            return false;
        if (hop.action == Hop::Action::forward) {
            h.slid = h.dlid = FABRIC_PERMISSIVE_LID;
            if (leave_directed(f, at, hop.egress, h, route))
                continue;
            break;
        }
        h.slid = at.node->ports[0].lid;
        h.dlid = hop.lid;
        pass_unicast(f, {at.node, 0}, h, route);
        if (!route.to_switch)
            break;
        at = place_at(f, route.to_switch);
        route.to_switch = 0;
    }
    return leaves(route);
}

} // namespace

bool fabric_switch_mad(struct fabric* f, unsigned int ingress, fabric_headers* h, std::uint8_t* bytes,
                       fabric_route* route)
{
    *route = {};
    const Place at = place_at(*f, ingress);
    Mad mad(bytes);
    const bool subnet = mad.management_class() == ManagementClass::subnet_lid ||
                        mad.management_class() == ManagementClass::subnet_directed;
    if (!(subnet ? is_subnet_management(*h) : is_general_management(*h)))
        return false;
    switch (mad.management_class()) {
    case ManagementClass::subnet_directed:
        return directed_smp(*f, at, *h, mad, *route);
    case ManagementClass::subnet_lid:
        if (mad.method() == Method::trap_repress || !answer_settled(*f, *at.node, mad, at.port))
            return false;
        break;
    case ManagementClass::performance:
        f->sampling = true;
        if (!answer_performance(*at.node, mad, f->now))
            return false;
        break;
    default:
        if (!refuse_class(mad))
            return false;
    }
    std::swap(h->source_qpn, h->destination_qpn);
    std::swap(h->slid, h->dlid);
    if (h->grh)
        std::swap(h->sgid, h->dgid);
    pass_unicast(*f, {at.node, 0}, *h, *route);
    return leaves(*route);
}

namespace {

bool trap_of(struct fabric& f, Switch& node, fabric_headers* h, std::uint8_t* bytes, fabric_route* route)
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
    pass_unicast(f, {&node, 0}, *h, *route);
    node.trap_pending = !leaves(*route);
    return !node.trap_pending;
}

} // namespace

bool fabric_switch_trap(struct fabric* f, fabric_headers* h, std::uint8_t* bytes, fabric_route* route)
{
    for (unsigned int i = 0; i < f->switch_count; ++i)
        if (trap_of(*f, f->nodes[i], h, bytes, route))
            return true;
    return false;
}

std::uint64_t fabric_sample(struct fabric* f, std::uint64_t now)
{
    f->now = now;
    if (!f->sampling)
        return 0;
    std::uint64_t next = never;
    for (unsigned int i = 0; i < f->hca_count; ++i)
        next = std::min(next, sample(f->hcas[i], now));
    for (unsigned int i = 0; i < f->switch_count; ++i)
        next = std::min(next, sample(f->nodes[i], now));
    f->sampling = next != never;
    return f->sampling ? next - now : 0;
}

bool fabric_pkeys_match(std::uint16_t a, std::uint16_t b)
{
    return (a & 0x7fff) && (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000);
}
