// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// GID, P_Key, and IPoIB's 20-byte hardware address (RFC 4391 section 9.1.1), as types. GID and hardware
// address are bytes in wire order; a P_Key, and the QPN of a hardware address, are numbers in host byte order.
#pragma once
#include <cstdint>
#include <cstring>

#include <kernel/published.hpp>
#include <shim/device.h>

namespace ipoib {

// A P_Key: 15 bits of partition, and bit 15 for full membership.
class PKey {
public:
    static constexpr std::uint16_t full_member = 0x8000;

    constexpr PKey() = default;
    constexpr explicit PKey(std::uint16_t value) : value_(value) {}
    constexpr std::uint16_t value() const { return value_; }
    // False for 0 and 0x8000, which are invalid.
    constexpr bool valid() const { return value_ & ~full_member; }
    constexpr PKey as_full_member() const { return PKey(value_ | full_member); }
    constexpr bool operator==(const PKey&) const = default;

private:
    std::uint16_t value_ = 0;
};

struct Gid {
    static constexpr std::size_t size = 16;
    std::uint8_t bytes[size] = {};

    static Gid from(const void* wire)
    {
        Gid gid;
        std::memcpy(gid.bytes, wire, size);
        return gid;
    }
    static Gid from(const shim_gid& gid) { return from(gid.raw); }
    shim_gid native() const
    {
        shim_gid gid;
        std::memcpy(gid.raw, bytes, size);
        return gid;
    }
    bool multicast() const { return bytes[0] == 0xff; }
    void set_interface_id(const Gid& other) { std::memcpy(bytes + 8, other.bytes + 8, 8); }
    bool same_interface_id(const Gid& other) const { return std::memcmp(bytes + 8, other.bytes + 8, 8) == 0; }
    // The i-th of the eight 16-bit groups of its text form.
    unsigned int group(unsigned int i) const { return static_cast<unsigned int>(bytes[2 * i] << 8 | bytes[2 * i + 1]); }
    bool operator==(const Gid&) const = default;
    bool operator<(const Gid& other) const { return std::memcmp(bytes, other.bytes, sizeof(bytes)) < 0; }
};

// A GID that is written under a lock and read without. Prefix and interface id are each read in one access; a reader
// may see only one of them changed.
class PublishedGid {
public:
    Gid load() const
    {
        Gid gid;
        const std::uint64_t halves[] = {prefix_.load_relaxed(), interface_id_.load_relaxed()};
        std::memcpy(gid.bytes, halves, Gid::size);
        return gid;
    }
    void store(const Gid& gid)
    {
        std::uint64_t halves[2];
        std::memcpy(halves, gid.bytes, Gid::size);
        prefix_.store(halves[0]);
        interface_id_.store(halves[1]);
    }

private:
    // In wire order.
    kernel::Published<std::uint64_t> prefix_, interface_id_;
};

// A hardware address: flags, 24-bit UD QPN, GID of the port; of a group: flags, the multicast QPN, MGID.
struct HwAddr {
    static constexpr std::size_t size = 20;
    // Set if the peer accepts RC connections (RFC 4755 section 3.1).
    static constexpr std::uint8_t flag_rc = 0x80;
    static constexpr std::uint32_t multicast_qpn = 0xffffff;

    std::uint8_t bytes[size] = {};

    static HwAddr from(const void* wire)
    {
        HwAddr address;
        std::memcpy(address.bytes, wire, size);
        return address;
    }
    static HwAddr of(std::uint8_t flags, std::uint32_t qpn, const Gid& gid)
    {
        HwAddr address;
        address.bytes[0] = flags;
        address.bytes[1] = static_cast<std::uint8_t>(qpn >> 16);
        address.bytes[2] = static_cast<std::uint8_t>(qpn >> 8);
        address.bytes[3] = static_cast<std::uint8_t>(qpn);
        std::memcpy(address.bytes + 4, gid.bytes, Gid::size);
        return address;
    }
    bool connected_capable() const { return bytes[0] & flag_rc; }
    std::uint32_t qpn() const { return static_cast<std::uint32_t>(bytes[1]) << 16 | bytes[2] << 8 | bytes[3]; }
    Gid gid() const { return Gid::from(bytes + 4); }
    bool multicast() const { return bytes[4] == 0xff; }
    // True if flags, QPN and subnet prefix are the same.
    bool same_but_guid(const HwAddr& other) const { return std::memcmp(bytes, other.bytes, 12) == 0; }
    bool operator==(const HwAddr&) const = default;
};

} // namespace ipoib
