// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Ports and cables, as debugfs shows them.
#include "fabric.hpp"

using namespace soft_ib;

namespace {

fabric_port_view view_of(const Node& node, const Port& port)
{
    fabric_port_view view{};
    view.name = node.description;
    view.port = &port;
    view.sent_packets = port.counters.sent_frames;
    view.received_packets = port.counters.received_frames;
    view.sent_bytes = port.counters.sent_words * 4;
    view.received_bytes = port.counters.received_words * 4;
    view.link_downed = port.counters.link_downed;
    return view;
}

} // namespace

fabric_port_view fabric_view_hca(const struct fabric* f, unsigned int number)
{
    const Hca& hca = f->hcas[number];
    fabric_port_view view = view_of(hca, hca.port);
    if (hca.node) {
        view.peer_kind = FABRIC_SWITCH;
        view.peer = static_cast<std::uint8_t>(hca.node - f->nodes);
        view.peer_port = hca.node_port;
    }
    return view;
}

bool fabric_view_switch_port(const struct fabric* f, unsigned int number, unsigned int port, fabric_port_view* view)
{
    const Switch& node = f->nodes[number];
    if (port > node.port_count)
        return false;
    const Peer& peer = node.peers[port];
    *view = view_of(node, node.ports[port]);
    view->peer_kind = static_cast<fabric_peer_kind>(peer.kind);
    view->peer = peer.index;
    view->peer_port = peer.port;
    return true;
}
