// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Stand-ins for the kernel's work requests, which unit tests, simulator, thread tests and fuzzers share. What a posted
// one does differs between them.
#pragma once
#include <cstdint>

#include <generated/layout.h>
#include <shim/wr.h>

struct shim_send_wr {
    std::uint64_t id;
    shim_sge* sges;
    unsigned int count;
    ib_ah* ah;
    std::uint32_t qpn, qkey;
    bool signaled, checksum;
    const std::uint8_t* headers;
    unsigned int header_bytes, segment_bytes;
    shim_send_wr* next;
};
static_assert(sizeof(shim_send_wr) <= SHIM_SIZEOF_SEND_WR);

struct shim_recv_wr {
    std::uint64_t id;
    shim_sge* sges;
    unsigned int count;
    shim_recv_wr* next;
};
static_assert(sizeof(shim_recv_wr) <= SHIM_SIZEOF_RECV_WR);
