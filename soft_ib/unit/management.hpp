// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Helpers of the fabric's tests: its memory, the SMPs of a subnet manager, and datagrams.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>

#include <core.h>

#include "wire.hpp"

namespace soft_ib {

inline constexpr std::uint16_t node_info = 0x11, switch_info = 0x12, guid_info = 0x14, port_info = 0x15,
                               pkey_table = 0x16;
inline constexpr std::uint16_t linear_table = 0x19, multicast_table = 0x1b;

struct DeleteFabric {
    void operator()(struct fabric* memory) const { ::operator delete(memory); }
};
using FabricMemory = std::unique_ptr<struct fabric, DeleteFabric>;
// Bits of widths and speeds.
inline constexpr std::uint8_t width_1x = 1, width_4x = 2, speed_sdr = 1, speed_ddr = 2, speed_qdr = 4;
// HCAs at one switch, with an MTU of 2048 bytes, 4x QDR.
inline fabric_plan plan_of(unsigned int hcas)
{
    fabric_plan plan{};
    plan.hcas = hcas;
    plan.subnets = 1;
    plan.mtu = 4;
    plan.vls = 1;
    plan.widths = width_1x | width_4x;
    plan.speeds = speed_sdr | speed_ddr | speed_qdr;
    return plan;
}
inline FabricMemory fabric_memory()
{
    return FabricMemory(static_cast<struct fabric*>(::operator new(fabric_bytes())));
}

// SwitchInfo with the largest LID that the switch forwards, by default the last one of the table's first block.
inline std::array<std::uint8_t, 64> forwarding_top(std::uint16_t lid = 63)
{
    std::array<std::uint8_t, 64> data{};
    store(data.data() + 6, lid);
    return data;
}

using MadBytes = std::array<std::uint8_t, FABRIC_MAD_BYTES>;
// An SMP by directed route from an HCA; path are the switches' egress ports. As ib_mad sends it: at its first hop.
inline MadBytes directed(Method method, std::uint16_t attribute, std::uint32_t modifier,
                         std::initializer_list<std::uint8_t> path)
{
    MadBytes mad{};
    mad[0] = mad[2] = 1;
    mad[1] = 0x81;
    mad[3] = static_cast<std::uint8_t>(method);
    mad[6] = 1;
    mad[7] = static_cast<std::uint8_t>(path.size() + 1);
    store(mad.data() + 16, attribute);
    store(mad.data() + 20, modifier);
    store<std::uint16_t>(mad.data() + 32, FABRIC_PERMISSIVE_LID);
    store<std::uint16_t>(mad.data() + 34, FABRIC_PERMISSIVE_LID);
    std::uint8_t* hop = mad.data() + 128;
    *++hop = 1;
    for (const std::uint8_t port : path)
        *++hop = port;
    return mad;
}

// A request to a performance management agent, about a port of its node.
inline MadBytes performance(Method method, std::uint16_t attribute, std::uint8_t port)
{
    MadBytes mad{};
    mad[0] = mad[2] = 1;
    mad[1] = 0x04;
    mad[3] = static_cast<std::uint8_t>(method);
    store(mad.data() + 16, attribute);
    mad[64 + 1] = port;
    return mad;
}

// Headers of a datagram from one LID to another.
inline fabric_headers datagram(std::uint16_t slid, std::uint16_t dlid)
{
    fabric_headers h{};
    h.opcode = FABRIC_UD_SEND_ONLY;
    h.slid = slid;
    h.dlid = dlid;
    h.pkey = 0xffff;
    h.destination_qpn = 0x100;
    h.source_qpn = 0x200;
    h.qkey = 0xb1b;
    h.payload_bytes = 61;
    return h;
}

// Headers of an SMP; by directed route without LIDs.
inline fabric_headers smp_headers(std::uint16_t slid = FABRIC_PERMISSIVE_LID,
                                  std::uint16_t dlid = FABRIC_PERMISSIVE_LID)
{
    fabric_headers h = datagram(slid, dlid);
    h.destination_qpn = h.source_qpn = h.qkey = 0;
    h.payload_bytes = FABRIC_MAD_BYTES;
    return h;
}
// Headers of a MAD of other classes, to QP1.
inline fabric_headers gmp_headers(std::uint16_t slid, std::uint16_t dlid)
{
    fabric_headers h = datagram(slid, dlid);
    h.destination_qpn = h.source_qpn = 1;
    h.qkey = 0x80010000;
    h.payload_bytes = FABRIC_MAD_BYTES;
    return h;
}

} // namespace soft_ib
