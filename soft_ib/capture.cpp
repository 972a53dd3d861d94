// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Packets as records of a capture file: the format ERF, type InfiniBand, which Wireshark reads. The packet is complete,
// from LRH to VCRC, and both CRCs are correct (IBA 7.8).
#include <cstring>

#include "wire.hpp"
#include <core.h>

using namespace soft_ib;

namespace {

enum : std::uint8_t { erf_infiniband = 21, varying_length = 0x04 };
constexpr std::uint64_t nanoseconds_per_second = 1000000000;

// CRC that takes the least significant bit of each byte first; the polynomial's bits are in the same order.
template <class T, T polynomial>
class Crc {
public:
    void add(const std::uint8_t* bytes, std::uint32_t count)
    {
        for (; count; --count)
            rest_ = static_cast<T>(rest_ >> 8 ^ table.of[(rest_ ^ *bytes++) & 0xff]);
    }
    // Sent with the highest power first, which is the lowest byte here.
    void put(std::uint8_t* at) const
    {
        for (unsigned int i = 0; i < sizeof(T); ++i)
            at[i] = static_cast<std::uint8_t>(static_cast<T>(~rest_) >> 8 * i);
    }

private:
    struct Table {
        T of[256];
        constexpr Table() : of()
        {
            for (unsigned int byte = 0; byte < 256; ++byte) {
                T rest = static_cast<T>(byte);
                for (int bit = 0; bit < 8; ++bit)
                    rest = static_cast<T>(rest >> 1 ^ (rest & 1 ? polynomial : 0));
                of[byte] = rest;
            }
        }
    };
    static constexpr Table table{};
    T rest_ = static_cast<T>(~T{0});
};
// Ethernet's, and x^16 + x^12 + x^3 + x + 1.
using Icrc = Crc<std::uint32_t, 0xedb88320>;
using Vcrc = Crc<std::uint16_t, 0xd008>;

// Ones in fields that a switch or router may change (IBA 7.8.1).
void mask_variant_fields(bool grh, std::uint8_t* lrh)
{
    std::uint8_t* bth = lrh + 8;
    lrh[0] |= 0xf0;
    if (grh) {
        std::uint8_t* at = lrh + 8;
        std::memset(lrh, 0xff, 8);
        at[0] |= 0x0f;
        at[1] = at[2] = at[3] = 0xff;
        at[7] = 0xff;
        bth = at + 40;
    }
    bth[4] = 0xff;
}

// Seconds and 2^-32 seconds, least significant byte first.
void put_time(std::uint8_t* at, std::uint64_t nanoseconds)
{
    const std::uint64_t seconds = nanoseconds / nanoseconds_per_second;
    const std::uint64_t fraction = (nanoseconds % nanoseconds_per_second << 32) / nanoseconds_per_second;
    const std::uint64_t time = seconds << 32 | fraction;
    for (unsigned int i = 0; i < sizeof(time); ++i)
        at[i] = static_cast<std::uint8_t>(time >> 8 * i);
}

} // namespace

std::uint32_t fabric_make_record(const fabric_sighting* seen, const fabric_headers* h, const std::uint8_t* payload,
                                 std::uint8_t* record)
{
    std::uint8_t* const packet = record + FABRIC_RECORD_HEADER_BYTES;
    const unsigned int headers = fabric_build_headers(h, packet);
    const std::uint32_t padded = (h->payload_bytes + 3) & ~3U;
    if (h->payload_bytes)
        std::memcpy(packet + headers, payload, h->payload_bytes);
    std::memset(packet + headers + h->payload_bytes, 0, padded - h->payload_bytes);

    std::uint8_t masked[FABRIC_MAX_HEADER_BYTES];
    std::memcpy(masked, packet, headers);
    mask_variant_fields(h->grh, masked);
    Icrc icrc;
    icrc.add(masked, headers);
    icrc.add(packet + headers, padded);
    icrc.put(packet + headers + padded);
    Vcrc vcrc;
    vcrc.add(packet, headers + padded + icrc_bytes);
    vcrc.put(packet + headers + padded + icrc_bytes);

    const std::uint32_t bytes = headers + padded + icrc_bytes + vcrc_bytes;
    put_time(record, seen->nanoseconds);
    record[8] = erf_infiniband;
    record[9] = static_cast<std::uint8_t>(varying_length | (seen->by_switch ? 1 : 0));
    store(record + 10, static_cast<std::uint16_t>(FABRIC_RECORD_HEADER_BYTES + bytes));
    store(record + 12, seen->lost);
    store(record + 14, static_cast<std::uint16_t>(bytes));
    return FABRIC_RECORD_HEADER_BYTES + bytes;
}
