// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Offloads of an HCA for the IPv4 packets inside IPoIB datagrams: checksums of TCP and UDP, and TCP segmentation.
#include <cstring>

#include <core.h>

namespace {

enum : std::uint32_t { encapsulation_bytes = 4, min_ip_bytes = 20, min_tcp_bytes = 20, udp_bytes = 8 };
enum : std::uint8_t { tcp = 6, udp = 17 };
enum : std::uint8_t { tcp_fin = 0x01, tcp_psh = 0x08, tcp_cwr = 0x80 };

std::uint16_t get16(const std::uint8_t* at) { return static_cast<std::uint16_t>(at[0] << 8 | at[1]); }
std::uint32_t get32(const std::uint8_t* at) { return std::uint32_t{get16(at)} << 16 | get16(at + 2); }
void put16(std::uint8_t* at, std::uint32_t value)
{
    at[0] = static_cast<std::uint8_t>(value >> 8);
    at[1] = static_cast<std::uint8_t>(value);
}
void put32(std::uint8_t* at, std::uint32_t value)
{
    put16(at, value >> 16);
    put16(at + 2, value);
}

// Adds the carry at the end (RFC 1071).
std::uint64_t add_around(std::uint64_t a, std::uint64_t b)
{
    std::uint64_t total;
    const bool carry = __builtin_add_overflow(a, b, &total);
    return total + carry;
}

std::uint64_t word_at(const std::uint8_t* bytes)
{
    std::uint64_t word;
    std::memcpy(&word, bytes, sizeof(word));
    return word;
}

// The ones' complement sum of the bytes as 16-bit words in memory order (RFC 1071), not folded.
std::uint64_t sum(const std::uint8_t* bytes, std::uint32_t count)
{
    std::uint64_t total = 0;
    // Four at a time, to be fast: real HCAs take no processor time for this.
    for (; count >= 32; bytes += 32, count -= 32)
        total = add_around(
            add_around(add_around(add_around(total, word_at(bytes)), word_at(bytes + 8)), word_at(bytes + 16)),
            word_at(bytes + 24));
    for (; count >= 8; bytes += 8, count -= 8)
        total = add_around(total, word_at(bytes));
    std::uint8_t rest[8] = {};
    std::memcpy(rest, bytes, count);
    return add_around(total, word_at(rest));
}

// In memory order, as sum() is.
std::uint16_t fold(std::uint64_t total)
{
    total = (total >> 32) + (total & 0xffffffff);
    total = (total >> 32) + (total & 0xffffffff);
    total = (total >> 16) + (total & 0xffff);
    total = (total >> 16) + (total & 0xffff);
    return static_cast<std::uint16_t>(total);
}

// Positions in a datagram's payload.
struct Packet {
    std::uint32_t ip_bytes = 0;
    // Behind the IP header; nullptr: not IPv4 with a whole TCP or UDP header in it.
    std::uint8_t* transport = nullptr;
    std::uint32_t transport_bytes = 0;
    std::uint8_t protocol = 0;

    Packet(std::uint8_t* payload, std::uint32_t bytes)
    {
        if (bytes < encapsulation_bytes + min_ip_bytes || get16(payload) != 0x0800)
            return;
        std::uint8_t* const ip = payload + encapsulation_bytes;
        const std::uint32_t total = get16(ip + 2);
        ip_bytes = (ip[0] & 15) * 4U;
        const bool fragment = get16(ip + 6) & 0x3fff;
        if (ip[0] >> 4 != 4 || ip_bytes < min_ip_bytes || total > bytes - encapsulation_bytes || fragment)
            return;
        protocol = ip[9];
        const std::uint32_t least = protocol == tcp ? min_tcp_bytes : udp_bytes;
        if ((protocol != tcp && protocol != udp) || total < ip_bytes + least)
            return;
        transport = ip + ip_bytes;
        transport_bytes = total - ip_bytes;
    }
    std::uint8_t* ip() const { return transport - ip_bytes; }
    std::uint8_t* checksum() const { return transport + (protocol == tcp ? 16 : 6); }
    std::uint64_t pseudo_header() const
    {
        std::uint8_t header[12];
        std::memcpy(header, ip() + 12, 8);
        header[8] = 0;
        header[9] = protocol;
        put16(header + 10, transport_bytes);
        return sum(header, sizeof(header));
    }
};

} // namespace

bool fabric_fill_checksums(std::uint8_t* payload, std::uint32_t bytes)
{
    const Packet packet(payload, bytes);
    if (!packet.transport)
        return false;
    std::memset(packet.checksum(), 0, 2);
    std::uint16_t value = static_cast<std::uint16_t>(
        ~fold(add_around(packet.pseudo_header(), sum(packet.transport, packet.transport_bytes))));
    // A zero in UDP means no checksum.
    if (value == 0 && packet.protocol == udp)
        value = 0xffff;
    std::memcpy(packet.checksum(), &value, sizeof(value));
    return true;
}

bool fabric_checksums_hold(const std::uint8_t* payload, std::uint32_t bytes)
{
    // Read only.
    const Packet packet(const_cast<std::uint8_t*>(payload), bytes);
    if (!packet.transport || fold(sum(packet.ip(), packet.ip_bytes)) != 0xffff)
        return false;
    if (packet.protocol == udp && get16(packet.checksum()) == 0)
        return false;
    return fold(add_around(packet.pseudo_header(), sum(packet.transport, packet.transport_bytes))) == 0xffff;
}

void fabric_make_segment(std::uint8_t* payload, std::uint32_t bytes, std::uint32_t index, std::uint32_t offset,
                         bool last)
{
    std::uint8_t* const ip = payload + encapsulation_bytes;
    put16(ip + 2, bytes - encapsulation_bytes);
    put16(ip + 4, get16(ip + 4) + index);
    put16(ip + 10, 0);
    const std::uint32_t ip_bytes = (ip[0] & 15) * 4U;
    const auto header_sum = static_cast<std::uint16_t>(~fold(sum(ip, ip_bytes)));
    std::memcpy(ip + 10, &header_sum, sizeof(header_sum));
    std::uint8_t* const transport = ip + ip_bytes;
    put32(transport + 4, get32(transport + 4) + offset);
    if (!last)
        transport[13] &= static_cast<std::uint8_t>(~(tcp_fin | tcp_psh));
    if (index > 0)
        transport[13] &= static_cast<std::uint8_t>(~tcp_cwr);
    fabric_fill_checksums(payload, bytes);
}
