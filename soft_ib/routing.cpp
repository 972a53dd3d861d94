// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The way of frames from port to port, by the tables of the switches; and counting.
#include "fabric.hpp"

namespace soft_ib {

namespace {

// Switches that a frame passes. Tables that form a loop, while a subnet manager changes them, end there.
constexpr unsigned int max_passes = 64;

// A variable that the kernel's compiler flags do not clear for each call. g++ before 12 has neither the attribute nor
// flags that clear variables.
#if __has_attribute(uninitialized)
#define NOT_CLEARED __attribute__((uninitialized))
#else
#define NOT_CLEARED
#endif

bool multicast(std::uint16_t lid) { return lid >= FABRIC_FIRST_MULTICAST_LID && lid != FABRIC_PERMISSIVE_LID; }

void add(std::uint64_t& counter, std::uint64_t amount) { __atomic_fetch_add(&counter, amount, __ATOMIC_RELAXED); }

// Returns the words that were counted.
unsigned int count_sent(PortCounters& counters, const fabric_headers& h)
{
    const unsigned int sent = words(h);
    add(counters.sent_words, sent);
    add(counters.sent_frames, 1);
    add(multicast(h.dlid) ? counters.sent_multicast : counters.sent_unicast, 1);
    return sent;
}

void count_received(PortCounters& counters, const fabric_headers& h)
{
    add(counters.received_words, words(h));
    add(counters.received_frames, 1);
    add(multicast(h.dlid) ? counters.received_multicast : counters.received_unicast, 1);
}

// The enumeration of PortInfo begins with 256 bytes, 1.
unsigned int mtu_bytes(const Port& port) { return 128U << port.mtu; }

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

// Data needs both ends of a cable active.
bool passes(const Switch& node, unsigned int egress, bool subnet_management)
{
    const Port* far = node.peers[egress].far;
    if (subnet_management)
        return link_is_up(node.ports[egress]);
    return node.ports[egress].active() && (!far || far->active());
}

// Sends a frame out of a port of a switch, whose link passes it. Returns true if it arrives at another switch, which is
// then in place.
bool leave(struct fabric& f, Place& place, unsigned int egress, const fabric_headers& h, fabric_route& route)
{
    const Peer& peer = place.node->peers[egress];
    switch (peer.kind) {
    case Peer::Kind::none:
        return false;
    case Peer::Kind::hca:
        route.hcas |= std::uint64_t(1) << peer.index;
        return false;
    case Peer::Kind::trunk:
        count_sent(place.node->ports[egress].counters, h);
        route.trunks |= static_cast<std::uint8_t>(1U << peer.index);
        return false;
    case Peer::Kind::switch_:
        break;
    }
    count_sent(place.node->ports[egress].counters, h);
    place = {&f.nodes[peer.index], peer.port};
    count_received(place.node->ports[place.port].counters, h);
    return true;
}

// Places of further switches that a frame to a group arrives at.
struct Further {
    unsigned int count;
    std::uint32_t places[max_passes];
};

// Sends copies of a frame to a group out of the ports of one switch.
void replicate(struct fabric& f, Place at, const fabric_headers& h, fabric_route& route, Further& further)
{
    const Switch& node = *at.node;
    if (!node.ports[at.port].active())
        return;
    // The switch's own port is in no group.
    const std::uint64_t externals = (std::uint64_t(2) << node.port_count) - 2, here = std::uint64_t(1) << at.port;
    std::uint64_t ports = node.multicast[h.dlid - FABRIC_FIRST_MULTICAST_LID] & externals & ~here;
    for (; ports; ports &= ports - 1) {
        const auto egress = static_cast<unsigned int>(__builtin_ctzll(ports));
        const Peer& peer = node.peers[egress];
        Place next = at;
        if (!passes(node, egress, false))
            continue;
        if (peer.kind == Peer::Kind::hca)
            route.hcas |= std::uint64_t(1) << peer.index;
        else if (leave(f, next, egress, h, route) && further.count < max_passes)
            further.places[further.count++] = place_of(f, *next.node, next.port);
    }
}

void pass_multicast(struct fabric& f, Place at, const fabric_headers& h, fabric_route& route)
{
    if (h.dlid - FABRIC_FIRST_MULTICAST_LID >= static_cast<int>(Switch::multicast_lids))
        return;
    NOT_CLEARED Further further;
    further.count = 0;
    replicate(f, at, h, route, further);
    for (unsigned int i = 0; i < further.count; ++i)
        replicate(f, place_at(f, further.places[i]), h, route, further);
}

// Forwards a frame that arrived at a port of a switch.
void pass(struct fabric& f, Place at, const fabric_headers& h, fabric_route& route)
{
    if (!multicast(h.dlid))
        pass_unicast(f, at, h, route);
    else
        pass_multicast(f, at, h, route);
}

} // namespace

void pass_unicast(struct fabric& f, Place at, const fabric_headers& h, fabric_route& route)
{
    const bool subnet_management = is_subnet_management(h);
    if (h.dlid >= Switch::unicast_lids) {
        route.to_switch = h.dlid == FABRIC_PERMISSIVE_LID && subnet_management ? place_of(f, *at.node, at.port) : 0;
        return;
    }
    for (unsigned int i = 0; i < max_passes; ++i) {
        const Switch& node = *at.node;
        // Entries above LinearFDBTop are invalid (IBA 14.2.5.4).
        const unsigned int egress = h.dlid <= node.forwarding_top ? node.forwarding[h.dlid] : Switch::no_port;
        if (!subnet_management && !node.ports[at.port].active())
            return;
        if (egress == 0) {
            route.to_switch = place_of(f, node, at.port);
            return;
        }
        if (egress > node.port_count || egress == at.port || !passes(node, egress, subnet_management) ||
            !leave(f, at, egress, h, route))
            return;
    }
}

bool leave_directed(struct fabric& f, Place& place, unsigned int egress, const fabric_headers& h, fabric_route& route)
{
    return passes(*place.node, egress, true) && leave(f, place, egress, h, route);
}

} // namespace soft_ib

using namespace soft_ib;

fabric_route fabric_route_frame(struct fabric* f, unsigned int ingress, const fabric_headers* h)
{
    const Hca& hca = f->hcas[ingress];
    const Port& source = hca.port;
    const std::uint64_t self = std::uint64_t(1) << ingress;
    if (!link_is_up(source) || is_forged_management(*h) || (!is_subnet_management(*h) && !source.active()))
        return {};
    if (is_own_lid(source, h->dlid))
        return {self, 0, 0, 0};
    const unsigned int sent = count_sent(f->hcas[ingress].port.counters, *h);
    count_received(hca.node->ports[hca.node_port].counters, *h);
    // An HCA delivers to its own group members; the switch sends no copy back.
    fabric_route route{multicast(h->dlid) ? self : 0, 0, 0, sent};
    pass(*f, {hca.node, hca.node_port}, *h, route);
    return route;
}

fabric_route fabric_route_from_trunk(struct fabric* f, unsigned int trunk, const fabric_headers* h)
{
    const Place place = place_at(*f, FABRIC_TRUNK + trunk);
    fabric_route route{};
    if (!link_is_up(place.node->ports[place.port]))
        return route;
    count_received(place.node->ports[place.port].counters, *h);
    if (!is_forged_management(*h) && h->payload_bytes <= mtu_bytes(place.node->ports[place.port]))
        pass(*f, place, *h, route);
    return route;
}

bool fabric_accepts(const struct fabric* f, unsigned int hca, const fabric_headers* h)
{
    const Port& port = f->hcas[hca].port;
    if (!link_is_up(port) || is_forged_management(*h))
        return false;
    if (multicast(h->dlid))
        return true;
    return (h->dlid == FABRIC_PERMISSIVE_LID || is_own_lid(port, h->dlid)) && (!h->grh || is_own_gid(port, h->dgid));
}

void fabric_count_received(struct fabric* f, unsigned int hca, const fabric_headers* h)
{
    Hca& to = f->hcas[hca];
    count_received(to.port.counters, *h);
    count_sent(to.node->ports[to.node_port].counters, *h);
}
