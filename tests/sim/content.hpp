// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Contents of packets: IPv4 with UDP or TCP, whose data is a function of flow and offset, and a ledger of all packets
// that a stack handed to its driver, with which the far end compares arriving ones.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <ipoib/tcp.hpp>

#include "netdevice.hpp"

namespace sim {

// The header of UDP (RFC 768).
struct UdpHeader {
    kernel::Be16 source, destination, bytes, checksum;
};
static_assert(sizeof(UdpHeader) == 8);

constexpr std::uint8_t protocol_tcp = 6, protocol_udp = 17;
enum TcpBit : std::uint8_t { fin = 0x01, psh = 0x08, ack = 0x10, urg = 0x20, ece = 0x40, cwr = 0x80 };

// An IPv4 packet in its first bytes; all accessors need the headers in one piece.
class Ip {
public:
    explicit Ip(std::uint8_t* bytes) : bytes_(bytes) {}
    explicit Ip(const std::uint8_t* bytes) : bytes_(const_cast<std::uint8_t*>(bytes)) {}

    ipoib::Ipv4Header& header() const { return *reinterpret_cast<ipoib::Ipv4Header*>(bytes_); }
    UdpHeader& udp() const { return *reinterpret_cast<UdpHeader*>(bytes_ + 20); }
    ipoib::TcpHeader& tcp() const { return *reinterpret_cast<ipoib::TcpHeader*>(bytes_ + 20); }
    // nullptr: none, or not at the usual place.
    ipoib::TcpTimestamps* timestamps() const
    {
        return tcp().length >> 4 == 8 ? reinterpret_cast<ipoib::TcpTimestamps*>(bytes_ + 40) : nullptr;
    }
    bool is_tcp() const { return header().protocol == protocol_tcp; }
    unsigned int header_bytes() const { return 20U + (is_tcp() ? (tcp().length >> 4) * 4U : 8U); }
    kernel::Be16& transport_checksum() const { return is_tcp() ? tcp().checksum : udp().checksum; }
    std::uint64_t key() const;
    // Position in the flow's pattern of the packet's first byte of data: TCP's sequence number, or 0.
    std::uint32_t place() const { return is_tcp() ? tcp().sequence.value() : 0; }

private:
    std::uint8_t* bytes_;
};

std::uint32_t address_of(Party party);
std::uint32_t address_of_group(unsigned int group);
// Writes the flow's data of this position.
void fill(std::uint8_t* data, std::size_t count, std::uint64_t key, std::uint32_t place);
// Index of the first byte that differs from the flow's data; count: none differs.
std::size_t differs(const std::uint8_t* data, std::size_t count, std::uint64_t key, std::uint32_t place);

// Sum of RFC 1071 over bytes that begin at an even offset, folded into 16 bits.
std::uint16_t sum_of(const void* bytes, std::size_t count, std::uint32_t before = 0);
std::uint16_t pseudo_header_sum(const Ip& ip, std::size_t bytes);
// State of a UDP or TCP checksum: open (it holds the pseudo header's sum, and the sender of the packet completes it),
// right or wrong.
enum class Checksum { open, right, wrong };
Checksum checksum_of(const std::uint8_t* packet, std::size_t bytes);
// Completes an open checksum.
void fill_checksum(std::uint8_t* packet, std::size_t bytes);
// Turns the headers of a large packet into those of one of its segments, with this many bytes of data; both checksums
// are left unchanged, except IP's.
void make_segment_headers(std::uint8_t* headers, unsigned int number, unsigned int segment_bytes,
                          unsigned int data_bytes, bool last);

// A packet on the wire, as its sender's stack handed it over.
struct Sent {
    std::uint64_t counter = 0;
    std::uint32_t bytes = 0;
    std::uint16_t header_bytes = 0;
    // Bit n: node n received it. Nodes from 64 on are not recorded.
    std::uint64_t came = 0;
    bool by_connection = false;
    // Place among the packets of the flow that were put into transmit queues.
    std::uint64_t place = 0;
    ipoib::HwAddr to;
    std::uint8_t header[64];

    unsigned int data_bytes() const { return bytes - header_bytes; }
};

// The latest packets of each flow, found by the IP identification in each.
class Ledger {
public:
    static constexpr unsigned int group_flow = 0xffff, arp_flow = 0xfffe;

    // The identification of the next packet of the flow.
    std::uint16_t next(unsigned int from, unsigned int to, std::uint16_t port);
    Sent& remember(unsigned int from, unsigned int to, std::uint16_t port);
    // nullptr: too old.
    Sent* find(unsigned int from, unsigned int to, std::uint16_t port, std::uint16_t identification);

    struct Flow {
        std::uint64_t count = 0;
        std::vector<Sent> ring;
        // Packets that were put into transmit queues, and the last place of one that came by a connection.
        std::uint64_t queued = 0, came = 0;
    };
    Flow& flow(unsigned int from, unsigned int to, std::uint16_t port)
    {
        return flows_[std::uint64_t(from) << 32 | std::uint64_t(to) << 16 | port];
    }

private:
    static constexpr std::size_t longest = 256;
    std::unordered_map<std::uint64_t, Flow> flows_;
};

} // namespace sim
