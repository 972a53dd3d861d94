// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Frames between wire bytes and fields (IBA 7.7, 8.3, 9.2, 9.3).
#include <cstring>

#include "node.hpp"
#include <core.h>

using namespace soft_ib;

namespace {

constexpr unsigned int lrh_bytes = 8, grh_bytes = 40, bth_bytes = 12, deth_bytes = 8, aeth_bytes = 4;
constexpr unsigned int reth_bytes = 16, immediate_bytes = 4, atomic_eth_bytes = 28, atomic_ack_bytes = 8;
constexpr std::uint8_t management_lane = 15;
constexpr std::uint8_t next_header_iba = 0x1b;
constexpr std::uint8_t solicited_bit = 0x80;
constexpr std::uint32_t ack_request_bit = 0x80000000;

// Immediate data or an IETH.
constexpr bool has_last_word(std::uint8_t opcode)
{
    return fabric_has_immediate(opcode) || fabric_in(opcode, FABRIC_WITH_IETH);
}

constexpr unsigned int count_extension_bytes(std::uint8_t opcode)
{
    return (fabric_is_datagram(opcode) ? deth_bytes : 0) + (fabric_in(opcode, FABRIC_WITH_RETH) ? reth_bytes : 0) +
           (fabric_in(opcode, FABRIC_WITH_AETH) ? aeth_bytes : 0) +
           (fabric_in(opcode, FABRIC_ATOMICS) ? atomic_eth_bytes : 0) +
           (opcode == FABRIC_RC_ATOMIC_ACKNOWLEDGE ? atomic_ack_bytes : 0) +
           (has_last_word(opcode) ? immediate_bytes : 0);
}

// Headers behind the BTH, by opcode (IBA 9.2.1): a table, since every packet is counted at both ends of a cable.
struct ExtensionTable {
    std::uint8_t bytes[256] = {};
    constexpr ExtensionTable()
    {
        for (unsigned int opcode = 0; opcode < sizeof(bytes); ++opcode)
            bytes[opcode] = static_cast<std::uint8_t>(count_extension_bytes(static_cast<std::uint8_t>(opcode)));
    }
};
constexpr ExtensionTable extensions;

unsigned int extension_bytes(std::uint8_t opcode) { return extensions.bytes[opcode]; }

bool known(std::uint8_t opcode)
{
    if (fabric_transport_of(opcode) == FABRIC_UNRELIABLE)
        return opcode <= (FABRIC_UC | FABRIC_RC_WRITE_ONLY_IMMEDIATE);
    return opcode <= FABRIC_RC_FETCH_ADD || opcode == FABRIC_RC_SEND_LAST_INVALIDATE ||
           opcode == FABRIC_RC_SEND_ONLY_INVALIDATE || fabric_is_datagram(opcode);
}

unsigned int header_bytes(const fabric_headers& h)
{
    return lrh_bytes + (h.grh ? grh_bytes : 0) + bth_bytes + extension_bytes(h.opcode);
}

void build_extensions(const fabric_headers& h, std::uint8_t* at)
{
    if (fabric_is_datagram(h.opcode)) {
        store(at, h.qkey);
        store(at + 4, h.source_qpn & 0xffffff);
        at += deth_bytes;
    }
    if (fabric_in(h.opcode, FABRIC_WITH_RETH)) {
        store(at, h.remote_address);
        store(at + 8, h.remote_key);
        store(at + 12, h.remote_bytes);
        at += reth_bytes;
    }
    if (fabric_in(h.opcode, FABRIC_WITH_AETH)) {
        store(at, h.aeth);
        at += aeth_bytes;
    }
    if (fabric_in(h.opcode, FABRIC_ATOMICS)) {
        store(at, h.remote_address);
        store(at + 8, h.remote_key);
        store(at + 12, h.operand);
        store(at + 20, h.compare);
    }
    if (h.opcode == FABRIC_RC_ATOMIC_ACKNOWLEDGE)
        store(at, h.operand);
    if (has_last_word(h.opcode))
        store(at, h.immediate);
}

void parse_extensions(const std::uint8_t* at, fabric_headers& h)
{
    if (fabric_is_datagram(h.opcode)) {
        h.qkey = load<std::uint32_t>(at);
        h.source_qpn = load<std::uint32_t>(at + 4) & 0xffffff;
        at += deth_bytes;
    }
    if (fabric_in(h.opcode, FABRIC_WITH_RETH)) {
        h.remote_address = load<std::uint64_t>(at);
        h.remote_key = load<std::uint32_t>(at + 8);
        h.remote_bytes = load<std::uint32_t>(at + 12);
        at += reth_bytes;
    }
    if (fabric_in(h.opcode, FABRIC_WITH_AETH)) {
        h.aeth = load<std::uint32_t>(at);
        at += aeth_bytes;
    }
    if (fabric_in(h.opcode, FABRIC_ATOMICS)) {
        h.remote_address = load<std::uint64_t>(at);
        h.remote_key = load<std::uint32_t>(at + 8);
        h.operand = load<std::uint64_t>(at + 12);
        h.compare = load<std::uint64_t>(at + 20);
    }
    if (h.opcode == FABRIC_RC_ATOMIC_ACKNOWLEDGE)
        h.operand = load<std::uint64_t>(at);
    if (has_last_word(h.opcode))
        h.immediate = load<std::uint32_t>(at);
}

} // namespace

namespace soft_ib {

unsigned int words(const fabric_headers& h)
{
    return (header_bytes(h) + ((h.payload_bytes + 3) & ~3U) + icrc_bytes) / 4;
}

} // namespace soft_ib

unsigned int fabric_build_headers(const fabric_headers* h, std::uint8_t* wire)
{
    const unsigned int pad = -h->payload_bytes & 3;
    std::uint8_t* at = wire;
    at[0] = static_cast<std::uint8_t>((h->destination_qpn == 0 ? management_lane : 0) << 4);
    at[1] = static_cast<std::uint8_t>(h->sl << 4 | (h->grh ? 3 : 2));
    store(at + 2, h->dlid);
    store(at + 4, static_cast<std::uint16_t>(words(*h)));
    store(at + 6, h->slid);
    at += lrh_bytes;
    if (h->grh) {
        store(at, 6U << 28 | std::uint32_t(h->traffic_class) << 20 | (h->flow_label & 0xfffff));
        store(at + 4,
              static_cast<std::uint16_t>(bth_bytes + extension_bytes(h->opcode) + h->payload_bytes + pad + icrc_bytes));
        at[6] = next_header_iba;
        at[7] = h->hop_limit;
        std::memcpy(at + 8, h->sgid, 16);
        std::memcpy(at + 24, h->dgid, 16);
        at += grh_bytes;
    }
    at[0] = h->opcode;
    at[1] = static_cast<std::uint8_t>((h->solicited ? solicited_bit : 0) | pad << 4);
    store(at + 2, h->pkey);
    store(at + 4, h->destination_qpn & 0xffffff);
    store(at + 8, (h->ack_request ? ack_request_bit : 0) | (h->psn & FABRIC_PSN_MASK));
    at += bth_bytes;
    build_extensions(*h, at);
    at += extension_bytes(h->opcode);
    return static_cast<unsigned int>(at - wire);
}

unsigned int fabric_parse_headers(const std::uint8_t* wire, unsigned int bytes, fabric_headers* h)
{
    *h = {};
    if (bytes < lrh_bytes + bth_bytes)
        return 0;
    const unsigned int next = wire[1] & 3;
    h->sl = wire[1] >> 4;
    h->grh = next == 3;
    if (next < 2 || (h->grh && bytes < lrh_bytes + grh_bytes + bth_bytes))
        return 0;
    h->dlid = load<std::uint16_t>(wire + 2);
    h->slid = load<std::uint16_t>(wire + 6);
    const unsigned int frame_bytes = load<std::uint16_t>(wire + 4) * 4U;
    const std::uint8_t* at = wire + lrh_bytes;
    if (h->grh) {
        const auto first = load<std::uint32_t>(at);
        h->traffic_class = static_cast<std::uint8_t>(first >> 20);
        h->flow_label = first & 0xfffff;
        h->hop_limit = at[7];
        std::memcpy(h->sgid, at + 8, 16);
        std::memcpy(h->dgid, at + 24, 16);
        at += grh_bytes;
    }
    h->opcode = at[0];
    if (!known(h->opcode) || bytes < header_bytes(*h))
        return 0;
    h->solicited = at[1] & solicited_bit;
    const unsigned int pad = at[1] >> 4 & 3;
    h->pkey = load<std::uint16_t>(at + 2);
    h->destination_qpn = load<std::uint32_t>(at + 4) & 0xffffff;
    h->ack_request = load<std::uint32_t>(at + 8) & ack_request_bit;
    h->psn = load<std::uint32_t>(at + 8) & FABRIC_PSN_MASK;
    at += bth_bytes;
    parse_extensions(at, *h);
    const unsigned int around = header_bytes(*h) + icrc_bytes + pad;
    if (frame_bytes < around)
        return 0;
    h->payload_bytes = frame_bytes - around;
    return header_bytes(*h);
}
