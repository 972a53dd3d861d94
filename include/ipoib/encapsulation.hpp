// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The 4-byte header of every IPoIB datagram (RFC 4391 section 6) and the pseudo header that carries the destination
// from the stack to the driver. Also the Global Route Header in front of every receive buffer (IBA 8.3).
#pragma once
#include <cstdint>

#include <generated/layout.h>
#include <ipoib/address.hpp>
#include <kernel/endian.hpp>
#include <shim/header_ops.h>

namespace ipoib {

enum class EtherType : std::uint16_t {
    ipv4 = 0x0800,
    arp = 0x0806,
    rarp = 0x8035,
    ipv6 = 0x86dd,
    tipc = 0x88ca,
};

struct Encapsulation {
    kernel::Be16 type;
    kernel::Be16 reserved;
};
static_assert(sizeof(Encapsulation) == 4 && alignof(Encapsulation) == 1);

// The first bytes of a packet from the stack. Only the encapsulation is sent.
struct HardHeader {
    HwAddr destination;
    Encapsulation encapsulation;
};
static_assert(sizeof(HardHeader) == IPOIB_HEADER_BYTES && alignof(HardHeader) == 1);

// Bytes to reserve before the hard header of an allocated packet, so that the IP header behind it is aligned to 4
// bytes. NET_IP_ALIGN is 2, for the 14 bytes of an Ethernet header, where the processor needs the alignment, and 0
// elsewhere.
constexpr unsigned int ip_padding = (4 - (SHIM_NET_IP_ALIGN + sizeof(HardHeader)) % 4) % 4;

struct Grh {
    std::uint8_t version_class_flow[4];
    kernel::Be16 payload_bytes;
    std::uint8_t next_header;
    std::uint8_t hop_limit;
    Gid sgid;
    Gid dgid;
};
static_assert(sizeof(Grh) == 40 && alignof(Grh) == 1);

// Types that are sent to neighbours. The others are ARP and RARP.
constexpr bool carried_to_neighbours(std::uint16_t type)
{
    return type == static_cast<std::uint16_t>(EtherType::ipv4) || type == static_cast<std::uint16_t>(EtherType::ipv6) ||
           type == static_cast<std::uint16_t>(EtherType::tipc);
}

constexpr bool address_resolution(std::uint16_t type)
{
    return type == static_cast<std::uint16_t>(EtherType::arp) || type == static_cast<std::uint16_t>(EtherType::rarp);
}

constexpr bool carried(std::uint16_t type) { return carried_to_neighbours(type) || address_resolution(type); }

// The largest IP packet in a frame, both in bytes. frame_bytes: 4 at least.
constexpr unsigned int ip_mtu(unsigned int frame_bytes) { return frame_bytes - sizeof(Encapsulation); }
// The smallest MTU that can be set, in bytes of IP: as in the in-tree driver, 68 (RFC 791) and the encapsulation.
constexpr unsigned int min_mtu = 72;

} // namespace ipoib
