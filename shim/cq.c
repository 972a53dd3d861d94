// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues and work completions. */
#include <rdma/ib_verbs.h>
#include <shim/cq.h>

static __always_inline const struct ib_wc *completion(const struct shim_wc *wc) { return (const struct ib_wc *)wc; }

SHIM struct ib_cq *shim_ib_create_cq(struct ib_device *ca, unsigned int entries, unsigned int vector,
				     void (*completed)(struct ib_cq *cq, void *context), void *context)
{
	struct ib_cq_init_attr attr = { .cqe = entries, .comp_vector = vector };

	return ib_create_cq(ca, completed, NULL, context, &attr);
}

SHIM void shim_ib_destroy_cq(struct ib_cq *cq) { ib_destroy_cq(cq); }

SHIM int shim_ib_poll_cq(struct ib_cq *cq, int entries, struct shim_wc *wc)
{
	return ib_poll_cq(cq, entries, (struct ib_wc *)wc);
}

SHIM bool shim_ib_req_notify_cq(struct ib_cq *cq)
{
	return ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) != 0;
}

SHIM int shim_rdma_set_cq_moderation(struct ib_cq *cq, unsigned int entries, unsigned int usecs)
{
	return rdma_set_cq_moderation(cq, entries, usecs);
}

SHIM struct shim_wc *shim_wc_at(struct shim_wc *wc, int index)
{
	return (struct shim_wc *)((struct ib_wc *)wc + index);
}

SHIM uint64_t shim_wc_id(const struct shim_wc *wc) { return completion(wc)->wr_id; }
SHIM bool shim_wc_ok(const struct shim_wc *wc) { return completion(wc)->status == IB_WC_SUCCESS; }
SHIM bool shim_wc_flushed(const struct shim_wc *wc) { return completion(wc)->status == IB_WC_WR_FLUSH_ERR; }
SHIM bool shim_wc_retries_exceeded(const struct shim_wc *wc)
{
	return completion(wc)->status == IB_WC_RETRY_EXC_ERR || completion(wc)->status == IB_WC_RNR_RETRY_EXC_ERR;
}
SHIM int shim_wc_status(const struct shim_wc *wc) { return completion(wc)->status; }
SHIM unsigned int shim_wc_vendor_error(const struct shim_wc *wc) { return completion(wc)->vendor_err; }
SHIM void *shim_wc_qp_context(const struct shim_wc *wc) { return completion(wc)->qp->qp_context; }
SHIM unsigned int shim_wc_bytes(const struct shim_wc *wc) { return completion(wc)->byte_len; }
SHIM bool shim_wc_has_grh(const struct shim_wc *wc) { return completion(wc)->wc_flags & IB_WC_GRH; }
SHIM bool shim_wc_checksum_ok(const struct shim_wc *wc) { return completion(wc)->wc_flags & IB_WC_IP_CSUM_OK; }
SHIM uint32_t shim_wc_source_qpn(const struct shim_wc *wc) { return completion(wc)->src_qp; }
SHIM uint16_t shim_wc_slid(const struct shim_wc *wc) { return completion(wc)->slid; }
