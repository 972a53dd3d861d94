// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Network stack above the interfaces: open and close, the queue in front of ndo_start_xmit, linkwatch and the watchdog,
// address resolution, and packets that name their sender and recipient. Arriving packets are checked: they are for the
// interface that received them, equal the sent ones, and arrive once.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "content.hpp"
#include "netdevice.hpp"

namespace sim {

class Stack {
public:
    // Packets that an interface of a party received from another: read by tests of liveness.
    std::uint64_t received(Party from, Party to) const { return received_.value(index(from), index(to)); }
    // Unicast packets that the stack was given, those of them that arrived, and segments that were merged.
    std::uint64_t delivered = 0, sent = 0, merged = 0;
    std::uint64_t sent_to(Party from, Party to) const { return sent_.value(index(from), index(to)); }
    // Packets that arrived by a connection; and packets lost for a valid reason: the queue or the ring was full, the
    // peer accepts no packets of this length, or has no buffers.
    std::uint64_t connected(Party from, Party to) const { return connected_.value(index(from), index(to)); }
    std::uint64_t lost(Party from, Party to) const { return lost_.value(index(from), index(to)); }
    // Excuses the loss of a packet, given with its encapsulation or with its hard header.
    void excuse(const std::uint8_t* bytes, std::size_t count, unsigned int segments = 1);
    void excuse(const sk_buff* skb);
    // Longer packets do not reach this packet's destination, as far as the stack knows. The packet begins with its
    // encapsulation.
    void lower_pmtu(const sk_buff* skb, unsigned int mtu);
    Ledger ledger;

    // Netdevs; and those whose destructor runs when RTNL is dropped.
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
    void transmit(net_device* dev, const std::vector<sk_buff*>& packets);
    void schedule_queue(net_device* dev, unsigned int queue);
    void lock_transmit(net_device* dev, unsigned int queue);
    void unlock_transmit(net_device* dev, unsigned int queue);
    // The fiber holds the transmit lock of a queue of the netdev.
    bool within_transmit(const net_device* dev) const;
    // Transmits a packet on this queue, behind its packets' queue.
    bool transmit_directly(net_device* dev, unsigned int queue, sk_buff* skb);
    // Drops the packets of the queues from first on, and waits until none is transmitted.
    void empty_queues(net_device* dev, unsigned int first);
    void receive(net_device* dev, sk_buff* skb);

    // Sends a packet of data of this many bytes, or a few segments of a stream; larger than the MTU only if it is to be
    // segmented.
    void send_data(net_device* dev, Party to, unsigned int bytes);
    void send_group(net_device* dev, unsigned int group, unsigned int bytes);
    // An HCA sends the IP packet on a connection.
    void went_by_connection(const std::uint8_t* packet, std::size_t bytes);
    // A connection that the interface made, or wants, changes its state.
    void connection_changed(const net_device* dev, const std::uint8_t* gid, std::string_view before,
                            std::string_view after);
    // Established connections of a node's interfaces to this GID; and pairs of an interface and a GID that have some.
    unsigned int established(unsigned int node, const std::uint8_t* gid);
    std::size_t connected_pairs() const;
    // Repeats ARP requests to silent neighbours. CONTEXT: process.
    void look_at_neighbours(net_device* dev);
    // Once a second: stalled queues, transmit timeouts.
    void watch();
    // Checks that counters add up, with nothing in flight. CONTEXT: RTNL, closed.
    void check_sums(net_device* dev);
    static ipoib::HwAddr group_address(const net_device* dev, unsigned int group);

private:
    static unsigned int index(Party party) { return party.node * 2 + party.part; }
    // State of a TCP stream: the next sequence number, and the fields of its headers.
    struct Stream {
        std::uint32_t next = 0xffff0000, acknowledged = 0xfffff000, clock = 0xffffff00;
    };
    // The segment that is sent after its successor.
    struct Skipped {
        std::uint32_t place = 0, bytes = 0;
    };

    static void check_told(const net_device* dev);
    static void check_moderation(const net_device* dev);
    void lose(sk_buff* skb);
    // Puts the packet into the queue that the driver selects; returns its number.
    unsigned int enqueue(net_device* dev, sk_buff* skb);
    void run_queue(net_device* dev, unsigned int queue);
    // CONTEXT: under the queue's transmit lock.
    void hand_over(net_device* dev, unsigned int queue, sk_buff* skb);
    void watch_queue(net_device* dev, unsigned int queue, bool works);
    void activate(net_device* dev);
    void watch_link(net_device* dev);
    void deactivate(net_device* dev);
    // Creates a packet as the stack has it in memory; linear: number of bytes in one piece, at least.
    sk_buff* packet(net_device* dev, const ipoib::HwAddr& to, std::uint16_t type,
                    const std::vector<std::uint8_t>& bytes, unsigned int linear);
    sk_buff* ip_packet(net_device* dev, const ipoib::HwAddr& to, std::vector<std::uint8_t> bytes,
                       unsigned int segment_bytes);
    unsigned int longest(const net_device* dev, Party to) const;
    void send_datagram(net_device* dev, Party to, const ipoib::HwAddr& where, unsigned int bytes);
    void send_stream(net_device* dev, Party to, const ipoib::HwAddr& where, unsigned int bytes);
    static std::uint32_t next_place(Stream& stream, Skipped& skipped, unsigned int& data_bytes, bool may_skip);
    static void write_tcp(const Ip& ip, Stream& stream, std::uint16_t port, std::uint32_t place,
                          unsigned int header_bytes, bool last);
    static void make_odd(const Ip& ip);
    void count_sent(const net_device* dev, Party to, unsigned int packets)
    {
        sent += packets;
        sent_.of(index(dev->party), index(to)) += packets;
    }
    void send_arp(net_device* dev, unsigned int to, bool answer, const ipoib::HwAddr& where);
    void request_address(net_device* dev, unsigned int who, const ipoib::HwAddr& where);
    static void check_link_header(const sk_buff* skb);
    void resolve(net_device* dev, const sk_buff* skb, const std::vector<std::uint8_t>& bytes);

    // The ledger's part, and the comparison.
    static unsigned int flow_of(const Ip& ip);
    void remember_segments(const net_device* dev, const ipoib::HwAddr& to, const std::vector<std::uint8_t>& bytes,
                           unsigned int segment_bytes);
    Sent* sent_as(const std::uint8_t* packet);
    Sent* follower(const Sent& before, const Ip& ip, std::uint16_t port);
    static void add_merged(const Ip& model, const Sent& before, const Sent& next, unsigned int segment_bytes);
    void compare(const sk_buff* skb, std::vector<std::uint8_t>& bytes, unsigned int self);
    // Packets of a flow that go by connections arrive in the order in which they were put into the queue, unless the
    // first connection was just made, or one ended. The order of datagrams is not judged.
    void note_order(const sk_buff* skb);
    void check_order(const net_device* dev, const Sent& sent, const Ip& ip);
    void check_checksum(const net_device* dev, const sk_buff* skb, const std::vector<std::uint8_t>& bytes);
    static void check_own_may_come(net_device* dev);
    void take_data(net_device* dev, sk_buff* skb, std::vector<std::uint8_t>& bytes);

    std::unordered_map<unsigned int, net_device*> by_party_;
    Pairs<std::uint64_t> received_, sent_, connected_, lost_;
    Pairs<std::array<Stream, 2>> streams_;
    // Established connections of a party to a peer's port GUID, and when the first one was made or one ended.
    struct Connections {
        unsigned int established = 0;
        Time changed = 0;
    };
    std::map<std::pair<unsigned int, std::string>, Connections> connections_;
    Connections& connections(unsigned int party, const std::uint8_t* gid)
    {
        return connections_[{party, std::string(gid + 8, gid + 16)}];
    }
    struct PathMtu {
        unsigned int bytes = 0;
        Time since = 0;
    };
    Pairs<PathMtu> path_mtus_;
};

} // namespace sim
