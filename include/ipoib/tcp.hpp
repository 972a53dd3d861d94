// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The parts of IPv4 (RFC 791) and TCP (RFC 9293) that merging received segments needs.
#pragma once
#include <cstdint>

#include <kernel/endian.hpp>

namespace ipoib {

struct Ipv4Header {
    std::uint8_t version_and_length;
    std::uint8_t service;
    kernel::Be16 total_bytes;
    kernel::Be16 identification;
    // Flags in the top three bits: reserved, don't fragment, more fragments.
    kernel::Be16 fragment;
    std::uint8_t time_to_live;
    std::uint8_t protocol;
    kernel::Be16 checksum;
    kernel::Be32 source, destination;
};
static_assert(sizeof(Ipv4Header) == 20 && alignof(Ipv4Header) == 1);

struct TcpHeader {
    kernel::Be16 source, destination;
    kernel::Be32 sequence, acknowledgement;
    // Length in 32-bit words in the top four bits; below it three reserved ones, and accurate ECN's AE.
    std::uint8_t length;
    std::uint8_t flags;
    kernel::Be16 window;
    kernel::Be16 checksum;
    kernel::Be16 urgent;
};
static_assert(sizeof(TcpHeader) == 20 && alignof(TcpHeader) == 1);

enum TcpFlag : std::uint8_t { tcp_psh = 0x08, tcp_ack = 0x10 };

// The timestamps option as every stack places it (RFC 7323 appendix A): two NOPs, kind, length, two numbers.
struct TcpTimestamps {
    kernel::Be32 preamble;
    kernel::Be32 value, echo;
    static constexpr std::uint32_t usual_preamble = 0x0101080a;
};
static_assert(sizeof(TcpTimestamps) == 12 && alignof(TcpTimestamps) == 1);

// The checksum of a header (RFC 1071); count is even, and the checksum field is zero.
inline std::uint16_t internet_checksum(const void* bytes, unsigned int count)
{
    const auto* at = static_cast<const std::uint8_t*>(bytes);
    std::uint32_t sum = 0;
    for (unsigned int i = 0; i < count; i += 2)
        sum += static_cast<std::uint32_t>(at[i] << 8 | at[i + 1]);
    sum = (sum >> 16) + (sum & 0xffff);
    return static_cast<std::uint16_t>(~((sum >> 16) + sum));
}

} // namespace ipoib
