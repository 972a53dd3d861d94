/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion queues and work completions. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_cq;
struct ib_device;
struct shim_wc;

/*
 * Creates a queue of at least entries. completed(cq, context) is called, from interrupt or softirq context, when an
 * armed queue gets an entry. An error pointer on failure. CONTEXT: process, may sleep.
 */
struct ib_cq *shim_ib_create_cq(struct ib_device *ca, unsigned int entries, unsigned int vector,
				void (*completed)(struct ib_cq *cq, void *context), void *context);
void shim_ib_destroy_cq(struct ib_cq *cq);
/* Takes up to entries completions. Returns their number or a negative errno. CONTEXT: any, one at a time. */
int shim_ib_poll_cq(struct ib_cq *cq, int entries, struct shim_wc *wc);
/* Has events raised after this many entries or microseconds. -EOPNOTSUPP: the HCA can't. CONTEXT: process. */
int shim_rdma_set_cq_moderation(struct ib_cq *cq, unsigned int entries, unsigned int usecs);
/*
 * Arms the queue. Returns true if no event will be raised, as completions are pending or arming failed: the caller must
 * poll again. CONTEXT: any.
 */
bool shim_ib_req_notify_cq(struct ib_cq *cq);

/* Fields of a work completion, of which wc is an array. CONTEXT: any. */
struct shim_wc *shim_wc_at(struct shim_wc *wc, int index);
uint64_t shim_wc_id(const struct shim_wc *wc);
bool shim_wc_ok(const struct shim_wc *wc);
/* Returns true if the queue pair was in ERROR (IB_WC_WR_FLUSH_ERR). */
bool shim_wc_flushed(const struct shim_wc *wc);
/* Returns true if the peer did not acknowledge (IB_WC_RETRY_EXC_ERR) or had no receive (IB_WC_RNR_RETRY_EXC_ERR). */
bool shim_wc_retries_exceeded(const struct shim_wc *wc);
int shim_wc_status(const struct shim_wc *wc);
unsigned int shim_wc_vendor_error(const struct shim_wc *wc);
/* The context that the queue pair was created with. */
void *shim_wc_qp_context(const struct shim_wc *wc);
/* Bytes received; of a datagram with the 40 of the GRH, which is valid only if shim_wc_has_grh(). */
unsigned int shim_wc_bytes(const struct shim_wc *wc);
bool shim_wc_has_grh(const struct shim_wc *wc);
bool shim_wc_checksum_ok(const struct shim_wc *wc);
uint32_t shim_wc_source_qpn(const struct shim_wc *wc);
uint16_t shim_wc_slid(const struct shim_wc *wc);

SHIM_END
