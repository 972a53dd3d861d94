/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The queue pair of a reliable connection. CONTEXT: process, may sleep. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_cm_id;
struct ib_cq;
struct ib_pd;
struct ib_qp;
struct ib_srq;

/* Parameters. srq may be NULL; context is that of ipoib_last_wqe_reached() and shim_wc_qp_context(). */
struct shim_rc_qp {
	struct ib_cq *send_cq, *recv_cq;
	struct ib_srq *srq;
	unsigned int send_wrs, send_sges, recv_wrs, recv_sges;
	void *context;
};
/* An error pointer on failure. */
struct ib_qp *shim_ib_create_rc_qp(struct ib_pd *pd, const struct shim_rc_qp *wanted);
/* Modify the queue pair's state (IBA 10.3.1). */
int shim_rc_qp_to_init(struct ib_qp *qp, uint32_t port, uint16_t pkey_index);
/*
 * The same with attributes from the CM's messages; psn and rnr_timer (IBA 9.7.5.2.8) are those of this host.
 * -ECONNRESET: the peer has ended the connection meanwhile.
 */
int shim_helper_rc_qp_to_rtr(struct ib_qp *qp, struct ib_cm_id *id, uint32_t psn, uint8_t rnr_timer);
/* max_timeout (4.096 us * 2^n) and max_rnr_retries limit what the peer's messages ask for. */
int shim_helper_rc_qp_to_rts(struct ib_qp *qp, struct ib_cm_id *id, uint8_t max_timeout, uint8_t max_rnr_retries);

/* A queue pair in ERROR takes no more work requests from the shared receive queue. CONTEXT: any, hard interrupts
 * included. */
void ipoib_last_wqe_reached(void *context);

SHIM_END
