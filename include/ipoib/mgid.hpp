// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Multicast addresses: ff1<scope>:<signature>:<P_Key>:<group> (RFC 4391 section 4). The kernel maps IP groups to
// hardware addresses by the device's broadcast address; what the driver owes is the P_Key in them and a check that
// nothing else reaches the subnet administrator.
#pragma once
#include <ipoib/address.hpp>

namespace ipoib {

inline constexpr std::uint16_t ipv4_signature = 0x401b;
inline constexpr std::uint16_t ipv6_signature = 0x601b;
inline constexpr std::uint8_t link_local_scope = 2;

// The MGID's P_Key has the full-member bit set always (RFC 4391 section 4).
inline void set_pkey(Gid& mgid, PKey pkey)
{
    const std::uint16_t value = pkey.as_full_member().value();
    mgid.bytes[4] = static_cast<std::uint8_t>(value >> 8);
    mgid.bytes[5] = static_cast<std::uint8_t>(value);
}

// Where all of an IPoIB link listens.
inline Gid broadcast_gid(PKey pkey)
{
    Gid gid{{0xff, 0x10 | link_local_scope, ipv4_signature >> 8, ipv4_signature & 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0xff,
             0xff, 0xff, 0xff}};
    set_pkey(gid, pkey);
    return gid;
}

// A group address that the stack made from this link's broadcast address. Anything else (a user may add any 20 bytes
// to the list of addresses) would only be refused by the SA.
inline bool belongs_to_link(const HwAddr& group, const HwAddr& broadcast)
{
    // Flags, QPN, ff1<scope>; then, past the part of the signature that tells IPv4 from IPv6, its rest. The P_Key may
    // be one that the link had before: the stack does not make addresses of groups anew.
    return std::memcmp(group.bytes, broadcast.bytes, 6) == 0 && group.bytes[7] == broadcast.bytes[7];
}

} // namespace ipoib
