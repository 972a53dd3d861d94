// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Part of include/shim/wr.h: functions that write a work request, and do not post it.
#include "work_requests.hpp"

void shim_send_wr_init(shim_send_wr* wr, std::uint64_t id, shim_sge* sges)
{
    *wr = {};
    wr->id = id;
    wr->sges = sges;
}
void shim_send_wr_set_datagram(shim_send_wr* wr, unsigned int sges, ib_ah* ah, std::uint32_t qpn, std::uint32_t qkey)
{
    wr->count = sges;
    wr->ah = ah;
    wr->qpn = qpn;
    wr->qkey = qkey;
}
void shim_send_wr_set_segments(shim_send_wr* wr, void* headers, unsigned int header_bytes, unsigned int segment_bytes)
{
    wr->headers = static_cast<const std::uint8_t*>(headers);
    wr->header_bytes = header_bytes;
    wr->segment_bytes = segment_bytes;
}
void shim_send_wr_set_message(shim_send_wr* wr, unsigned int sges) { wr->count = sges; }
void shim_send_wr_set_flags(shim_send_wr* wr, bool signaled, bool checksum)
{
    wr->signaled = signaled;
    wr->checksum = checksum;
}
void shim_send_wr_signal(shim_send_wr* wr) { wr->signaled = true; }
void shim_send_wr_set_next(shim_send_wr* wr, shim_send_wr* next) { wr->next = next; }

void shim_recv_wr_init(shim_recv_wr* wr, std::uint64_t id, shim_sge* sges, unsigned int count)
{
    *wr = {id, sges, count, nullptr};
}
void shim_recv_wr_set_next(shim_recv_wr* wr, shim_recv_wr* next) { wr->next = next; }
shim_recv_wr* shim_recv_wr_next(const shim_recv_wr* wr) { return wr->next; }
