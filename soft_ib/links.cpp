// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Links that go up and down (IBA 7.2.7): the states of the ports at both ends of a cable, and the width and speed that
// both have enabled.
#include "fabric.hpp"

namespace soft_ib {

namespace {

// One end of a cable: a port of a switch or of an HCA, the other of which is null. All are null at the other end of the
// trunk.
struct End {
    Port* port;
    Switch* node;
    Hca* hca;
};

End end_of(Hca& hca) { return {&hca.port, nullptr, &hca}; }
End end_at(Place place) { return {&place.node->ports[place.port], place.node, nullptr}; }

End other_end(struct fabric& f, const Peer& peer)
{
    switch (peer.kind) {
    case Peer::Kind::hca:
        return end_of(f.hcas[peer.index]);
    case Peer::Kind::switch_:
        return end_at({&f.nodes[peer.index], peer.port});
    default:
        return {};
    }
}

void take_down(End end)
{
    if (end.hca && end.port->active())
        end.hca->events |= FABRIC_PORT_ERROR;
    end.port->set_port_state(PortState::down);
    ++end.port->counters.link_downed;
    if (end.node)
        end.node->port_state_change = end.node->trap_pending = true;
}

void bring_up(End end, std::uint8_t width, std::uint8_t speed)
{
    Port& port = *end.port;
    port.set_port_state(PortState::initialise);
    port.physical_state = link_up;
    port.down_state = port.down_default;
    port.active_width = width;
    port.active_speed = speed;
    if (end.node)
        end.node->port_state_change = end.node->trap_pending = true;
}

bool is_removed(End end) { return end.node && end.node->removed; }

// True if the ends find each other: none is disabled, and at least one is polling.
bool may_train(const Port& a, const Port& b)
{
    return a.cabled && a.down_state != disabled && b.down_state != disabled &&
           (a.down_state == polling || b.down_state == polling);
}

// Takes the link of a cable down, if it is up, and brings it up, if that is possible.
void train(End near, End far)
{
    const End ends[] = {near, far.port ? far : near};
    const unsigned int count = far.port ? 2 : 1;
    for (unsigned int i = 0; i < count; ++i) {
        if (link_is_up(*ends[i].port))
            take_down(ends[i]);
        ends[i].port->physical_state = ends[i].port->down_state;
    }
    const Port &a = *ends[0].port, &b = *ends[1].port;
    const std::uint8_t widths = a.widths_enabled & b.widths_enabled, speeds = a.speeds_enabled & b.speeds_enabled;
    if (is_removed(near) || is_removed(far) || !may_train(a, b) || !widths || !speeds)
        return;
    for (unsigned int i = 0; i < count; ++i)
        bring_up(ends[i], best_of(widths), best_of(speeds));
}

void train_at(struct fabric& f, Place place) { train(end_at(place), other_end(f, place.node->peers[place.port])); }

} // namespace

void set_cable(struct fabric& f, Place place, bool up)
{
    const End far = other_end(f, place.node->peers[place.port]);
    Port& port = place.node->ports[place.port];
    if (port.cabled == up)
        return;
    port.cabled = up;
    if (far.port)
        far.port->cabled = up;
    train_at(f, place);
}

void settle_links(struct fabric& f, Switch& node)
{
    for (unsigned int i = 1; node.links_due && i <= node.port_count; ++i) {
        if (!node.ports[i].link_due)
            continue;
        node.ports[i].link_due = false;
        train_at(f, {&node, i});
    }
    node.links_due = false;
}

void settle_links(struct fabric& f, Hca& hca)
{
    if (!hca.links_due)
        return;
    hca.links_due = hca.port.link_due = false;
    if (hca.node)
        train_at(f, {hca.node, hca.node_port});
    else
        hca.port.physical_state = hca.port.down_state;
}

} // namespace soft_ib

using namespace soft_ib;

unsigned int fabric_set_link(struct fabric* f, unsigned int number, bool up)
{
    Hca& hca = f->hcas[number];
    if (!hca.node)
        return 0;
    set_cable(*f, {hca.node, hca.node_port}, up);
    return take_events(hca);
}

unsigned int fabric_limit_link(struct fabric* f, unsigned int number, std::uint8_t widths, std::uint8_t speeds)
{
    Hca& hca = f->hcas[number];
    Port& port = hca.port;
    if (widths)
        port.widths_supported = port.widths_enabled = widths;
    if (speeds) {
        port.speeds_supported = port.speeds_enabled = speeds;
        port.capabilities = (port.capabilities & ~extended_speeds_capability) | extended_speeds(speeds);
    }
    if (hca.node)
        train_at(*f, {hca.node, hca.node_port});
    return take_events(hca);
}

void fabric_set_trunk(struct fabric* f, unsigned int trunk, bool up)
{
    set_cable(*f, place_at(*f, FABRIC_TRUNK + trunk), up);
}

bool fabric_set_cable(struct fabric* f, unsigned int number, unsigned int port, bool up)
{
    Switch& node = f->nodes[number];
    const Peer::Kind kind = port && port <= node.port_count ? node.peers[port].kind : Peer::Kind::none;
    if (kind == Peer::Kind::none || kind == Peer::Kind::trunk)
        return false;
    set_cable(*f, {&node, port}, up);
    return true;
}

bool fabric_has_switch(const struct fabric* f, unsigned int number) { return !f->nodes[number].removed; }

bool fabric_plug_switch(struct fabric* f, unsigned int number, bool plugged)
{
    Switch& node = f->nodes[number];
    if (node.first_trunk)
        return false;
    if (plugged != node.removed)
        return true;
    node.removed = !plugged;
    if (plugged)
        reset_switch(node, abilities_of(node.ports[1]));
    for (unsigned int i = 1; i <= node.port_count; ++i)
        if (node.peers[i].kind != Peer::Kind::none)
            train_at(*f, {&node, i});
    return true;
}

bool fabric_unsettled(const struct fabric* f) { return f->unsettled; }

bool fabric_settle(struct fabric* f, unsigned int* hca, unsigned int* events)
{
    f->unsettled = false;
    for (unsigned int i = 0; i < f->switch_count; ++i)
        settle_links(*f, f->nodes[i]);
    for (unsigned int i = 0; i < f->hca_count; ++i)
        settle_links(*f, f->hcas[i]);
    for (*hca = 0; *hca < f->hca_count; ++*hca) {
        *events = take_events(f->hcas[*hca]);
        if (*events)
            return true;
    }
    return false;
}
