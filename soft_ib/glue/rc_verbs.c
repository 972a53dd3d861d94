// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Connections as verbs and knobs see them: attributes, end, faults. Their packets are in rc.c. */
#include "engine.h"

static struct soft_slot *slot_of(const struct soft_qp *qp) { return qp->hca->slot; }

/* Under rq_lock. */
static void modify_responder(struct soft_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct soft_connection *rc = &qp->rc;

	if (mask & IB_QP_AV)
		soft_set_route(&rc->path, &attr->ah_attr, fabric_hca_port(soft_fabric, slot_of(qp)->index));
	if (mask & IB_QP_PATH_MTU)
		rc->mtu = ib_mtu_enum_to_int(attr->path_mtu);
	if (mask & IB_QP_DEST_QPN)
		rc->path.destination_qpn = attr->dest_qp_num;
	if (mask & IB_QP_MIN_RNR_TIMER)
		rc->rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_RQ_PSN)
		fabric_responder_start(&rc->responder, attr->rq_psn);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		rc->max_readings = attr->max_dest_rd_atomic;
}

/* Under sq_lock. */
static void modify_requester(struct soft_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct soft_connection *rc = &qp->rc;
	u8 least = READ_ONCE(slot_of(qp)->min_retries);

	if (mask & IB_QP_TIMEOUT)
		rc->ack_timeout = attr->timeout;
	if (mask & IB_QP_SQ_PSN)
		fabric_requester_start(&rc->requester, attr->sq_psn, max(attr->retry_cnt, least),
				       max(attr->rnr_retry, least));
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		rc->requester.read_limit = attr->max_rd_atomic;
}

/* The path, which both halves read, changes only in states without packets. */
void soft_rc_modify(struct soft_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	spin_lock_irq(&qp->rq_lock);
	spin_lock(&qp->sq_lock);
	modify_responder(qp, attr, mask);
	modify_requester(qp, attr, mask);
	spin_unlock(&qp->sq_lock);
	spin_unlock_irq(&qp->rq_lock);
}

void soft_rc_stop(struct soft_qp *qp)
{
	struct soft_connection *rc = &qp->rc;

	hrtimer_cancel(&rc->timer);
	rc->sq_next = 0;
	rc->waiting = rc->blocked = rc->executed = rc->recv_taken = rc->killed = rc->last_told = rc->answering = false;
	rc->established_told = rc->refused = rc->flushing = false;
	rc->reading_count = 0;
	rc->late = FABRIC_DISCARD;
	rc->failure = IB_WC_SUCCESS;
	/* No packet of before is answered, or taken for an answer, afterwards. */
	rc->requester = (struct fabric_requester){};
	rc->responder = (struct fabric_responder){};
}

/* An IPv4 packet by its encapsulation, with an invalid IP version. */
static u8 uncalled_for[SOFT_MAX_FRAME] = { 0x08 };

/* Calls a function for each reliable connection. Destruction waits for this. */
static void for_each_connection(struct soft_hca *hca, void (*act)(struct soft_qp *qp, const void *context),
				const void *context)
{
	struct soft_qp *qp;
	struct burst burst;
	unsigned long index;

	local_bh_disable();
	soft_burst_start(&burst);
	xa_for_each(&hca->qps, index, qp)
	{
		if (qp->ib.qp_type == IB_QPT_RC)
			act(qp, context);
	}
	soft_burst_end(&burst);
	local_bh_enable();
}

static void talk_back(struct soft_qp *qp, const void *wr)
{
	const struct ib_send_wr *bad;

	/* A queue pair for receiving: it has space for one send. */
	if (!qp->user && qp->cap.max_send_wr == 1)
		qp->hca->ib.ops.post_send(&qp->ib, wr, &bad);
}

void soft_rc_talk_back(struct soft_hca *hca, u32 bytes)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)uncalled_for,
		.length = min_t(u32, bytes, sizeof(uncalled_for)),
		.lkey = SOFT_LOCAL_KEY,
	};
	struct ib_send_wr wr = { .opcode = IB_WR_SEND, .send_flags = SOFT_OWN_SEND, .sg_list = &sge, .num_sge = 1 };

	for_each_connection(hca, talk_back, &wr);
}

static void kill_connection(struct soft_qp *qp, const void *unused)
{
	if (READ_ONCE(qp->state) != IB_QPS_RTS)
		return;
	WRITE_ONCE(qp->rc.killed, true);
	soft_engine_kick(qp);
}

void soft_rc_kill_all(struct soft_hca *hca) { for_each_connection(hca, kill_connection, NULL); }
