// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The whole fabric: its nodes and the cables between them. Used by core.cpp, links.cpp and routing.cpp.
#pragma once
#include "node.hpp"

struct fabric {
    unsigned int hca_count, switch_count;
    // A Set(PortInfo) has changed a link, or will.
    bool unsettled;
    // A node may have a sample in progress. Time of the last fabric_sample().
    bool sampling;
    std::uint64_t now;
    soft_ib::Hca hcas[FABRIC_MAX_HCAS];
    soft_ib::Switch nodes[FABRIC_MAX_SWITCHES];
};

namespace soft_ib {

// A port of a switch as the value of fabric_route's to_switch, and of the ingress of frames.
inline std::uint32_t place_of(const struct fabric& f, const Switch& node, unsigned int port)
{
    return FABRIC_AT_SWITCH | static_cast<std::uint32_t>(&node - f.nodes) << 8 | port;
}

struct Place {
    Switch* node;
    unsigned int port;
};
// Switch, and port of it, that a frame arrived at.
inline Place place_at(struct fabric& f, std::uint32_t ingress)
{
    if (ingress & FABRIC_AT_SWITCH)
        return {&f.nodes[ingress >> 8 & 0xff], ingress & 0xff};
    if (ingress >= FABRIC_TRUNK)
        return {&f.nodes[0], f.nodes[0].first_trunk + (ingress - FABRIC_TRUNK)};
    return {f.hcas[ingress].node, f.hcas[ingress].node_port};
}

inline bool link_is_up(const Port& port) { return port.port_state() != PortState::down; }

// links.cpp

// Connects or disconnects the cable at a port of a switch.
void set_cable(struct fabric& f, Place place, bool up);
// Carries out the changes of links that a Set(PortInfo) of the node has requested.
void settle_links(struct fabric& f, Switch& node);
void settle_links(struct fabric& f, Hca& hca);
// Events of the HCA's link that its driver does not know yet. They are reported once.
inline unsigned int take_events(Hca& hca)
{
    const unsigned int events = hca.events;
    hca.events = 0;
    return events;
}

// routing.cpp

// Datagrams from one QP0 to another pass before the subnet is up; they have their own lane.
inline bool is_subnet_management(const fabric_headers& h)
{
    return h.destination_qpn == 0 && h.source_qpn == 0 && fabric_is_datagram(h.opcode);
}
// A frame to QP0 that another queue pair has sent (IBA 13.5.1). It would configure ports without a subnet manager.
inline bool is_forged_management(const fabric_headers& h) { return h.destination_qpn == 0 && !is_subnet_management(h); }
// Q_Key of QP1 (IBA 10.2.4).
inline constexpr std::uint32_t general_services_qkey = 0x80010000;
inline bool is_general_management(const fabric_headers& h)
{
    return h.destination_qpn == 1 && h.qkey == general_services_qkey && fabric_is_datagram(h.opcode);
}
// Forwards a unicast frame by the switches' tables, from a switch on; it came by that port, 0: from the switch itself.
void pass_unicast(struct fabric& f, Place at, const fabric_headers& h, fabric_route& route);
// Forwards an SMP out of a port of a switch. Returns true if it arrives at another switch, which is then in place.
bool leave_directed(struct fabric& f, Place& place, unsigned int egress, const fabric_headers& h, fabric_route& route);

} // namespace soft_ib
