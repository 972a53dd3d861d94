// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Checksum and segmentation offload, against checksums computed by a separate plain sum.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include <core.h>

namespace soft_ib {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::uint16_t plain_sum(const std::uint8_t* at, std::size_t count, std::uint32_t total = 0)
{
    for (std::size_t i = 0; i < count; ++i)
        total += i % 2 ? at[i] : at[i] << 8;
    while (total >> 16)
        total = (total >> 16) + (total & 0xffff);
    return static_cast<std::uint16_t>(total);
}

// An encapsulated packet of the protocol with data bytes 0, 1, 2, ...; the IP checksum is correct, the other one is
// not.
Bytes packet(std::uint8_t protocol, std::size_t data)
{
    const std::size_t header = protocol == 6 ? 20 : 8;
    Bytes bytes(4 + 20 + header + data);
    bytes[0] = 0x08;
    std::uint8_t* ip = bytes.data() + 4;
    ip[0] = 0x45;
    ip[2] = static_cast<std::uint8_t>((bytes.size() - 4) >> 8);
    ip[3] = static_cast<std::uint8_t>(bytes.size() - 4);
    ip[8] = 64;
    ip[9] = protocol;
    const std::uint8_t addresses[] = {10, 0, 0, 1, 10, 0, 0, 2};
    std::memcpy(ip + 12, addresses, sizeof(addresses));
    const auto checksum = static_cast<std::uint16_t>(~plain_sum(ip, 20));
    ip[10] = static_cast<std::uint8_t>(checksum >> 8);
    ip[11] = static_cast<std::uint8_t>(checksum);
    if (protocol == 6)
        ip[20 + 12] = 0x50;
    std::iota(bytes.begin() + static_cast<std::ptrdiff_t>(24 + header), bytes.end(), 0);
    return bytes;
}

bool transport_is_right(const Bytes& bytes)
{
    const std::uint8_t* ip = bytes.data() + 4;
    const std::size_t length = bytes.size() - 24;
    const std::uint32_t pseudo = plain_sum(ip + 12, 8) + ip[9] + static_cast<std::uint32_t>(length);
    return plain_sum(ip + 20, length, pseudo) == 0xffff;
}

bool holds(const Bytes& bytes) { return fabric_checksums_hold(bytes.data(), static_cast<std::uint32_t>(bytes.size())); }
bool fill(Bytes& bytes) { return fabric_fill_checksums(bytes.data(), static_cast<std::uint32_t>(bytes.size())); }

TEST(ChecksumTest, filled_in_checksums_are_correct)
{
    for (const std::uint8_t protocol : {6, 17}) {
        for (std::size_t data = 0; data < 40; ++data) {
            Bytes bytes = packet(protocol, data);
            EXPECT_FALSE(holds(bytes));
            EXPECT_TRUE(fill(bytes));
            EXPECT_TRUE(transport_is_right(bytes)) << data;
            EXPECT_TRUE(holds(bytes)) << data;
        }
    }
}

TEST(ChecksumTest, every_changed_byte_is_detected)
{
    Bytes bytes = packet(6, 100);
    fill(bytes);
    for (std::size_t at = 4; at < bytes.size(); ++at) {
        bytes[at] ^= 0x40;
        EXPECT_FALSE(holds(bytes)) << at;
        bytes[at] ^= 0x40;
    }
    EXPECT_TRUE(holds(bytes));
}

TEST(ChecksumTest, unsupported_packets_are_left_unchanged)
{
    Bytes fragment = packet(17, 50);
    fragment[4 + 6] = 0x20;
    Bytes ipv6 = packet(17, 50);
    ipv6[0] = 0x86, ipv6[1] = 0xdd;
    Bytes icmp = packet(17, 50);
    icmp[4 + 9] = 1;
    Bytes longer_than_the_frame = packet(6, 50);
    longer_than_the_frame[4 + 3] = 255;
    for (Bytes* bytes : {&fragment, &ipv6, &icmp, &longer_than_the_frame}) {
        const Bytes before = *bytes;
        EXPECT_FALSE(fill(*bytes));
        EXPECT_FALSE(holds(*bytes));
        EXPECT_EQ(*bytes, before);
    }
    for (std::size_t size = 0; size < 45; ++size) {
        Bytes cut = packet(6, 20);
        cut.resize(size);
        EXPECT_FALSE(holds(cut));
    }
}

TEST(ChecksumTest, segments_are_complete_packets)
{
    Bytes first = packet(6, 1000), middle = first, last = packet(6, 300);
    for (Bytes* bytes : {&first, &middle, &last}) {
        (*bytes)[4 + 20 + 4 + 3] = 0xf0; // sequence number 240
        (*bytes)[4 + 20 + 13] = 0x80 | 0x10 | 0x08 | 0x01;
    }
    fabric_make_segment(first.data(), 1044, 0, 0, false);
    fabric_make_segment(middle.data(), 1044, 1, 1000, false);
    fabric_make_segment(last.data(), 344, 2, 2000, true);
    for (const Bytes* bytes : {&first, &middle, &last})
        EXPECT_TRUE(holds(*bytes));
    const auto flags = [](const Bytes& bytes) { return bytes[4 + 20 + 13]; };
    EXPECT_EQ(flags(first), 0x80 | 0x10);
    EXPECT_EQ(flags(middle), 0x10);
    EXPECT_EQ(flags(last), 0x10 | 0x08 | 0x01);
    const auto sequence = [](const Bytes& bytes) { return bytes[26 + 4] << 8 | bytes[26 + 5]; };
    EXPECT_EQ(sequence(first), 240);
    EXPECT_EQ(sequence(middle), 1240);
    EXPECT_EQ(sequence(last), 2240);
    EXPECT_EQ(last[4 + 5], 2); // IP's identification counts on
}

} // namespace
} // namespace soft_ib
