// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The private data of REQ and REP, and the service id (RFC 4755 sections 3.5 and 6).
#pragma once
#include <cstdint>
#include <cstring>

#include <kernel/endian.hpp>

namespace ipoib {

// The sender's UD QPN, and the longest message that it accepts, in bytes with the encapsulation. The high byte of qpn
// is reserved.
struct CmParameters {
    kernel::Be32 qpn;
    kernel::Be32 receive_mtu;
};
static_assert(sizeof(CmParameters) == 8 && alignof(CmParameters) == 1);

// Oracle's extension, which may follow: the sender accepts messages without checksums of TCP and UDP, as the invariant
// CRC of each InfiniBand packet (IBA 7.8.1) covers them.
struct IcrcOffer {
    kernel::Be16 signature;
    kernel::Be16 capabilities;

    static constexpr std::uint16_t signed_as = 0x2211, version = 0x1000, version_bits = 0xf000, icrc = 0x0001;
    static IcrcOffer make() { return {kernel::Be16(signed_as), kernel::Be16(version | icrc)}; }
    bool valid() const
    {
        return signature.value() == signed_as && (capabilities.value() & (version_bits | icrc)) == (version | icrc);
    }
};
static_assert(sizeof(IcrcOffer) == 4 && alignof(IcrcOffer) == 1);

struct PrivateData {
    CmParameters parameters;
    IcrcOffer offer;

    static PrivateData from(const std::uint8_t* wire)
    {
        PrivateData data;
        std::memcpy(&data, wire, sizeof(data));
        return data;
    }
    // Bytes that a message carries, with or without the offer.
    static std::uint8_t bytes(bool with_offer) { return with_offer ? sizeof(PrivateData) : sizeof(CmParameters); }
};
static_assert(sizeof(PrivateData) == 12);

// The service id that an interface listens on, for its UD QPN. Both are in host byte order.
constexpr std::uint64_t service_id(std::uint32_t qpn) { return 0x1000000000000000 | qpn; }

} // namespace ipoib
