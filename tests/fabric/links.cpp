// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Links that go up and down: the states of the ports at both ends of a cable.
#include "fabric.hpp"

namespace soft_ib {

namespace {

// One end of a cable: a port of a switch, or of an HCA, whose node is null.
struct End {
    Port* port;
    Switch* node;
};

End end_of(Hca& hca) { return {&hca.port, nullptr}; }
End end_of(Switch& node, unsigned int port) { return {&node.ports[port], &node}; }

// Sets the state of one end of a cable, and counts a disconnection.
void set_end(End end, bool up)
{
    end.port->set_port_state(up ? PortState::initialise : PortState::down);
    end.port->physical_state = up ? link_up : polling;
    if (!up)
        ++end.port->counters.link_downed;
    if (end.node)
        end.node->port_state_change = end.node->trap_pending = true;
}

End other_end(struct fabric& f, const Peer& peer)
{
    return peer.kind == Peer::Kind::hca ? end_of(f.hcas[peer.index]) : end_of(f.nodes[peer.index], peer.port);
}

} // namespace

void set_cable(struct fabric& f, Place place, bool up)
{
    const Peer& peer = place.node->peers[place.port];
    if (peer.kind == Peer::Kind::none || up == link_is_up(place.node->ports[place.port]))
        return;
    set_end(end_of(*place.node, place.port), up);
    if (peer.kind != Peer::Kind::trunk)
        set_end(other_end(f, peer), up);
}

} // namespace soft_ib

using namespace soft_ib;

unsigned int fabric_set_link(struct fabric* f, unsigned int hca, bool up)
{
    Hca& near = f->hcas[hca];
    if (!near.node)
        return 0;
    const bool was_active = near.port.active();
    set_cable(*f, {near.node, near.node_port}, up);
    return was_active && !near.port.active() ? FABRIC_PORT_ERROR : 0;
}

void fabric_set_trunk(struct fabric* f, bool up)
{
    const Place place = place_at(*f, FABRIC_TRUNK);
    if (place.port)
        set_cable(*f, place, up);
}
