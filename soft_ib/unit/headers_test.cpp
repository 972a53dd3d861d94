// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The encoding of frame headers: LRH, GRH, BTH and their extensions.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include <core.h>

#include "management.hpp"

namespace soft_ib {
namespace {

TEST(Headers, headers_survive_the_wire)
{
    for (const bool grh : {false, true}) {
        for (unsigned int payload = 0; payload < 9; ++payload) {
            auto h = datagram(1, 0xc005);
            h.grh = grh;
            h.sl = 3;
            h.psn = 0xabcdef;
            h.payload_bytes = payload;
            if (grh) {
                h.traffic_class = 0x12;
                h.hop_limit = 0x34;
                h.flow_label = 0x56789;
                h.dgid[0] = 0xff;
                h.sgid[15] = 0x10;
            }
            std::uint8_t wire[FABRIC_MAX_HEADER_BYTES];
            const unsigned int bytes = fabric_build_headers(&h, wire);
            EXPECT_EQ(bytes, grh ? 68U : 28U);
            fabric_headers back{};
            ASSERT_TRUE(fabric_parse_headers(wire, bytes, &back));
            EXPECT_EQ(back.slid, h.slid);
            EXPECT_EQ(back.dlid, h.dlid);
            EXPECT_EQ(back.pkey, h.pkey);
            EXPECT_EQ(back.sl, h.sl);
            EXPECT_EQ(back.psn, h.psn);
            EXPECT_EQ(back.qkey, h.qkey);
            EXPECT_EQ(back.destination_qpn, h.destination_qpn);
            EXPECT_EQ(back.source_qpn, h.source_qpn);
            EXPECT_EQ(back.payload_bytes, payload);
            EXPECT_EQ(back.grh, grh);
            EXPECT_EQ(back.traffic_class, h.traffic_class);
            EXPECT_EQ(back.flow_label, h.flow_label);
            EXPECT_EQ(std::memcmp(back.dgid, h.dgid, 16), 0);
        }
    }
}

TEST(Headers, short_or_foreign_wire_bytes_are_rejected)
{
    auto h = datagram(1, 2);
    std::uint8_t wire[FABRIC_MAX_HEADER_BYTES];
    const unsigned int bytes = fabric_build_headers(&h, wire);
    fabric_headers back{};
    for (unsigned int cut = 0; cut < bytes; ++cut)
        EXPECT_FALSE(fabric_parse_headers(wire, cut, &back)) << cut;
    // Reserved; a read on an unreliable connection; a reliable datagram.
    for (const std::uint8_t opcode : {0x15, 0x18, 0x2c, 0x37, 0x44}) {
        wire[8] = opcode;
        EXPECT_FALSE(fabric_parse_headers(wire, bytes, &back)) << unsigned(opcode);
    }
}

TEST(Headers, headers_of_every_opcode_survive_the_wire)
{
    // By opcode, bytes of headers behind LRH and BTH: RETH 16, AETH 4, immediate data or IETH 4, DETH 8,
    // AtomicETH 28, AtomicAckETH 8.
    const std::map<unsigned int, unsigned int> extensions = {
        {0x00, 0},  {0x01, 0},  {0x02, 0},  {0x03, 4},  {0x04, 0},  {0x05, 4}, {0x06, 16}, {0x07, 0},
        {0x08, 0},  {0x09, 4},  {0x0a, 16}, {0x0b, 20}, {0x0c, 16}, {0x0d, 4}, {0x0e, 0},  {0x0f, 4},
        {0x10, 4},  {0x11, 4},  {0x12, 12}, {0x13, 28}, {0x14, 28}, {0x16, 4}, {0x20, 0},  {0x21, 0},
        {0x22, 0},  {0x23, 4},  {0x24, 0},  {0x25, 4},  {0x26, 16}, {0x27, 0}, {0x28, 0},  {0x29, 4},
        {0x2a, 16}, {0x2b, 20}, {0x17, 4},  {0x64, 8},  {0x65, 12},
    };
    for (const auto& [opcode, extension] : extensions) {
        fabric_headers h{};
        h.opcode = static_cast<std::uint8_t>(opcode);
        h.slid = 1;
        h.dlid = 2;
        h.pkey = 0xffff;
        h.destination_qpn = 0x123;
        h.psn = 0xfedcba;
        h.ack_request = h.solicited = fabric_ends(h.opcode);
        h.payload_bytes = 5;
        if (fabric_is_datagram(h.opcode))
            h.qkey = 0x0b1b, h.source_qpn = 0x789;
        if (fabric_in(h.opcode, FABRIC_WITH_RETH))
            h.remote_address = 0x0123456789abcdef, h.remote_key = 0x11223344, h.remote_bytes = 0x55667788;
        if (fabric_in(h.opcode, FABRIC_ATOMICS))
            h.remote_address = 0x0123456789abcde8, h.remote_key = 0x11223344, h.compare = 0xfedcba9876543210;
        if (fabric_in(h.opcode, FABRIC_ATOMICS) || h.opcode == FABRIC_RC_ATOMIC_ACKNOWLEDGE)
            h.operand = 0x8877665544332211;
        if (fabric_in(h.opcode, FABRIC_WITH_AETH))
            h.aeth = 0x1f000007;
        if (fabric_has_immediate(h.opcode) || fabric_in(h.opcode, FABRIC_WITH_IETH))
            h.immediate = 0x99aabbcc;
        std::uint8_t wire[FABRIC_MAX_HEADER_BYTES];
        const unsigned int bytes = fabric_build_headers(&h, wire);
        EXPECT_EQ(bytes, 20 + extension) << opcode;
        fabric_headers back{};
        ASSERT_EQ(fabric_parse_headers(wire, bytes, &back), bytes) << opcode;
        EXPECT_EQ(back.opcode, h.opcode);
        EXPECT_EQ(back.psn, h.psn) << opcode;
        EXPECT_EQ(back.ack_request, h.ack_request) << opcode;
        EXPECT_EQ(back.solicited, h.solicited) << opcode;
        EXPECT_EQ(back.payload_bytes, h.payload_bytes) << opcode;
        EXPECT_EQ(back.qkey, h.qkey) << opcode;
        EXPECT_EQ(back.source_qpn, h.source_qpn) << opcode;
        EXPECT_EQ(back.aeth, h.aeth) << opcode;
        EXPECT_EQ(back.remote_address, h.remote_address) << opcode;
        EXPECT_EQ(back.remote_key, h.remote_key) << opcode;
        EXPECT_EQ(back.remote_bytes, h.remote_bytes) << opcode;
        EXPECT_EQ(back.immediate, h.immediate) << opcode;
        EXPECT_EQ(back.operand, h.operand) << opcode;
        EXPECT_EQ(back.compare, h.compare) << opcode;
        for (unsigned int cut = 0; cut < bytes; ++cut)
            EXPECT_FALSE(fabric_parse_headers(wire, cut, &back)) << opcode << ' ' << cut;
    }
}

} // namespace
} // namespace soft_ib
