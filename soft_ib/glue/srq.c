// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues: one ring of receives for many connections, with a limit that raises an event once. */
#include "compat.h"
#include "glue.h"
#include <linux/log2.h>

static int create_srq(struct ib_srq *ib, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct soft_srq *srq = to_srq(ib);
	int ret;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (init->attr.max_sge > soft_srq_sges || init->attr.max_wr > SOFT_MAX_QUEUE)
		return -EINVAL;
	ret = soft_add_object(ib->device, SOFT_SRQS);
	if (ret)
		return ret;
	srq->user = udata;
	srq->max_sge = init->attr.max_sge;
	srq->size = roundup_pow_of_two(max(init->attr.max_wr, 1U));
	srq->ring = soft_vzalloc(array_size(srq->size, sizeof(*srq->ring)), udata);
	if (!srq->ring) {
		soft_remove_object(ib->device, SOFT_SRQS);
		return -ENOMEM;
	}
	spin_lock_init(&srq->lock);
	return 0;
}
ALLOW_ERROR_INJECTION(create_srq, ERRNO);

static int modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct soft_srq *srq = to_srq(ib);

	if ((mask & IB_SRQ_MAX_WR) || ((mask & IB_SRQ_LIMIT) && attr->srq_limit > srq->size))
		return -EINVAL;
	spin_lock_irq(&srq->lock);
	if (mask & IB_SRQ_LIMIT)
		srq->limit = attr->srq_limit;
	spin_unlock_irq(&srq->lock);
	return 0;
}

static int query_srq(struct ib_srq *ib, struct ib_srq_attr *attr)
{
	struct soft_srq *srq = to_srq(ib);

	attr->max_wr = srq->size;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = srq->limit;
	return 0;
}

static int destroy_srq(struct ib_srq *ib, struct ib_udata *udata)
{
	vfree(to_srq(ib)->ring);
	soft_remove_object(ib->device, SOFT_SRQS);
	return 0;
}

static int post_srq_recv(struct ib_srq *ib, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct soft_srq *srq = to_srq(ib);
	struct soft_slot *slot = to_hca(ib->device)->slot;
	unsigned long flags;
	int ret = 0;

	COUNT(slot, post_recv);
	spin_lock_irqsave(&srq->lock, flags);
	for (; wr; wr = wr->next) {
		if (wr->num_sge > srq->max_sge)
			ret = -EINVAL;
		else if (srq->head - srq->tail == srq->size)
			ret = -ENOMEM;
		if (ret)
			break;
		soft_record_recv(to_hca(ib->device), &srq->ring[srq->head++ % srq->size], wr, srq->user);
		COUNT(slot, recv_wr);
	}
	spin_unlock_irqrestore(&srq->lock, flags);
	if (ret)
		*bad = wr;
	return ret;
}
ALLOW_ERROR_INJECTION(post_srq_recv, ERRNO);

bool soft_srq_take(struct soft_srq *srq, struct soft_recv *recv)
{
	struct ib_event event = { .device = srq->ib.device, .event = IB_EVENT_SRQ_LIMIT_REACHED };
	const struct soft_recv *next;
	bool taken = false, limit = false;
	unsigned long flags;

	spin_lock_irqsave(&srq->lock, flags);
	if (srq->head != srq->tail) {
		next = &srq->ring[srq->tail++ % srq->size];
		memcpy(recv, next, offsetof(struct soft_recv, sge) + next->sges * sizeof(*next->sge));
		taken = true;
		limit = srq->head - srq->tail < srq->limit;
		if (limit)
			srq->limit = 0;
	}
	spin_unlock_irqrestore(&srq->lock, flags);
	if (limit && srq->ib.event_handler) {
		event.element.srq = &srq->ib;
		srq->ib.event_handler(&event, srq->ib.srq_context);
	}
	return taken;
}

const struct ib_device_ops soft_srq_ops = {
	.create_srq = create_srq,
	.modify_srq = modify_srq,
	.query_srq = query_srq,
	.destroy_srq = destroy_srq,
	.post_srq_recv = post_srq_recv,
	INIT_RDMA_OBJ_SIZE(ib_srq, soft_srq, ib),
};
