// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Nodes of the fabric: HCAs and switches, their ports, and the agents that answer for them. Used by the C++ files of
// the fabric and their unit tests.
#pragma once
#include <cstdint>

#include "wire.hpp"
#include <core.h>

namespace soft_ib {

enum class PortState : std::uint8_t { none = 0, down = 1, initialise = 2, armed = 3, active = 4 };
// Physical states (IBA 14.2.5.6).
inline constexpr std::uint8_t sleeping = 1, polling = 2, disabled = 3, link_up = 5;
inline constexpr std::uint64_t default_subnet_prefix = 0xfe80000000000000;

// Counters of one port, in frames and in 4-byte words (IBA 16.1.3.5).
struct PortCounters {
    std::uint64_t sent_words, received_words, sent_frames, received_frames;
    std::uint64_t sent_unicast, received_unicast, sent_multicast, received_multicast;
    std::uint64_t link_downed;
};

struct Port : fabric_port {
    PortCounters counters;
    // Bits as in PortInfo. The link has the best width and speed that both its ends have enabled when it comes up.
    std::uint8_t widths_supported, widths_enabled, speeds_supported, speeds_enabled;
    // As in PortInfo. Lanes have no effect: frames of all service levels are equal.
    std::uint8_t vls_operational;
    // Physical state while the link is down, and the one that it has after the link was up, unless it is then set.
    std::uint8_t down_state, down_default;
    // A cable is plugged in; its link is to be taken down, if it is up, and to be tried again.
    bool cabled, link_due;
    std::uint8_t sl_to_vl[8];
    std::uint8_t vl_arbitration[4][64];
    PortState port_state() const { return static_cast<PortState>(state); }
    void set_port_state(PortState next) { state = static_cast<std::uint8_t>(next); }
    bool active() const { return port_state() == PortState::active; }
};

// Fixed properties of a port.
struct PortAbilities {
    std::uint8_t mtu, widths, speeds, vls;
};

// A sample of a port's counters (IBA 16.1.3.2): after a delay, for a time, both in ticks. While it is running, the
// values are the differences to the counters.
enum class SampleStatus : std::uint8_t { done = 0, waiting = 1, running = 2 };
struct Sampling {
    static constexpr unsigned int count = 15;
    SampleStatus status;
    std::uint8_t port;
    std::uint16_t tag;
    std::uint32_t start, interval;
    std::uint64_t begin_ns, end_ns;
    std::uint16_t select[count];
    std::uint64_t values[count];
};

enum class NodeType : std::uint8_t { hca = 1, switch_ = 2 };

struct Node {
    NodeType type;
    std::uint8_t port_count;
    std::uint64_t guid;
    char description[64];
    // A port has link_due.
    bool links_due;
    Sampling sampling;
};

struct Switch;

struct Hca : Node {
    Port port;
    // The switch, and the port of it, at the other end of its cable.
    Switch* node;
    std::uint8_t node_port;
    // Events of its link that its driver does not know yet.
    unsigned int events;
};

// Other end of a cable: an HCA, a port of a switch, or a trunk.
struct Peer {
    enum class Kind : std::uint8_t {
        none = FABRIC_NOTHING,
        hca = FABRIC_HCA,
        switch_ = FABRIC_SWITCH,
        trunk = FABRIC_OTHER_MACHINE
    } kind;
    std::uint8_t index, port;
    // The port there; null for a trunk.
    const Port* far;
};

struct Switch : Node {
    static constexpr unsigned int max_ports = FABRIC_MAX_SWITCH_PORTS + 1;
    static constexpr unsigned int unicast_lids = 0xc000;
    static constexpr unsigned int multicast_lids = 1024;
    static constexpr std::uint8_t no_port = 0xff;

    // Port 0 is the switch itself.
    Port ports[max_ports];
    Peer peers[max_ports];
    // Removed: no link of its is up.
    bool removed;
    // Port of the first trunk, or 0; those of the others follow.
    std::uint8_t first_trunk;
    std::uint16_t forwarding_top;
    std::uint8_t default_port, life_time;
    // A port changed since the subnet manager last read this.
    bool port_state_change;
    bool trap_pending;
    std::uint64_t trap_transaction;
    std::uint8_t forwarding[unicast_lids];
    // Bit p: port p.
    std::uint64_t multicast[multicast_lids];
};

// Answers an SMP for a node: returns true with the response in mad; events are those of the HCA's port, if the node is
// one. ingress is the port that it arrived at.
bool answer_smp(Hca& hca, Mad mad, unsigned int& events);
bool answer_smp(Switch& node, Mad mad, unsigned int ingress);
// Same for performance management. now: nanoseconds.
bool answer_performance(Hca& hca, Mad mad, std::uint64_t now);
bool answer_performance(Switch& node, Mad mad, std::uint64_t now);
// Begins or ends a sample, if its time has come. Returns the time when the next is due, or never.
inline constexpr std::uint64_t never = ~std::uint64_t(0);
std::uint64_t sample(Hca& hca, std::uint64_t now);
std::uint64_t sample(Switch& node, std::uint64_t now);

// Advances a directed-route SMP by one hop, at a switch. Next action; lid: the destination of a part that is routed by
// LID.
struct Hop {
    enum class Action { discard, answer_here, forward, route_by_lid } action;
    unsigned int egress;
    std::uint16_t lid;
};
Hop arrive_by_directed_route(Mad smp, unsigned int ingress, unsigned int port_count);
// Same for a response that starts its way back here; the request came from that LID.
Hop depart_with_answer(Mad smp, std::uint16_t requester, unsigned int port_count);

// port_info.cpp: a port of a switch is its own, which has no link, or an external one. The link of a trunk is not
// set, since that would be done at one of its ends.
enum class PortRole { hca, own, external, trunk };
// Handles a Get or Set(PortInfo), as data has it. Returns the status; nothing is set unless it is 0.
std::uint16_t access_port_info(Port& port, PortRole role, bool set, const std::uint8_t* data, unsigned int& events);
void write_port_info(const Port& port, unsigned int local_port, std::uint8_t guid_count, std::uint8_t* data);

// IsExtendedSpeedsSupported in CapabilityMask of PortInfo: FDR and faster, as bits of PortAbilities' speeds.
inline constexpr std::uint32_t extended_speeds_capability = 1 << 14;
inline std::uint32_t extended_speeds(std::uint8_t speeds) { return speeds > 0x0f ? extended_speeds_capability : 0; }

// The best of a set of widths or speeds: its highest bit.
constexpr std::uint8_t best_of(unsigned int set)
{
    while (set & (set - 1))
        set &= set - 1;
    return static_cast<std::uint8_t>(set);
}

inline PortAbilities abilities_of(const Port& port)
{
    return {port.mtu, port.widths_supported, port.speeds_supported, port.vls_supported};
}
// Gives a node a description of up to 63 characters.
void describe(Node& node, const char* text);
// Gives a switch the state that it has before a subnet manager configures it; its cables stay.
void reset_switch(Switch& node, const PortAbilities& abilities);
// Initial state, without a cable.
void reset_port(Port& port, std::uint64_t guid, const PortAbilities& abilities);

// Length counted by LRH and the data counters: 4-byte words to the ICRC, without the VCRC.
unsigned int words(const fabric_headers& h);

} // namespace soft_ib
