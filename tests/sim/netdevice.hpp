// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Network interface as the kernel has it: its flags, its queue of packets to be sent and the locks around it, its NAPI
// contexts. The stack above it is in stack.hpp.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ipoib/address.hpp>
#include <shim/netdevice.h>

#include "base.hpp"
#include "skbuff.hpp"

struct ib_device;
struct shim_napi;

namespace sim {

class Fiber;
struct Neighbours;

// Source or destination of packets: a node, and one of its interfaces: 0 is the port's, others are its children.
struct Party {
    unsigned int node = 0, part = 0;
    bool operator==(const Party&) const = default;
};

// A queue of packets, and the transmit queue behind it.
struct TransmitQueue {
    std::deque<sk_buff*> packets;
    bool runs = false, scheduled = false;
    Time forgotten_since = 0;
    // Holds the transmit lock.
    Fiber* transmitter = nullptr;
    bool stopped = true, limited = false;
    std::uint64_t sent_bytes = 0, completed_bytes = 0;
    Time last_sent = 0, stuck_since = 0;

    bool xoff() const { return stopped || limited; }
};

// The NAPI context is neither disabled nor removed.
bool may_poll(const shim_napi* napi);

} // namespace sim

struct net_device {
    std::string name;
    void* owner = nullptr;
    ib_device* ca = nullptr;
    sim::Party party;
    net_device* parent = nullptr;
    std::array<std::uint8_t, 20> address{}, broadcast{};
    unsigned int mtu = 0;
    // registered: from success of registration to the beginning of unregistration. up: IFF_UP. running: between open
    // and stop.
    bool registered = false, up = false, running = false, carrier = true;
    bool by_netlink = false;
    // NAPI contexts that the receive queues are associated with.
    std::array<const shim_napi*, SHIM_MAX_RX_QUEUES> queue_napis{};
    std::vector<ipoib::HwAddr> multicast;

    // active: linkwatch has seen a carrier.
    bool active = false, linkwatch = false;
    sim::Time active_since = 0;
    // Those in use are the first real_queues.
    std::array<sim::TransmitQueue, SHIM_MAX_TX_QUEUES> queues;
    unsigned int real_queues = 1, queue_length = 256;
    std::uint64_t limit_bytes = 0;

    net_device* next_in_batch = nullptr;
    // Writers of the interface's files, lookups of rdma_cm, and children that hold the netdev.
    unsigned int holds = 0;
    std::vector<shim_napi*> napis;
    sim::Fiber* napi_lock_owner = nullptr;

    // The stack may leave segmentation to the driver, up to this many segments of one packet.
    bool can_segment = false, segments = false;
    unsigned int max_segments = 64;

    // Statistics: packets passed to ndo_start_xmit, packets that the driver transmitted again, packets delivered to the
    // stack.
    std::uint64_t handed = 0, again = 0, came = 0;
    // Their outcome: on the wire, with payload behind the encapsulation; dropped, or refused as too long; polled
    // completions, without flushed receives.
    std::uint64_t sent_packets = 0, sent_payload = 0, dropped = 0, too_long = 0, bad_sends = 0;
    std::uint64_t came_bytes = 0, came_multicast = 0, good_receives = 0, bad_receives = 0;
    // Own datagrams to groups that came back, and those of them that were delivered.
    std::uint64_t echoes = 0, came_own = 0;
    // Number of polls that were refused memory or a mapping.
    std::uint64_t starved = 0, starved_of_large = 0;
    // Settings by the user, and their time; time of the last change of the address.
    bool rx_checksum = true, gro_hw = true;
    sim::Time offloads_changed = 0, address_changed = 0;
    // Interrupt moderation of receives, as set by the user.
    unsigned int usecs = 0, frames = 0;
    bool adaptive = false;
    // The user has set an MTU.
    bool mtu_set = false;
    // Since when the other hosts do not know the new address; 0: they know it.
    sim::Time untold_since = 0;
    std::shared_ptr<sim::Neighbours> neighbours;
};
