// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Records of a capture: the specification's sample packet, and packets constructed byte by byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include <core.h>

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes record_of(const fabric_headers& h, const Bytes& payload, const fabric_sighting& seen = {})
{
    Bytes record(FABRIC_MAX_AROUND_PAYLOAD + payload.size(), 0xee);
    record.resize(fabric_make_record(&seen, &h, payload.data(), record.data()));
    return record;
}

// Hexadecimal digits, with spaces between some.
Bytes bytes_of(const std::string& text)
{
    std::string digits;
    std::copy_if(text.begin(), text.end(), std::back_inserter(digits), [](char c) { return c != ' '; });
    Bytes bytes;
    for (std::size_t at = 0; at < digits.size(); at += 2)
        bytes.push_back(static_cast<std::uint8_t>(std::stoul(digits.substr(at, 2), nullptr, 16)));
    return bytes;
}

Bytes part(const Bytes& from, std::size_t at, std::size_t bytes)
{
    return {from.begin() + static_cast<std::ptrdiff_t>(at), from.begin() + static_cast<std::ptrdiff_t>(at + bytes)};
}
Bytes icrc_of(const Bytes& record) { return part(record, record.size() - 6, 4); }
Bytes vcrc_of(const Bytes& record) { return part(record, record.size() - 2, 2); }

// Polynomial division, bit by bit, each byte's lowest first; the remainder in the same order, inverted.
Bytes divide(const Bytes& bytes, std::uint64_t polynomial, unsigned int width)
{
    std::uint64_t rest = (std::uint64_t{1} << width) - 1;
    for (const std::uint8_t byte : bytes) {
        for (unsigned int bit = 0; bit < 8; ++bit) {
            const bool out = (rest >> (width - 1) & 1) != (byte >> bit & 1U);
            rest = (rest << 1 ^ (out ? polynomial : 0)) & ((std::uint64_t{1} << width) - 1);
        }
    }
    Bytes sent(width / 8);
    for (unsigned int i = 0; i < width; ++i)
        if (!(rest >> (width - 1 - i) & 1))
            sent[i / 8] |= static_cast<std::uint8_t>(1U << i % 8);
    return sent;
}

fabric_headers datagram(std::uint32_t payload_bytes)
{
    fabric_headers h{};
    h.opcode = FABRIC_UD_SEND_ONLY;
    h.slid = 0x0102;
    h.dlid = 0xc003;
    h.sl = 5;
    h.pkey = 0x8001;
    h.grh = true;
    h.traffic_class = 0xab;
    h.flow_label = 0xcdef1;
    h.hop_limit = 7;
    std::iota(h.sgid, h.sgid + 16, 0x10);
    std::iota(h.dgid, h.dgid + 16, 0xf0);
    h.solicited = true;
    h.destination_qpn = 0xffffff;
    h.psn = 0x123456;
    h.source_qpn = 0x000789;
    h.qkey = 0x00000b1b;
    h.payload_bytes = payload_bytes;
    return h;
}

// IBA 7.8.3 gives a packet with its ICRC: an RDMA WRITE, whose RETH is payload here.
TEST(CaptureTest, icrc_matches_the_specifications_sample_packet)
{
    fabric_headers h{};
    h.opcode = FABRIC_RC_WRITE_ONLY;
    h.sl = 1;
    h.dlid = 0x375c;
    h.slid = 0x17d2;
    h.pkey = 0x2487;
    h.destination_qpn = 0x87b1b3;
    h.psn = 0x0dec2a;
    h.remote_address = 0x01710a1c015d4002;
    h.remote_key = 0x38f27a05;
    h.remote_bytes = 14;
    const Bytes payload = bytes_of("bb88 4d85fd5c fba4728b c0690ed4");
    h.payload_bytes = static_cast<std::uint32_t>(payload.size());
    EXPECT_EQ(icrc_of(record_of(h, payload)), bytes_of("9625b75a"));
}

TEST(CaptureTest, record_matches_its_headers)
{
    const fabric_sighting seen{1700000000750000000, 3, true};
    const Bytes payload{0x08, 0x00, 0x00, 0x00, 0x45};
    const Bytes record = record_of(datagram(5), payload, seen);
    const Bytes expected =
        bytes_of("000000c0 00f15365"    // 1700000000.75 s
                 "15 05 0062 0003 0052" // InfiniBand, interface 1, 98 bytes, 3 lost, 82 on the wire
                 "00 53 c003 0014 0102" // LRH: SL 5, a GRH follows, 20 words
                 "6abcdef1 0020 1b 07 10111213 14151617 18191a1b 1c1d1e1f f0f1f2f3 f4f5f6f7 f8f9fafb fcfdfeff"
                 "64 b0 8001 00 ffffff 00 123456" // BTH: solicited, 3 bytes of pad
                 "00000b1b 00 000789"             // DETH
                 "08000000 45 000000");
    EXPECT_EQ(part(record, 0, record.size() - 6), expected);
}

TEST(CaptureTest, acknowledgement_has_no_payload)
{
    fabric_headers h{};
    h.opcode = FABRIC_RC_ACKNOWLEDGE;
    h.aeth = 0x1f000001;
    const Bytes record = record_of(h, {});
    EXPECT_EQ(record.size(), 16U + 8 + 12 + 4 + 4 + 2);
    EXPECT_EQ(part(record, 16 + 8 + 12, 4), bytes_of("1f000001"));
    EXPECT_EQ(record[9], 0x04) << "by an HCA";
}

TEST(CaptureTest, crcs_match_a_polynomial_division)
{
    Bytes payload(37);
    std::iota(payload.begin(), payload.end(), 1);
    for (const bool grh : {false, true}) {
        fabric_headers h = datagram(37);
        h.grh = grh;
        const Bytes record = record_of(h, payload);
        Bytes covered = part(record, 16, record.size() - 16 - 2);
        EXPECT_EQ(vcrc_of(record), divide(covered, 0x100b, 16));
        covered = part(covered, 0, covered.size() - 4);
        std::size_t bth = 8;
        if (grh) {
            std::fill(covered.begin(), covered.begin() + 8, 0xff);
            covered[8] = 0x6f;
            covered[9] = covered[10] = covered[11] = covered[8 + 7] = 0xff;
            bth += 40;
        }
        covered[0] |= 0xf0;
        covered[bth + 4] = 0xff;
        EXPECT_EQ(icrc_of(record), divide(covered, 0x04c11db7, 32));
    }
}

TEST(CaptureTest, icrc_excludes_fields_that_routers_change)
{
    const Bytes payload{1, 2, 3, 4};
    const fabric_headers sent = datagram(4);
    const Bytes before = record_of(sent, payload);
    fabric_headers h = sent;
    h.hop_limit = 6;
    h.traffic_class = 0;
    h.flow_label = 0;
    h.slid = 9;
    h.dlid = 10;
    h.sl = 0;
    EXPECT_EQ(icrc_of(record_of(h, payload)), icrc_of(before));
    EXPECT_NE(vcrc_of(record_of(h, payload)), vcrc_of(before));
    h = sent;
    h.pkey = 0x8002;
    EXPECT_NE(icrc_of(record_of(h, payload)), icrc_of(before));
    EXPECT_NE(icrc_of(record_of(sent, {1, 2, 3, 5})), icrc_of(before));
}

TEST(CaptureTest, max_packet_fits)
{
    const Bytes payload(4095, 0x55);
    EXPECT_EQ(record_of(datagram(4095), payload).size(), 16U + 8 + 40 + 12 + 8 + 4096 + 6);
}

} // namespace
