// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues, with moderation: an event after a number of entries or a time. */
#include "compat.h"
#include "engine.h"
#include <linux/log2.h>
#include <rdma/uverbs_ioctl.h>

/* Returns true if an event is due, to be raised once cq->lock is dropped. Under cq->lock. */
static bool cq_event_wanted(struct soft_cq *cq, bool solicited)
{
	if (!cq->armed || ((cq->armed & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED && !solicited))
		return false;
	if (cq->moderation_count <= 1 || !cq->moderation_us || cq->unreported >= cq->moderation_count)
		return true;
	/* The callback of a timer that has expired may have missed this entry. */
	if (!hrtimer_is_queued(&cq->timer))
		hrtimer_start(&cq->timer, ns_to_ktime((u64)cq->moderation_us * NSEC_PER_USEC), HRTIMER_MODE_REL_SOFT);
	return false;
}

static void make_event_due(struct soft_cq *cq, struct list_head *due)
{
	if (cq->event_due)
		return;
	cq->event_due = true;
	list_add_tail(&cq->due, due);
}

static void add_entry(struct soft_cq *cq, const struct ib_wc *wc, bool solicited, struct list_head *due)
{
	cq->ring[cq->head++ % cq->size] = *wc;
	cq->unreported++;
	/* An error counts as solicited (IBA 11.4.2.2). */
	if (cq_event_wanted(cq, solicited || wc->status != IB_WC_SUCCESS))
		make_event_due(cq, due);
}

/* Without the CQ's lock, inside of which is no other. */
static noinline void lose_entry(struct soft_cq *cq, struct soft_qp *qp)
{
	COUNT(to_hca(cq->ib.device)->slot, cq_overrun);
	/* Programs get an event. */
	if (!qp->user)
		pr_err_ratelimited("soft_ib: completion queue overrun\n");
	if (READ_ONCE(qp->state) != IB_QPS_ERR)
		soft_break_off(qp);
}

void soft_cq_push(struct soft_cq *cq, const struct ib_wc *wc, bool solicited, struct list_head *due)
{
	unsigned long flags;
	bool lost;

	spin_lock_irqsave(&cq->lock, flags);
	lost = !cq->dying && (cq->overrun || cq->head - cq->tail == cq->size);
	if (unlikely(lost)) {
		cq->overrun = true;
		if (!cq->overrun_told)
			make_event_due(cq, due);
	} else if (!cq->dying) {
		add_entry(cq, wc, solicited, due);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	if (unlikely(lost))
		lose_entry(cq, to_qp(wc->qp));
}

static void raise_overrun(struct soft_cq *cq)
{
	struct ib_event event = { .device = cq->ib.device, .element.cq = &cq->ib, .event = IB_EVENT_CQ_ERR };

	if (cq->ib.event_handler)
		cq->ib.event_handler(&event, cq->ib.cq_context);
}

/* due: called by the engine whose list the queue was on; otherwise an engine's event takes the place of this one. */
static void cq_event(struct soft_cq *cq, bool due)
{
	unsigned long flags;
	bool raise = false, tell = false;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->event_due == due) {
		raise = cq->armed && !cq->dying;
		tell = cq->overrun && !cq->overrun_told && !cq->dying;
		cq->overrun_told |= tell;
		cq->armed = 0;
		cq->unreported = 0;
		cq->event_due = false;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	if (unlikely(tell))
		raise_overrun(cq);
	if (!raise)
		return;
	COUNT(to_hca(cq->ib.device)->slot, cq_event);
	if (cq->ib.comp_handler)
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

/* CONTEXT: softirq, under RCU since the entries were pushed. */
void soft_cq_raise(struct list_head *due)
{
	struct soft_cq *cq;

	while ((cq = list_first_entry_or_null(due, struct soft_cq, due))) {
		list_del_init(&cq->due);
		cq_event(cq, true);
	}
}

static enum hrtimer_restart cq_timeout(struct hrtimer *timer)
{
	struct soft_cq *cq = container_of(timer, struct soft_cq, timer);

	if (READ_ONCE(cq->unreported))
		cq_event(cq, false);
	return HRTIMER_NORESTART;
}

static int create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr, SOFT_CREATE_CQ_LAST)
{
	struct soft_cq *cq = to_cq(ib);

	int ret;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe > SOFT_MAX_CQES || attr->comp_vector >= ib->device->num_comp_vectors)
		return -EINVAL;
	ret = soft_add_object(ib->device, SOFT_CQS);
	if (ret)
		return ret;
	/* Powers of two, here and below: the free-running indices wrap at 2^32. */
	cq->size = roundup_pow_of_two(attr->cqe + 1);
	cq->ring = soft_vzalloc(array_size(cq->size, sizeof(*cq->ring)), SOFT_CQ_USER);
	if (!cq->ring) {
		soft_remove_object(ib->device, SOFT_CQS);
		return -ENOMEM;
	}
	spin_lock_init(&cq->lock);
	INIT_LIST_HEAD(&cq->due);
	soft_hrtimer_setup(&cq->timer, cq_timeout);
	ib->cqe = attr->cqe;
	cq->vector = attr->comp_vector;
	atomic_inc(&to_hca(ib->device)->slot->cqs[cq->vector]);
	return 0;
}
ALLOW_ERROR_INJECTION(create_cq, ERRNO);

static int destroy_cq(struct ib_cq *ib, struct ib_udata *udata)
{
	struct soft_cq *cq = to_cq(ib);

	spin_lock_irq(&cq->lock);
	cq->dying = true;
	spin_unlock_irq(&cq->lock);
	hrtimer_cancel(&cq->timer);
	/* An engine may be about to raise its event. */
	soft_wait_for_bursts();
	soft_remove_object(ib->device, SOFT_CQS);
	atomic_dec(&to_hca(ib->device)->slot->cqs[cq->vector]);
	vfree(cq->ring);
	return 0;
}

static int modify_cq(struct ib_cq *ib, u16 count, u16 period_us)
{
	struct soft_cq *cq = to_cq(ib);

	spin_lock_irq(&cq->lock);
	cq->moderation_count = count;
	cq->moderation_us = period_us;
	spin_unlock_irq(&cq->lock);
	return 0;
}

static int resize_cq(struct ib_cq *ib, soft_cqe_count entries, struct ib_udata *udata)
{
	struct soft_cq *cq = to_cq(ib);
	struct ib_wc *ring, *unused;
	u32 i, size;

	if (entries < 1 || entries > SOFT_MAX_CQES)
		return -EINVAL;
	size = roundup_pow_of_two(entries + 1);
	ring = unused = soft_vzalloc(array_size(size, sizeof(*ring)), udata);
	if (!ring)
		return -ENOMEM;
	spin_lock_irq(&cq->lock);
	if (cq->head - cq->tail <= entries) {
		for (i = cq->tail; i != cq->head; i++)
			ring[i % size] = cq->ring[i % cq->size];
		unused = cq->ring;
		cq->ring = ring;
		cq->size = size;
		ib->cqe = entries;
	}
	spin_unlock_irq(&cq->lock);
	vfree(unused);
	/* The entries did not fit. */
	return unused == ring ? -EINVAL : 0;
}

static int poll_cq(struct ib_cq *ib, int entries, struct ib_wc *wc)
{
	struct soft_cq *cq = to_cq(ib);
	unsigned long flags;
	int n = 0;

	COUNT(to_hca(ib->device)->slot, poll);
	spin_lock_irqsave(&cq->lock, flags);
	for (; n < entries && cq->head != cq->tail; n++) {
		wc[n] = cq->ring[cq->tail++ % cq->size];
		/* Once the lock is dropped, another thread may destroy the queue pair. */
		if (ib->uobject)
			wc[n].qp = soft_numbered(to_hca(ib->device), wc[n].qp->qp_num);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

static int req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags notify)
{
	struct soft_cq *cq = to_cq(ib);
	unsigned long flags;
	int missed;

	spin_lock_irqsave(&cq->lock, flags);
	/* A request for an event on the next entry is not replaced by one for a solicited entry. */
	if (cq->armed != IB_CQ_NEXT_COMP)
		cq->armed = notify & IB_CQ_SOLICITED_MASK;
	missed = (notify & IB_CQ_REPORT_MISSED_EVENTS) && cq->head != cq->tail;
	spin_unlock_irqrestore(&cq->lock, flags);
	return missed;
}
ALLOW_ERROR_INJECTION(req_notify_cq, ERRNO);

void soft_cq_purge(struct ib_cq *ib, struct soft_qp *qp)
{
	struct soft_cq *cq = to_cq(ib);
	u32 from, to;

	spin_lock_irq(&cq->lock);
	/* Entries before the first one of the queue pair, in most queues all, stay where they are. */
	for (from = cq->tail; from != cq->head && cq->ring[from % cq->size].qp != &qp->ib; from++)
		;
	for (to = from; from != cq->head; from++)
		if (cq->ring[from % cq->size].qp != &qp->ib)
			cq->ring[to++ % cq->size] = cq->ring[from % cq->size];
	cq->head = to;
	spin_unlock_irq(&cq->lock);
}

const struct ib_device_ops soft_cq_ops = {
	.create_cq = create_cq,
	.destroy_cq = destroy_cq,
	.modify_cq = modify_cq,
	.SOFT_RESIZE_CQ = resize_cq,
	.poll_cq = poll_cq,
	.req_notify_cq = req_notify_cq,
	INIT_RDMA_OBJ_SIZE(ib_cq, soft_cq, ib),
};
