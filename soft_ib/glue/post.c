// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Posting to queue pairs: work requests are only recorded; engine.c executes them, in softirq context. */
#include "engine.h"
#include <linux/uaccess.h>
#include <regions.h>

static void fill_headers(struct soft_qp *qp, const struct ib_ud_wr *ud, u32 bytes, struct fabric_headers *h)
{
	const struct fabric_port *port = fabric_hca_port(soft_fabric, qp->hca->slot->index);
	u16 pkey_index = qp->ib.qp_type == IB_QPT_GSI ? ud->pkey_index % FABRIC_PKEYS : qp->pkey_index;

	soft_set_route(h, &container_of(ud->ah, struct soft_ah, ib)->attr, port);
	h->opcode = ud->wr.opcode == IB_WR_SEND_WITH_IMM ? FABRIC_UD_SEND_ONLY_IMMEDIATE : FABRIC_UD_SEND_ONLY;
	h->pkey = port->pkeys[pkey_index];
	h->destination_qpn = ud->remote_qpn;
	h->source_qpn = qp->ib.qp_num;
	/* The top bit selects the QP's own (IBA 10.2.5). */
	h->qkey = ud->remote_qkey & 0x80000000 ? qp->qkey : ud->remote_qkey;
	h->psn = qp->psn++;
	h->payload_bytes = bytes;
}

static bool record_large_send(struct soft_send *send, const struct ib_send_wr *wr)
{
	const struct ib_ud_wr *ud = ud_wr(wr);

	if (wr->opcode != IB_WR_LSO || !ud->mss || !ud->hlen || ud->hlen > SOFT_MAX_LSO_HEADER)
		return false;
	send->segment_bytes = ud->mss;
	send->header_bytes = ud->hlen;
	memcpy(send->header, ud->header, ud->hlen);
	return true;
}

/* The peer's memory. */
static void record_rdma(struct soft_send *send, const struct ib_send_wr *wr, u8 opcode, enum ib_wc_opcode completion)
{
	send->opcode = opcode;
	send->completion = completion;
	send->headers.remote_address = rdma_wr(wr)->remote_addr;
	send->headers.remote_key = rdma_wr(wr)->rkey;
}

static bool record_atomic(struct soft_send *send, const struct ib_atomic_wr *wr)
{
	bool swap = wr->wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP;

	send->opcode = swap ? FABRIC_RC_COMPARE_SWAP : FABRIC_RC_FETCH_ADD;
	send->completion = swap ? IB_WC_COMP_SWAP : IB_WC_FETCH_ADD;
	send->headers.remote_address = wr->remote_addr;
	send->headers.remote_key = wr->rkey;
	send->headers.operand = swap ? wr->swap : wr->compare_add;
	send->headers.compare = wr->compare_add;
	return true;
}

static void record_last_word(struct soft_send *send, enum soft_last_word kind, u32 word)
{
	send->last_word = kind;
	send->headers.immediate = word;
}

static bool record_registration(struct soft_send *send, const struct ib_reg_wr *wr)
{
	send->local = SOFT_REGISTER;
	send->completion = IB_WC_REG_MR;
	send->headers.remote_key = wr->key;
	send->access = wr->access;
	return fabric_key_index(wr->key) == fabric_key_index(wr->mr->lkey);
}

static bool record_invalidation(struct soft_send *send, u32 key)
{
	send->local = SOFT_INVALIDATE;
	send->completion = IB_WC_LOCAL_INV;
	send->headers.remote_key = key;
	return true;
}

/* Fields of other operations than sends. Returns false if the queue pair cannot do the operation. */
static bool record_opcode(struct soft_qp *qp, struct soft_send *send, const struct ib_send_wr *wr)
{
	bool connected = soft_is_connected(qp), reliable = qp->transport == FABRIC_RELIABLE;

	switch (wr->opcode) {
	case IB_WR_LSO:
		return qp->segments && record_large_send(send, wr);
	case IB_WR_SEND_WITH_IMM:
		record_last_word(send, SOFT_IMMEDIATE, be32_to_cpu(wr->ex.imm_data));
		return true;
	case IB_WR_SEND_WITH_INV:
		record_last_word(send, SOFT_KEY_TO_INVALIDATE, wr->ex.invalidate_rkey);
		return reliable;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		record_last_word(send, SOFT_IMMEDIATE, be32_to_cpu(wr->ex.imm_data));
		fallthrough;
	case IB_WR_RDMA_WRITE:
		record_rdma(send, wr, FABRIC_RC_WRITE_FIRST, IB_WC_RDMA_WRITE);
		return connected;
	case IB_WR_RDMA_READ:
		record_rdma(send, wr, FABRIC_RC_READ_REQUEST, IB_WC_RDMA_READ);
		return reliable && qp->rc.requester.read_limit;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return reliable && qp->rc.requester.read_limit && record_atomic(send, atomic_wr(wr));
	case IB_WR_REG_MR:
		return reliable && !qp->user && record_registration(send, reg_wr(wr));
	case IB_WR_LOCAL_INV:
		return reliable && !qp->user && record_invalidation(send, wr->ex.invalidate_rkey);
	default:
		return false;
	}
}

/* Checks what all operations have in common. */
static int check_send(const struct soft_qp *qp, const struct ib_send_wr *wr)
{
	if (qp->state != IB_QPS_RTS && qp->state != IB_QPS_SQE && qp->state != IB_QPS_ERR)
		return -EINVAL;
	if (qp->sq_head - qp->sq_tail >= qp->sq_size)
		return -ENOMEM;
	if (wr->num_sge > qp->cap.max_send_sge)
		return -EINVAL;
	if ((wr->send_flags & IB_SEND_IP_CSUM) && (!soft_have_offloads || qp->user))
		return -EINVAL;
	if ((wr->send_flags & IB_SEND_INLINE) && !qp->cap.max_inline_data)
		return -EINVAL;
	/* An address handle is used in its own domain only. */
	if (qp->user && !soft_is_connected(qp) && ud_wr(wr)->ah->pd != qp->ib.pd)
		return -EINVAL;
	return 0;
}

/* Elements with keys, which are read when the work request is executed. Returns their bytes. */
static u64 record_elements(struct soft_qp *qp, struct soft_send *send, const struct ib_send_wr *wr)
{
	u64 bytes = 0;
	int i;

	send->sges = wr->num_sge;
	send->mapped = qp->user;
	for (i = 0; i < wr->num_sge; i++) {
		send->sge[i] = wr->sg_list[i];
		bytes += wr->sg_list[i].length;
	}
	if (unlikely(soft_has_fast_regions(qp->hca)))
		send->mapped |= soft_names_region(wr->sg_list, wr->num_sge);
	return bytes;
}

/* Bytes that the consumer may overwrite once the work request is posted. */
struct inline_data {
	u32 bytes;
	u8 data[SOFT_MAX_INLINE];
};

static u64 record_inline(struct soft_send *send, const struct inline_data *from)
{
	memcpy(send->header, from->data, from->bytes);
	send->mapped = false;
	send->sges = 1;
	send->sge[0] = (struct ib_sge){ .addr = (uintptr_t)send->header, .length = from->bytes };
	return from->bytes;
}

/* data: inline data, or NULL. Under sq_lock. */
static int record_send(struct soft_qp *qp, const struct ib_send_wr *wr, const struct inline_data *data)
{
	struct soft_send *send = &qp->sq[qp->sq_head % qp->sq_size];
	int ret = check_send(qp, wr);
	u64 bytes;

	if (ret)
		return ret;
	send->segment_bytes = 0;
	send->status = IB_WC_SUCCESS;
	send->completion = IB_WC_SEND;
	send->opcode = FABRIC_RC_SEND_FIRST;
	send->last_word = SOFT_NO_WORD;
	send->local = SOFT_NOT_LOCAL;
	send->executed = false;
	if (unlikely(wr->opcode != IB_WR_SEND) && !record_opcode(qp, send, wr))
		return -EINVAL;
	/* Only what is sent can be inline. */
	if (unlikely(data) && (send->segment_bytes || send->local || fabric_in(send->opcode, FABRIC_WITH_RESPONSE)))
		return -EINVAL;
	send->wr_id = wr->wr_id;
	send->flags = wr->send_flags;
	send->packets = 0;
	bytes = unlikely(data) ? record_inline(send, data) : record_elements(qp, send, wr);
	if (bytes > FABRIC_MAX_MESSAGE_BYTES || (fabric_in(send->opcode, FABRIC_ATOMICS) && bytes != sizeof(u64)))
		return -EINVAL;
	send->bytes = bytes;
	if (!soft_is_connected(qp))
		fill_headers(qp, ud_wr(wr), send->bytes, &send->headers);
	send->headers.solicited = wr->send_flags & IB_SEND_SOLICITED;
	/* Pairs with the load in the engine's step(), which does not take the lock. */
	smp_store_release(&qp->sq_head, qp->sq_head + 1);
	COUNT(qp->hca->slot, send_wr);
	return 0;
}

/* Copies inline data. CONTEXT: process, of the consumer, if that is one. */
static int gather_inline(const struct soft_qp *qp, const struct ib_send_wr *wr, struct inline_data *to)
{
	int i;

	to->bytes = 0;
	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->cap.max_inline_data - to->bytes)
			return -EINVAL;
		if (!qp->user)
			memcpy(to->data + to->bytes, (void *)(uintptr_t)sge->addr, sge->length);
		else if (copy_from_user(to->data + to->bytes, u64_to_user_ptr(sge->addr), sge->length))
			return -EFAULT;
		to->bytes += sge->length;
	}
	return 0;
}

/* Records one work request: its inline data are copied without the lock, since the copy may sleep. */
static int record_alone(struct soft_qp *qp, const struct ib_send_wr *wr)
{
	struct inline_data data;
	bool is_inline = wr->send_flags & IB_SEND_INLINE;
	unsigned long flags;
	int ret = is_inline ? gather_inline(qp, wr, &data) : 0;

	if (ret)
		return ret;
	spin_lock_irqsave(&qp->sq_lock, flags);
	ret = record_send(qp, wr, is_inline ? &data : NULL);
	spin_unlock_irqrestore(&qp->sq_lock, flags);
	return ret;
}

static bool any_is_inline(const struct ib_send_wr *wr)
{
	for (; wr; wr = wr->next)
		if (wr->send_flags & IB_SEND_INLINE)
			return true;
	return false;
}

/* Records work requests up to the first invalid one, which *bad becomes. */
static int record_sends(struct soft_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	unsigned long flags;
	int ret = 0;

	if (unlikely(qp->cap.max_inline_data && any_is_inline(wr))) {
		for (; wr && !ret; wr = ret ? wr : wr->next)
			ret = record_alone(qp, wr);
	} else {
		spin_lock_irqsave(&qp->sq_lock, flags);
		for (; wr && !ret; wr = ret ? wr : wr->next)
			ret = record_send(qp, wr, NULL);
		spin_unlock_irqrestore(&qp->sq_lock, flags);
	}
	if (ret)
		*bad = wr;
	return ret;
}

static int post_send(struct ib_qp *ib, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct soft_qp *qp = to_qp(ib);
	int ret;

	COUNT(qp->hca->slot, post_send);
	ret = record_sends(qp, wr, bad);
	if (!qp->user) {
		soft_engine_kick(qp);
		return ret;
	}
	/*
	 * In a process the engine would have to wait for its own thread: with bottom halves off it runs when this ends.
	 */
	local_bh_disable();
	soft_engine_kick(qp);
	local_bh_enable();
	return ret;
}
ALLOW_ERROR_INJECTION(post_send, ERRNO);

void soft_record_recv(struct soft_hca *hca, struct soft_recv *recv, const struct ib_recv_wr *wr, bool user)
{
	recv->wr_id = wr->wr_id;
	recv->sges = wr->num_sge;
	recv->mapped = user;
	if (unlikely(soft_has_fast_regions(hca)))
		recv->mapped |= soft_names_region(wr->sg_list, wr->num_sge);
	memcpy(recv->sge, wr->sg_list, wr->num_sge * sizeof(*recv->sge));
}

static int record_recv(struct soft_qp *qp, const struct ib_recv_wr *wr)
{
	if (qp->state == IB_QPS_RESET || qp->srq || wr->num_sge > qp->cap.max_recv_sge)
		return -EINVAL;
	if (qp->rq_head - qp->rq_tail >= qp->rq_size)
		return -ENOMEM;
	soft_record_recv(qp->hca, &qp->rq[qp->rq_head % qp->rq_size], wr, qp->user);
	qp->rq_head++;
	COUNT(qp->hca->slot, recv_wr);
	return 0;
}

static int post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct soft_qp *qp = to_qp(ib);
	unsigned long flags;
	int ret = 0;

	COUNT(qp->hca->slot, post_recv);
	spin_lock_irqsave(&qp->rq_lock, flags);
	for (; wr && !ret; wr = ret ? wr : wr->next)
		ret = record_recv(qp, wr);
	spin_unlock_irqrestore(&qp->rq_lock, flags);
	if (ret)
		*bad = wr;
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		soft_engine_kick(qp);
	return ret;
}
ALLOW_ERROR_INJECTION(post_recv, ERRNO);

const struct ib_device_ops soft_post_ops = {
	.post_send = post_send,
	.post_recv = post_recv,
};
