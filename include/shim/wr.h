/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Work requests to send and to receive. CONTEXT: any. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_ah;
struct ib_qp;
struct ib_srq;
struct shim_recv_wr;
struct shim_send_wr;

/* A scatter/gather element; the same layout as struct ib_sge. */
struct shim_sge {
	uint64_t address;
	uint32_t length;
	uint32_t lkey;
};

/* Initialises a send work request, once for all packets: its id and its elements. */
void shim_send_wr_init(struct shim_send_wr *wr, uint64_t id, struct shim_sge *sges);
/* Set what differs between packets: a datagram, or a message of a connection. sges: elements in use. */
void shim_send_wr_set_datagram(struct shim_send_wr *wr, unsigned int sges, struct ib_ah *ah, uint32_t qpn,
			       uint32_t qkey);
/* Has the HCA segment the datagram (IB_WR_LSO): segment_bytes of data each, behind headers that it adapts. */
void shim_send_wr_set_segments(struct shim_send_wr *wr, void *headers, unsigned int header_bytes,
			       unsigned int segment_bytes);
void shim_send_wr_set_message(struct shim_send_wr *wr, unsigned int sges);
/* Sets whether the send is signaled, and whether the HCA fills in the checksums. */
void shim_send_wr_set_flags(struct shim_send_wr *wr, bool signaled, bool checksum);
void shim_send_wr_signal(struct shim_send_wr *wr);
/* Links the work request to the next one; NULL: the last. */
void shim_send_wr_set_next(struct shim_send_wr *wr, struct shim_send_wr *next);
/* Posts the chain. On failure *refused is the first work request that was not accepted; refused may be NULL. */
int shim_helper_post_send(struct ib_qp *qp, struct shim_send_wr *first, struct shim_send_wr **refused);

/* Initialises a receive work request: its id and its elements. */
void shim_recv_wr_init(struct shim_recv_wr *wr, uint64_t id, struct shim_sge *sges, unsigned int count);
void shim_recv_wr_set_next(struct shim_recv_wr *wr, struct shim_recv_wr *next);
struct shim_recv_wr *shim_recv_wr_next(const struct shim_recv_wr *wr);
/* Post the chain to a queue pair, or to a shared receive queue. *refused as above, NULL on success. */
int shim_helper_post_recv(struct ib_qp *qp, struct shim_recv_wr *first, struct shim_recv_wr **refused);
int shim_helper_post_srq_recv(struct ib_srq *srq, struct shim_recv_wr *first, struct shim_recv_wr **refused);

SHIM_END
