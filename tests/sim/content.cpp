// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Contents of packets, and the comparison of packets that arrived with those that were sent.
#include "content.hpp"

#include <algorithm>
#include <cstring>

#include "world.hpp"

namespace sim {

using kernel::Be16;
using kernel::Be32;

std::uint64_t Ip::key() const
{
    // Ports are at the same offset in both.
    const std::uint64_t addresses = std::uint64_t(header().source.value()) << 32 | header().destination.value();
    const std::uint64_t ports = std::uint64_t(udp().source.value()) << 16 | udp().destination.value();
    const std::uint64_t packet = is_tcp() ? 0 : header().identification.value();
    return (addresses * 0x9e3779b97f4a7c15 + ports * 0xbf58476d1ce4e5b9 + packet * 0x94d049bb133111eb) >> 24;
}

std::uint32_t address_of(Party party) { return 10U << 24 | party.node << 8 | (party.part + 1); }

std::uint32_t address_of_group(unsigned int group) { return 224U << 24 | group; }

namespace {

// Eight bytes of the pattern, from an offset that is a multiple of eight.
std::uint64_t word(std::uint64_t key, std::uint32_t place) { return (key + (place >> 3)) * 0x9e3779b97f4a7c15; }

// Calls visit(offset, bytes of the pattern, count) for all data, in pieces of up to eight bytes, until it returns
// false.
template <class Visit>
void for_each_word(std::size_t count, std::uint64_t key, std::uint32_t place, Visit visit)
{
    const std::uint32_t skip = place & 7;
    std::size_t done = skip ? std::min<std::size_t>(8 - skip, count) : 0;
    if (done && !visit(0, word(key, place) >> 8 * skip, done))
        return;
    for (; done + 8 <= count; done += 8)
        if (!visit(done, word(key, place + static_cast<std::uint32_t>(done)), std::size_t(8)))
            return;
    if (done < count)
        (void)visit(done, word(key, place + static_cast<std::uint32_t>(done)), count - done);
}

} // namespace

void fill(std::uint8_t* data, std::size_t count, std::uint64_t key, std::uint32_t place)
{
    for_each_word(count, key, place, [data](std::size_t at, std::uint64_t bytes, std::size_t part) {
        if (part == 8) [[likely]]
            std::memcpy(data + at, &bytes, 8);
        else
            std::memcpy(data + at, &bytes, part);
        return true;
    });
}

std::size_t differs(const std::uint8_t* data, std::size_t count, std::uint64_t key, std::uint32_t place)
{
    std::size_t whole = count;
    for_each_word(count, key, place, [data, &whole](std::size_t at, std::uint64_t bytes, std::size_t part) {
        std::uint64_t found = 0;
        if (part == 8) [[likely]]
            std::memcpy(&found, data + at, 8);
        else
            std::memcpy(&found, data + at, part);
        std::uint64_t difference = found ^ bytes;
        if (part < 8)
            difference &= (std::uint64_t(1) << 8 * part) - 1;
        if (difference == 0) [[likely]]
            return true;
        whole = at + static_cast<std::size_t>(__builtin_ctzll(difference)) / 8;
        return false;
    });
    return whole;
}

std::uint16_t sum_of(const void* bytes, std::size_t count, std::uint32_t before)
{
    // Sums in little-endian order and swaps the result (RFC 1071 section 2 (B)).
    const auto* at = static_cast<const std::uint8_t*>(bytes);
    std::uint64_t sum = 0, words;
    for (; count >= sizeof(words); count -= sizeof(words), at += sizeof(words)) {
        std::memcpy(&words, at, sizeof(words));
        sum += (words >> 32) + (words & 0xffffffff);
    }
    words = 0;
    std::memcpy(&words, at, count);
    sum += (words >> 32) + (words & 0xffffffff);
    sum = (sum >> 32) + (sum & 0xffffffff);
    while (sum >> 16)
        sum = (sum >> 16) + (sum & 0xffff);
    const std::uint8_t halves[2] = {static_cast<std::uint8_t>(sum), static_cast<std::uint8_t>(sum >> 8)};
    std::uint32_t all = static_cast<std::uint32_t>(halves[0] << 8 | halves[1]);
    for (all += (before >> 16) + (before & 0xffff); all >> 16;)
        all = (all >> 16) + (all & 0xffff);
    return static_cast<std::uint16_t>(all);
}

std::uint16_t pseudo_header_sum(const Ip& ip, std::size_t bytes)
{
    return sum_of(&ip.header().source, 8, ip.header().protocol + static_cast<std::uint32_t>(bytes) - 20);
}

Checksum checksum_of(const std::uint8_t* packet, std::size_t bytes)
{
    const Ip ip(packet);
    if (sum_of(packet + 20, bytes - 20, pseudo_header_sum(ip, bytes)) == 0xffff)
        return Checksum::right;
    return ip.transport_checksum().value() == pseudo_header_sum(ip, bytes) ? Checksum::open : Checksum::wrong;
}

void fill_checksum(std::uint8_t* packet, std::size_t bytes)
{
    const Ip ip(packet);
    SIM_CHECK(ip.transport_checksum().value() == pseudo_header_sum(ip, bytes),
              "a checksum is filled in that is not open");
    // The field holds the pseudo header's sum.
    const std::uint16_t sum = static_cast<std::uint16_t>(~sum_of(packet + 20, bytes - 20));
    ip.transport_checksum() = Be16(sum || ip.is_tcp() ? sum : 0xffff);
}

void make_segment_headers(std::uint8_t* headers, unsigned int number, unsigned int segment_bytes,
                          unsigned int data_bytes, bool last)
{
    const Ip ip(headers);
    ipoib::Ipv4Header& header = ip.header();
    ipoib::TcpHeader& tcp = ip.tcp();
    header.total_bytes = Be16(static_cast<std::uint16_t>(ip.header_bytes() + data_bytes));
    header.identification = Be16(static_cast<std::uint16_t>(header.identification.value() + number));
    header.checksum = Be16(0);
    header.checksum = Be16(static_cast<std::uint16_t>(~sum_of(headers, 20)));
    tcp.sequence = Be32(tcp.sequence.value() + number * segment_bytes);
    if (!last)
        tcp.flags = static_cast<std::uint8_t>(tcp.flags & ~(psh | fin));
    if (number > 0)
        tcp.flags = static_cast<std::uint8_t>(tcp.flags & ~cwr);
}

// The ledger

std::uint16_t Ledger::next(unsigned int from, unsigned int to, std::uint16_t port)
{
    return static_cast<std::uint16_t>(flow(from, to, port).count);
}

Sent& Ledger::remember(unsigned int from, unsigned int to, std::uint16_t port)
{
    Flow& one = flow(from, to, port);
    // Grows up to `longest` elements. Packet n is at index n modulo that.
    if (one.count < longest && one.count == one.ring.size())
        one.ring.emplace_back();
    Sent& sent = one.ring[one.count % longest];
    sent.counter = one.count++;
    sent.came = 0;
    return sent;
}

Sent* Ledger::find(unsigned int from, unsigned int to, std::uint16_t port, std::uint16_t identification)
{
    Flow& one = flow(from, to, port);
    if (one.ring.empty())
        return nullptr;
    Sent& sent = one.ring[identification % longest % one.ring.size()];
    return static_cast<std::uint16_t>(sent.counter) == identification ? &sent : nullptr;
}

} // namespace sim
