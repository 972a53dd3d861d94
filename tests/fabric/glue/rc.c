// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reliable connections: messages cut into packets of the path's MTU and put together again, by the rules in rc.cpp.
 * The requester's half of a queue pair is worked by its HCA's engine and by the answers that arrive, under sq_lock;
 * the responder's half by whoever brings a packet, under rq_lock. No lock is held while a frame is carried.
 */
#include "compat.h"
#include "engine.h"

static const enum ib_wc_status failures[] = {
	[FABRIC_RETRY_EXCEEDED] = IB_WC_RETRY_EXC_ERR,		 [FABRIC_RNR_RETRY_EXCEEDED] = IB_WC_RNR_RETRY_EXC_ERR,
	[FABRIC_REMOTE_INVALID_REQUEST] = IB_WC_REM_INV_REQ_ERR, [FABRIC_REMOTE_ACCESS_ERROR] = IB_WC_REM_ACCESS_ERR,
	[FABRIC_REMOTE_OPERATION_ERROR] = IB_WC_REM_OP_ERR,
};

static struct soft_slot *slot_of(const struct soft_qp *qp) { return qp->hca->slot; }

static void raise_event(struct soft_qp *qp, enum ib_event_type type)
{
	struct ib_event event = { .device = qp->ib.device, .element.qp = &qp->ib, .event = type };

	if (qp->ib.event_handler)
		qp->ib.event_handler(&event, qp->ib.qp_context);
}

/* The queue pair leaves service; its engine flushes it. */
static void break_off(struct soft_qp *qp)
{
	WRITE_ONCE(qp->state, IB_QPS_ERR);
	soft_engine_kick(qp);
}

/* Header fields common to all of the connection's packets. */
static struct fabric_headers packet(const struct soft_qp *qp, u8 opcode, u32 psn)
{
	const struct fabric_port *port = fabric_hca_port(soft_fabric, slot_of(qp)->index);
	struct fabric_headers h = qp->rc.path;

	h.opcode = opcode;
	h.psn = psn;
	h.slid = port->lid;
	h.pkey = port->pkeys[qp->pkey_index];
	return h;
}

/* Requester, under sq_lock */

static u32 packets_of(const struct soft_qp *qp, const struct soft_send *send)
{
	return max(1U, DIV_ROUND_UP(send->bytes, qp->rc.mtu));
}

static struct soft_send *send_at(struct soft_qp *qp, u32 index) { return &qp->sq[index % qp->sq_size]; }

/* Finds the send that the next packet belongs to; NULL: all was sent. */
static struct soft_send *next_send(struct soft_qp *qp, u32 *packet_of_send)
{
	struct fabric_requester *requester = &qp->rc.requester;
	struct soft_send *send;

	for (; qp->rc.sq_next != qp->sq_head; qp->rc.sq_next++) {
		send = send_at(qp, qp->rc.sq_next);
		if (!send->packets) {
			send->first_psn = requester->end;
			send->packets = packets_of(qp, send);
		}
		*packet_of_send = fabric_psn_distance(send->first_psn, requester->next);
		if (*packet_of_send < send->packets)
			return send;
	}
	return NULL;
}

static u8 opcode_of(u32 index, u32 packets)
{
	if (packets == 1)
		return FABRIC_RC_SEND_ONLY;
	if (index == 0)
		return FABRIC_RC_SEND_FIRST;
	return index == packets - 1 ? FABRIC_RC_SEND_LAST : FABRIC_RC_SEND_MIDDLE;
}

static void start_timer(struct soft_qp *qp, u64 ns)
{
	qp->rc.timed_psn = qp->rc.requester.unacknowledged;
	hrtimer_start(&qp->rc.timer, ns_to_ktime(ns), HRTIMER_MODE_REL_SOFT);
}

/* The local ACK timeout; 0: none (IBA 9.7.6.1.3). */
static u64 ack_timeout_ns(const struct soft_qp *qp) { return qp->rc.ack_timeout ? 4096ULL << qp->rc.ack_timeout : 0; }

static void watch_for_answer(struct soft_qp *qp)
{
	u64 ns = ack_timeout_ns(qp);

	if (ns && qp->rc.requester.unacknowledged != qp->rc.requester.end && !hrtimer_active(&qp->rc.timer))
		start_timer(qp, ns);
}

/* Sends whose last packet was acknowledged are done. */
static void complete_acknowledged(struct soft_qp *qp, struct burst *burst)
{
	u32 before = qp->rc.requester.unacknowledged;
	struct soft_send *send;

	while (qp->sq_tail != qp->sq_head) {
		send = send_at(qp, qp->sq_tail);
		if (!send->packets ||
		    fabric_psn_distance(send->first_psn + send->packets, before) > FABRIC_PSN_MASK / 2)
			return;
		soft_complete_send(qp, send, IB_WC_SUCCESS, burst);
		if (qp->rc.sq_next == qp->sq_tail)
			qp->rc.sq_next++;
		WRITE_ONCE(qp->sq_tail, qp->sq_tail + 1);
	}
}

/* Does what the protocol says next. True: there are packets to be sent. */
static bool take_step(struct soft_qp *qp, struct fabric_step step)
{
	if (step.failure != FABRIC_NO_FAILURE) {
		qp->rc.failure = failures[step.failure];
		return true;
	}
	/* Sends before this one are complete, so a retransmission is found from here. */
	qp->rc.sq_next = qp->sq_tail;
	if (step.wait_us) {
		qp->rc.waiting = true;
		start_timer(qp, (u64)step.wait_us * NSEC_PER_USEC);
		return false;
	}
	return qp->rc.requester.next != qp->rc.requester.end;
}

static enum hrtimer_restart timer_over(struct hrtimer *timer)
{
	struct soft_qp *qp = container_of(timer, struct soft_qp, rc.timer);
	struct soft_connection *rc = &qp->rc;
	bool kick = false;
	unsigned long flags;

	spin_lock_irqsave(&qp->sq_lock, flags);
	if (rc->waiting) {
		rc->waiting = false;
		kick = true;
	} else if (rc->requester.unacknowledged == rc->requester.end || READ_ONCE(qp->state) != IB_QPS_RTS) {
		/* Nothing is missing. */
	} else if (rc->requester.unacknowledged != rc->timed_psn) {
		start_timer(qp, ack_timeout_ns(qp));
	} else {
		kick = take_step(qp, fabric_requester_timed_out(&rc->requester));
	}
	spin_unlock_irqrestore(&qp->sq_lock, flags);
	if (kick)
		soft_engine_kick(qp);
	return HRTIMER_NORESTART;
}

/* Completes all sends: the first with what went wrong, if anything did, the rest as flushed. */
static void flush_sends(struct soft_qp *qp, struct burst *burst)
{
	enum ib_wc_status status = qp->rc.failure ?: IB_WC_WR_FLUSH_ERR;
	unsigned long flags;

	spin_lock_irqsave(&qp->sq_lock, flags);
	while (qp->sq_tail != qp->sq_head) {
		soft_complete_send(qp, send_at(qp, qp->sq_tail), status, burst);
		WRITE_ONCE(qp->sq_tail, qp->sq_tail + 1);
		status = IB_WC_WR_FLUSH_ERR;
	}
	qp->rc.sq_next = qp->sq_tail;
	qp->rc.failure = IB_WC_SUCCESS;
	spin_unlock_irqrestore(&qp->sq_lock, flags);
}

/* The message under way will not be finished, and a shared queue gives this queue pair no more. */
static void flush_message(struct soft_qp *qp, struct burst *burst)
{
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR, .opcode = IB_WC_RECV, .qp = &qp->ib };
	bool taken, tell;
	unsigned long flags;

	spin_lock_irqsave(&qp->rq_lock, flags);
	taken = qp->rc.recv_taken;
	qp->rc.recv_taken = false;
	wc.wr_id = qp->rc.recv.wr_id;
	tell = qp->srq && !qp->rc.last_told;
	qp->rc.last_told = true;
	spin_unlock_irqrestore(&qp->rq_lock, flags);
	if (taken)
		soft_cq_push(to_cq(qp->ib.recv_cq), &wc, false, &burst->due);
	if (tell)
		raise_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}

bool soft_rc_step(struct soft_qp *qp, struct burst *burst)
{
	struct soft_slot *slot = slot_of(qp);
	struct frame frame = {};
	struct fabric_headers h;
	struct soft_send *send;
	unsigned long flags;
	u32 index, bytes;
	bool again;

	if (READ_ONCE(qp->rc.failure))
		WRITE_ONCE(qp->state, IB_QPS_ERR);
	if (READ_ONCE(qp->state) == IB_QPS_ERR) {
		flush_sends(qp, burst);
		flush_message(qp, burst);
		soft_flush_receives(qp, burst);
		return false;
	}
	if (READ_ONCE(qp->state) != IB_QPS_RTS)
		return false;

	spin_lock_irqsave(&qp->sq_lock, flags);
	if (READ_ONCE(qp->rc.killed) && qp->sq_head != qp->sq_tail) {
		qp->rc.failure = IB_WC_RETRY_EXC_ERR;
		spin_unlock_irqrestore(&qp->sq_lock, flags);
		return true;
	}
	send = qp->rc.waiting ? NULL : next_send(qp, &index);
	if (!send) {
		spin_unlock_irqrestore(&qp->sq_lock, flags);
		return false;
	}
	again = qp->rc.requester.next != qp->rc.requester.end;
	h = packet(qp, opcode_of(index, send->packets), qp->rc.requester.next);
	frame.headers = &h;
	frame.sge = send->sge;
	frame.sges = send->sges;
	frame.offset = index * qp->rc.mtu;
	bytes = send->bytes - frame.offset;
	h.payload_bytes = min(bytes, qp->rc.mtu);
	h.ack_request = fabric_ends(h.opcode);
	h.solicited = h.ack_request && send->headers.solicited;
	fabric_requester_sent(&qp->rc.requester);
	spin_unlock_irqrestore(&qp->sq_lock, flags);

	burst->frames++;
	COUNT(slot, rc_sent);
	if (again)
		COUNT(slot, rc_sent_again);
	/* Only the engine ends sends without an answer, so the memory stays while the frame is on its way. */
	soft_carry(slot, &frame, burst);

	spin_lock_irqsave(&qp->sq_lock, flags);
	watch_for_answer(qp);
	spin_unlock_irqrestore(&qp->sq_lock, flags);
	return true;
}

static void answer_arrived(struct soft_qp *qp, const struct fabric_headers *h, struct burst *burst)
{
	struct fabric_requester *requester = &qp->rc.requester;
	struct fabric_step step;
	unsigned long flags;
	bool kick = false;
	u32 next;

	spin_lock_irqsave(&qp->sq_lock, flags);
	next = requester->next;
	step = fabric_requester_answered(requester, h->psn, h->aeth);
	complete_acknowledged(qp, burst);
	if (step.failure || step.wait_us || requester->next != next)
		kick = take_step(qp, step);
	spin_unlock_irqrestore(&qp->sq_lock, flags);
	if (kick)
		soft_engine_kick(qp);
}

/* Responder */

static void reply(struct soft_slot *slot, struct soft_qp *qp, struct fabric_answer answer, struct burst *burst)
{
	struct fabric_headers h = packet(qp, FABRIC_RC_ACKNOWLEDGE, answer.psn);
	struct frame frame = { .headers = &h };

	h.aeth = answer.aeth;
	soft_carry(slot, &frame, burst);
}

/* Under rq_lock. */
static bool take_receive(struct soft_qp *qp)
{
	struct soft_recv *next;

	if (qp->srq)
		return soft_srq_take(qp->srq, &qp->rc.recv);
	if (qp->rq_head == qp->rq_tail)
		return false;
	next = &qp->rq[qp->rq_tail++ % qp->rq_size];
	memcpy(&qp->rc.recv, next, offsetof(struct soft_recv, sge) + next->sges * sizeof(*next->sge));
	return true;
}

static void complete_receive(struct soft_slot *slot, struct soft_qp *qp, const struct fabric_headers *h, u32 bytes,
			     enum ib_wc_status status, struct burst *burst)
{
	struct ib_wc wc = {
		.wr_id = qp->rc.recv.wr_id,
		.status = status,
		.opcode = IB_WC_RECV,
		.qp = &qp->ib,
		.byte_len = bytes,
		.src_qp = qp->rc.path.destination_qpn,
		.slid = h->slid,
		.sl = h->sl,
		.pkey_index = qp->pkey_index,
		.port_num = 1,
	};

	qp->rc.recv_taken = false;
	soft_cq_push(to_cq(qp->ib.recv_cq), &wc, h->solicited, &burst->due);
	if (status == IB_WC_SUCCESS)
		COUNT(slot, delivered);
	else
		COUNT(slot, drop_length);
}

/* Puts the next packet of a message in its place. Under rq_lock. */
static enum fabric_verdict take(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame,
				struct fabric_answer *answer, struct burst *burst)
{
	struct fabric_responder *responder = &qp->rc.responder;
	const struct fabric_headers *h = frame->headers;
	u32 offset = fabric_begins(h->opcode) ? 0 : responder->received;

	if (fabric_begins(h->opcode)) {
		if (soft_every(READ_ONCE(slot->rnr_every), &slot->rnr_of) || !take_receive(qp)) {
			COUNT(slot, rnr_nak);
			*answer = fabric_responder_not_ready(responder, qp->rc.rnr_timer);
			return FABRIC_ANSWER;
		}
		qp->rc.recv_taken = true;
	}
	if (offset + h->payload_bytes > soft_recv_bytes(&qp->rc.recv)) {
		complete_receive(slot, qp, h, 0, IB_WC_LOC_LEN_ERR, burst);
		*answer = fabric_responder_nak(responder, FABRIC_NAK_INVALID_REQUEST);
		return FABRIC_REFUSE;
	}
	soft_place(&qp->rc.recv, offset, frame);
	*answer = fabric_responder_take(responder, h);
	if (fabric_ends(h->opcode))
		complete_receive(slot, qp, h, offset + h->payload_bytes, IB_WC_SUCCESS, burst);
	return h->ack_request ? FABRIC_ANSWER : FABRIC_DISCARD;
}

static void request_arrived(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame, struct burst *burst)
{
	struct fabric_answer answer;
	enum fabric_verdict verdict;
	unsigned long flags;
	bool first;

	spin_lock_irqsave(&qp->rq_lock, flags);
	first = READ_ONCE(qp->state) == IB_QPS_RTR && !qp->rc.responder.messages && !qp->rc.responder.in_message;
	if (READ_ONCE(qp->rc.killed)) {
		answer = fabric_responder_nak(&qp->rc.responder, FABRIC_NAK_REMOTE_OPERATION);
		verdict = FABRIC_REFUSE;
	} else {
		verdict = fabric_responder_look(&qp->rc.responder, frame->headers, qp->rc.mtu, &answer);
		if (verdict == FABRIC_TAKE)
			verdict = take(slot, qp, frame, &answer, burst);
	}
	spin_unlock_irqrestore(&qp->rq_lock, flags);
	if (first && verdict != FABRIC_REFUSE)
		raise_event(qp, IB_EVENT_COMM_EST);
	if (verdict != FABRIC_DISCARD)
		reply(slot, qp, answer, burst);
	if (verdict == FABRIC_REFUSE)
		break_off(qp);
}

void soft_rc_arrive(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame, struct burst *burst)
{
	const struct fabric_headers *h = frame->headers;

	if (soft_admit(slot, qp, h) < 0)
		return;
	if (soft_every(READ_ONCE(slot->drop_rc_every), &slot->rc_dropped_of)) {
		COUNT(slot, drop_fault);
		return;
	}
	if (h->opcode == FABRIC_RC_ACKNOWLEDGE)
		answer_arrived(qp, h, burst);
	else
		request_arrived(slot, qp, frame, burst);
}

/* Verbs */

void soft_rc_init(struct soft_qp *qp)
{
	soft_hrtimer_setup(&qp->rc.timer, timer_over);
	qp->rc.mtu = 256;
}

void soft_rc_modify(struct soft_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct soft_connection *rc = &qp->rc;
	u8 least = READ_ONCE(slot_of(qp)->least_retries);

	if (mask & IB_QP_AV)
		soft_set_route(&rc->path, &attr->ah_attr, fabric_hca_port(soft_fabric, slot_of(qp)->index));
	if (mask & IB_QP_PATH_MTU)
		rc->mtu = ib_mtu_enum_to_int(attr->path_mtu);
	if (mask & IB_QP_DEST_QPN)
		rc->path.destination_qpn = attr->dest_qp_num;
	if (mask & IB_QP_MIN_RNR_TIMER)
		rc->rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_TIMEOUT)
		rc->ack_timeout = attr->timeout;
	if (mask & IB_QP_RQ_PSN)
		fabric_responder_start(&rc->responder, attr->rq_psn);
	if (mask & IB_QP_SQ_PSN)
		fabric_requester_start(&rc->requester, attr->sq_psn, max(attr->retry_cnt, least),
				       max(attr->rnr_retry, least));
}

void soft_rc_stop(struct soft_qp *qp)
{
	struct soft_connection *rc = &qp->rc;

	hrtimer_cancel(&rc->timer);
	rc->sq_next = 0;
	rc->waiting = rc->recv_taken = rc->killed = rc->last_told = false;
	rc->failure = IB_WC_SUCCESS;
}

void soft_rc_kill_all(struct soft_hca *hca)
{
	struct soft_qp *qp;
	unsigned long index;

	/* Destroying one waits for us. */
	rcu_read_lock();
	xa_for_each(&hca->qps, index, qp)
	{
		if (qp->ib.qp_type != IB_QPT_RC || READ_ONCE(qp->state) != IB_QPS_RTS)
			continue;
		WRITE_ONCE(qp->rc.killed, true);
		soft_engine_kick(qp);
	}
	rcu_read_unlock();
}
