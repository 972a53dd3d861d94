// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The network stack above the interfaces: opening and closing, the queue in front of ndo_start_xmit, linkwatch and the
// watchdog, address resolution, and packets that say who sent them to whom. What arrives is checked: it is for the
// interface that got it, as it was sent, and comes once.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "netdevice.hpp"

namespace sim {

// What a packet of data begins with, and its bytes behind that.
struct Data {
    std::uint32_t magic, from, to, bytes;
    std::uint64_t number;
};
std::uint8_t pattern(std::uint64_t number, std::size_t at);
// Whether its checksum is left to whoever sends it; and that it is filled in.
bool checksum_is_open(const std::uint8_t* data);
void fill_checksum(std::uint8_t* data);

class Stack {
public:
    // What an interface of a party is expected to have come through: tests of liveness read it.
    std::uint64_t received(Party from, Party to) const { return received_.value(index(from), index(to)); }
    std::uint64_t delivered = 0, sent = 0;

    // Netdevs. Those that end when RTNL is dropped.
    std::vector<net_device*> devs, going;
    net_device* find(Party party) const;
    net_device* create(ib_device* ca, net_device* parent, const char* name);
    int register_dev(net_device* dev);
    void unregister_dev(net_device* dev);
    void end(net_device* dev);
    void free_dev(net_device* dev);
    int open(net_device* dev);
    void close(net_device* dev);
    void carrier(net_device* dev, bool on);
    void address_changed(net_device* dev);
    void notify_peers(net_device* dev);

    // Transmission. CONTEXT: bottom halves off.
    void transmit(net_device* dev, sk_buff* skb);
    void schedule_queue(net_device* dev);
    void lock_transmit(net_device* dev);
    void unlock_transmit(net_device* dev);
    bool within_transmit(const net_device* dev) const;
    void receive(net_device* dev, sk_buff* skb);

    // One packet of data of so many bytes; larger than the MTU only to be cut into segments.
    void send_data(net_device* dev, Party to, unsigned int bytes);
    void send_group(net_device* dev, unsigned int group, unsigned int bytes);
    // Neighbours that do not answer are asked again. CONTEXT: process.
    void look_at_neighbours(net_device* dev);
    // Once a second: queues that nobody empties, transmit timeouts.
    void watch();
    // Counters add up; nothing is under way. CONTEXT: RTNL, closed.
    void check_sums(net_device* dev);
    static ipoib::HwAddr group_address(const net_device* dev, unsigned int group);

private:
    static unsigned int index(Party party) { return party.node * 2 + party.part; }
    // The last so many packets of a pair, by their numbers.
    struct Seen {
        std::uint64_t highest = 0, mask = 0;
    };

    void run_queue(net_device* dev);
    void activate(net_device* dev);
    void watch_link(net_device* dev);
    void deactivate(net_device* dev);
    // With the pattern behind its header, segment by segment.
    sk_buff* packet(net_device* dev, const ipoib::HwAddr& to, std::uint16_t type, const void* header,
                    std::size_t header_bytes, unsigned int bytes, unsigned int segment_bytes = 0);
    void ask_for(net_device* dev, unsigned int who, const ipoib::HwAddr& where);
    void resolve(net_device* dev, const std::vector<std::uint8_t>& bytes);
    void take_data(net_device* dev, const std::vector<std::uint8_t>& bytes, shim_packet_type type, bool verified);

    std::unordered_map<unsigned int, net_device*> by_party_;
    Pairs<std::uint64_t> received_, numbers_;
    Pairs<Seen> seen_;
    std::uint64_t incarnations_ = 0;
};

} // namespace sim
