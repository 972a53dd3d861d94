// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Multicast addresses: ff1<scope>:<signature>:<P_Key>:<group> (RFC 4391 section 4). The kernel maps IP groups to
// hardware addresses by the device's broadcast address; the driver sets the P_Key in them and keeps other addresses
// from the SA.
#pragma once
#include <ipoib/address.hpp>

namespace ipoib {

inline constexpr std::uint16_t ipv4_signature = 0x401b;
inline constexpr std::uint8_t link_local_scope = 2;

// The MGID's P_Key has the full-member bit set always (RFC 4391 section 4).
inline void set_pkey(Gid& mgid, PKey pkey)
{
    const std::uint16_t value = pkey.as_full_member().value();
    mgid.bytes[4] = static_cast<std::uint8_t>(value >> 8);
    mgid.bytes[5] = static_cast<std::uint8_t>(value);
}

// The group that all interfaces of an IPoIB link join.
inline Gid broadcast_gid(PKey pkey)
{
    Gid gid{{0xff, 0x10 | link_local_scope, ipv4_signature >> 8, ipv4_signature & 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0xff,
             0xff, 0xff, 0xff}};
    set_pkey(gid, pkey);
    return gid;
}

// True if the stack made this group address from the link's broadcast address. The SA would refuse any other; users can
// add any 20 bytes to the multicast list.
inline bool belongs_to_link(const HwAddr& group, const HwAddr& broadcast)
{
    // Compares flags, QPN and ff1<scope> (6 bytes), and the low byte of the signature, 0x1b for IPv4 (0x401b) and IPv6
    // (0x601b). The P_Key may be a former one of the link: the stack does not update the addresses.
    return std::memcmp(group.bytes, broadcast.bytes, 6) == 0 && group.bytes[7] == broadcast.bytes[7];
}

} // namespace ipoib
