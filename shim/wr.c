// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Work requests: send and receive. */
#include "objects.h"
#include <rdma/ib_verbs.h>
#include <shim/wr.h>

SHIM void shim_send_wr_init(struct shim_send_wr *wr, uint64_t id, struct shim_sge *sges)
{
	wr->wr.wr.wr_id = id;
	wr->wr.wr.sg_list = (struct ib_sge *)sges;
}

SHIM void shim_send_wr_set_datagram(struct shim_send_wr *wr, unsigned int sges, struct ib_ah *ah, uint32_t qpn,
				    uint32_t qkey)
{
	wr->wr.wr.opcode = IB_WR_SEND;
	wr->wr.wr.num_sge = sges;
	wr->wr.ah = ah;
	wr->wr.remote_qpn = qpn;
	wr->wr.remote_qkey = qkey;
}

SHIM void shim_send_wr_set_segments(struct shim_send_wr *wr, void *headers, unsigned int header_bytes,
				    unsigned int segment_bytes)
{
	wr->wr.wr.opcode = IB_WR_LSO;
	wr->wr.header = headers;
	wr->wr.hlen = header_bytes;
	wr->wr.mss = segment_bytes;
}

SHIM void shim_send_wr_set_message(struct shim_send_wr *wr, unsigned int sges)
{
	wr->wr.wr.opcode = IB_WR_SEND;
	wr->wr.wr.num_sge = sges;
}

SHIM void shim_send_wr_set_flags(struct shim_send_wr *wr, bool signaled, bool checksum)
{
	wr->wr.wr.send_flags = (signaled ? IB_SEND_SIGNALED : 0) | (checksum ? IB_SEND_IP_CSUM : 0);
}

SHIM void shim_send_wr_signal(struct shim_send_wr *wr) { wr->wr.wr.send_flags |= IB_SEND_SIGNALED; }

SHIM void shim_send_wr_set_next(struct shim_send_wr *wr, struct shim_send_wr *next)
{
	wr->wr.wr.next = next ? &next->wr.wr : NULL;
}

SHIM void shim_recv_wr_init(struct shim_recv_wr *wr, uint64_t id, struct shim_sge *sges, unsigned int count)
{
	wr->wr.wr_id = id;
	wr->wr.sg_list = (struct ib_sge *)sges;
	wr->wr.num_sge = count;
}

SHIM void shim_recv_wr_set_next(struct shim_recv_wr *wr, struct shim_recv_wr *next)
{
	wr->wr.next = next ? &next->wr : NULL;
}

SHIM struct shim_recv_wr *shim_recv_wr_next(const struct shim_recv_wr *wr)
{
	return (struct shim_recv_wr *)wr->wr.next;
}
