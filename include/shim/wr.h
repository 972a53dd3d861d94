/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Work requests: send and receive. */
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

/* Builds a send in its slot: once, then what differs per packet; a datagram, or a message on a connection. */
void shim_send_wr_init(struct shim_send_wr *wr, uint64_t id, struct shim_sge *sges);
void shim_send_wr_set_datagram(struct shim_send_wr *wr, unsigned int sges, struct ib_ah *ah, uint32_t qpn,
			       uint32_t qkey);
/* The datagram's data is cut into segments of so many bytes, each behind a copy of the headers, made to fit it. */
void shim_send_wr_set_segments(struct shim_send_wr *wr, void *headers, unsigned int header_bytes,
			       unsigned int segment_bytes);
void shim_send_wr_set_message(struct shim_send_wr *wr, unsigned int sges);
/* It reports its completion; the HCA fills in the checksum. */
void shim_send_wr_set_flags(struct shim_send_wr *wr, bool signaled, bool checksum);
void shim_send_wr_signal(struct shim_send_wr *wr);
/* next may be NULL. */
void shim_send_wr_set_next(struct shim_send_wr *wr, struct shim_send_wr *next);
/* CONTEXT: any. Posts the chain. After an error, none from the refused one on was taken. refused may be NULL. */
int shim_helper_post_send(struct ib_qp *qp, struct shim_send_wr *first, struct shim_send_wr **refused);

void shim_recv_wr_init(struct shim_recv_wr *wr, uint64_t id, struct shim_sge *sges, unsigned int count);
void shim_recv_wr_set_next(struct shim_recv_wr *wr, struct shim_recv_wr *next);
struct shim_recv_wr *shim_recv_wr_next(const struct shim_recv_wr *wr);
/* CONTEXT: any. Posts the chain. After an error, none from the refused one on was taken; NULL: the HCA is silent. */
int shim_helper_post_recv(struct ib_qp *qp, struct shim_recv_wr *first, struct shim_recv_wr **refused);
int shim_helper_post_srq_recv(struct ib_srq *srq, struct shim_recv_wr *first, struct shim_recv_wr **refused);

SHIM_END
