// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reliable connections, by the rules in rc.cpp: messages split into packets of the path's MTU, and their
 * acknowledgements. This half of a queue pair, the requester, is driven by its HCA's engine and by arriving
 * acknowledgements, under sq_lock. The other half is in responder.c, RDMA in rdma.c. No lock is held while a frame is
 * carried.
 */
#include "compat.h"
#include "engine.h"

static const enum ib_wc_status failures[] = {
	[FABRIC_RETRY_EXCEEDED] = IB_WC_RETRY_EXC_ERR,		 [FABRIC_RNR_RETRY_EXCEEDED] = IB_WC_RNR_RETRY_EXC_ERR,
	[FABRIC_REMOTE_INVALID_REQUEST] = IB_WC_REM_INV_REQ_ERR, [FABRIC_REMOTE_ACCESS_ERROR] = IB_WC_REM_ACCESS_ERR,
	[FABRIC_REMOTE_OPERATION_ERROR] = IB_WC_REM_OP_ERR,
};

static struct soft_slot *slot_of(const struct soft_qp *qp) { return qp->hca->slot; }

void soft_rc_raise(struct soft_qp *qp, enum ib_event_type type)
{
	struct ib_event event = { .device = qp->ib.device, .element.qp = &qp->ib, .event = type };

	if (qp->ib.event_handler)
		qp->ib.event_handler(&event, qp->ib.qp_context);
}

/* Requester, under sq_lock */

static u32 packets_of(const struct soft_qp *qp, const struct soft_send *send)
{
	return fabric_packets(send->bytes, qp->rc.mtu);
}

static struct soft_send *send_at(struct soft_qp *qp, u32 index) { return &qp->sq[index % qp->sq_size]; }

/*
 * Executes a local work request. Returns false if it must wait, or has failed. Earlier requests may be sent again, so
 * the key that one of them may use is invalidated after them.
 */
static noinline bool execute_local(struct soft_qp *qp, struct soft_send *send)
{
	struct soft_connection *rc = &qp->rc;
	u32 key = send->headers.remote_key;
	bool done;

	if (send->executed)
		return true;
	if (send->local == SOFT_INVALIDATE ? rc->sq_next != qp->sq_tail :
					     (send->flags & IB_SEND_FENCE) && rc->requester.read_count) {
		rc->blocked = true;
		return false;
	}
	done = send->local == SOFT_REGISTER ? soft_register(qp->hca, qp->ib.pd, key, send->access) :
					      soft_invalidate(qp->hca, qp->ib.pd, key);
	rc->executed = true;
	if (!done) {
		send->status = IB_WC_MW_BIND_ERR;
		return false;
	}
	send->executed = true;
	send->first_psn = rc->requester.end;
	return true;
}

/* Finds the send of the next packet; NULL: all were sent, or a failed one is waited for. */
static struct soft_send *next_send(struct soft_qp *qp, u32 *packet_of_send)
{
	struct fabric_requester *requester = &qp->rc.requester;
	struct soft_send *send;

	for (; qp->rc.sq_next != qp->sq_head; qp->rc.sq_next++) {
		send = send_at(qp, qp->rc.sq_next);
		if (unlikely(send->status))
			return NULL;
		if (unlikely(send->local)) {
			if (!execute_local(qp, send))
				return NULL;
			continue;
		}
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

/* True if the window has space for this many PSNs, and reads that block are complete. */
static bool may_send(struct soft_qp *qp, const struct soft_send *send, u32 index)
{
	struct fabric_requester *requester = &qp->rc.requester;
	bool read = fabric_in(send->opcode, FABRIC_WITH_RESPONSE);

	if (unlikely((send->flags & IB_SEND_FENCE) && requester->read_count && requester->next == requester->end))
		return false;
	return fabric_requester_may_send(requester, read ? send->packets - index : 1, read);
}

/* Headers of a packet for RDMA, atomic operations and immediate data. */
static void more_of_packet(struct soft_qp *qp, const struct soft_send *send, u32 index, struct fabric_headers *h)
{
	h->immediate = send->headers.immediate;
	if (fabric_in(h->opcode, FABRIC_WITH_RETH)) {
		h->remote_address = send->headers.remote_address + index * qp->rc.mtu;
		h->remote_key = send->headers.remote_key;
		h->remote_bytes = send->bytes - index * qp->rc.mtu;
	}
	if (!fabric_in(h->opcode, FABRIC_WITH_RESPONSE)) {
		fabric_requester_sent(&qp->rc.requester);
		return;
	}
	if (fabric_in(h->opcode, FABRIC_ATOMICS)) {
		h->remote_address = send->headers.remote_address;
		h->remote_key = send->headers.remote_key;
		h->operand = send->headers.operand;
		h->compare = send->headers.compare;
	}
	h->payload_bytes = 0;
	fabric_requester_sent_read(&qp->rc.requester, send->packets - index);
}

/* Fills in the frame of a send's packet. */
static void next_packet(struct soft_qp *qp, const struct soft_send *send, u32 index, struct fabric_headers *h,
			struct frame *frame)
{
	u32 bytes;

	*h = soft_rc_packet(qp, soft_opcode(send, index), qp->rc.requester.next);
	frame->headers = h;
	frame->sge = send->sge;
	frame->sges = send->sges;
	frame->offset = index * qp->rc.mtu;
	bytes = send->bytes - frame->offset;
	h->payload_bytes = min(bytes, qp->rc.mtu);
	h->ack_request = fabric_ends(h->opcode);
	h->solicited = h->ack_request && send->headers.solicited;
	if (likely(send->opcode == FABRIC_RC_SEND_FIRST && !send->last_word))
		fabric_requester_sent(&qp->rc.requester);
	else
		more_of_packet(qp, send, index, h);
}

/* Ends the connection once earlier sends are complete. */
static void fail_send(struct soft_qp *qp, struct soft_send *send, enum ib_wc_status status)
{
	send->status = status;
	if (send == send_at(qp, qp->sq_tail))
		qp->rc.failure = status;
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

	if (ns && qp->rc.requester.unacknowledged != qp->rc.requester.end && !hrtimer_is_queued(&qp->rc.timer))
		start_timer(qp, ns);
}

/* Completes sends whose last packet was acknowledged, up to one that is being carried: it and its memory are in use. */
static void complete_acknowledged(struct soft_qp *qp, struct burst *burst)
{
	u32 before = qp->rc.requester.unacknowledged;
	struct soft_send *send;

	if (unlikely(qp->rc.flushing))
		return;
	while (qp->sq_tail != qp->sq_head && !(qp->rc.carrying && qp->sq_tail == qp->rc.carried)) {
		send = send_at(qp, qp->sq_tail);
		if (unlikely(send->status)) {
			qp->rc.failure = send->status;
			return;
		}
		if ((!send->packets && likely(!send->executed)) ||
		    fabric_psn_distance(send->first_psn + send->packets, before) > FABRIC_PSN_MASK / 2)
			return;
		soft_complete_send(qp, send, IB_WC_SUCCESS, burst);
		if (qp->rc.sq_next == qp->sq_tail)
			qp->rc.sq_next++;
		WRITE_ONCE(qp->sq_tail, qp->sq_tail + 1);
	}
}

/* Applies the protocol's next step. Returns true if there are packets to be sent. */
static bool take_step(struct soft_qp *qp, struct fabric_step step)
{
	if (step.failure != FABRIC_NO_FAILURE) {
		qp->rc.failure = failures[step.failure];
		return true;
	}
	/* Earlier sends are complete, so a retransmission starts from here. */
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
	if (hrtimer_is_queued(timer)) {
		/* Started again while this waited for the lock: it will expire again. */
	} else if (rc->waiting) {
		rc->waiting = false;
		kick = true;
	} else if (rc->requester.unacknowledged == rc->requester.end || READ_ONCE(qp->state) != IB_QPS_RTS) {
		/* No packet is missing. */
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

/*
 * Completes sends, up to SOFT_BURST: the first with the failure, if there is one, the rest as flushed. Returns true if
 * there are more.
 */
static bool flush_sends(struct soft_qp *qp, struct burst *burst)
{
	enum ib_wc_status status = IB_WC_WR_FLUSH_ERR;
	unsigned long flags;
	bool more;
	int i;

	spin_lock_irqsave(&qp->sq_lock, flags);
	if (qp->rc.failure && !qp->rc.flushing)
		status = qp->rc.failure;
	qp->rc.flushing = true;
	for (i = 0; i < SOFT_BURST && qp->sq_tail != qp->sq_head; i++) {
		soft_complete_send(qp, send_at(qp, qp->sq_tail), status, burst);
		WRITE_ONCE(qp->sq_tail, qp->sq_tail + 1);
		status = IB_WC_WR_FLUSH_ERR;
	}
	qp->rc.sq_next = qp->sq_tail;
	qp->rc.failure = IB_WC_SUCCESS;
	more = qp->sq_tail != qp->sq_head;
	spin_unlock_irqrestore(&qp->sq_lock, flags);
	burst->frames += i;
	return more;
}

void soft_flush_message(struct soft_qp *qp, struct burst *burst)
{
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR, .opcode = IB_WC_RECV, .qp = &qp->ib };
	bool taken, tell;
	unsigned long flags;

	spin_lock_irqsave(&qp->rq_lock, flags);
	taken = qp->rc.recv_taken;
	qp->rc.recv_taken = qp->rc.answering = false;
	qp->rc.reading_count = 0;
	qp->rc.late = FABRIC_DISCARD;
	wc.wr_id = qp->rc.recv.wr_id;
	tell = qp->srq && !qp->rc.last_told;
	qp->rc.last_told = true;
	spin_unlock_irqrestore(&qp->rq_lock, flags);
	if (taken)
		soft_cq_push(to_cq(qp->ib.recv_cq), &wc, false, &burst->due);
	if (tell)
		soft_rc_raise(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}

bool soft_flush_receives(struct soft_qp *qp, struct burst *burst)
{
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR, .opcode = IB_WC_RECV, .qp = &qp->ib };
	unsigned long flags;
	bool more;
	int i;

	spin_lock_irqsave(&qp->rq_lock, flags);
	for (i = 0; i < SOFT_BURST && qp->rq_head != qp->rq_tail; i++) {
		wc.wr_id = qp->rq[qp->rq_tail++ % qp->rq_size].wr_id;
		soft_cq_push(to_cq(qp->ib.recv_cq), &wc, false, &burst->due);
	}
	more = qp->rq_head != qp->rq_tail;
	spin_unlock_irqrestore(&qp->rq_lock, flags);
	burst->frames += i;
	return more;
}

/* The next send to be executed, or NULL. Under sq_lock. */
static struct soft_send *choose_send(struct soft_qp *qp, u32 *index, struct burst *burst)
{
	struct soft_send *send = qp->rc.waiting ? NULL : next_send(qp, index);

	while (unlikely(qp->rc.executed)) {
		qp->rc.executed = false;
		complete_acknowledged(qp, burst);
		/* An invalidation may have waited for this one alone. */
		if (!send && !qp->rc.failure)
			send = next_send(qp, index);
	}
	if (!send || may_send(qp, send, *index))
		return send;
	qp->rc.blocked = true;
	return NULL;
}

static bool has_failed(struct soft_qp *qp)
{
	if (READ_ONCE(qp->rc.failure))
		WRITE_ONCE(qp->state, IB_QPS_ERR);
	return READ_ONCE(qp->state) == IB_QPS_ERR;
}

/* Flushes a queue pair. Returns true if not all is flushed. */
static bool flush(struct soft_qp *qp, struct burst *burst)
{
	if (flush_sends(qp, burst))
		return true;
	soft_flush_message(qp, burst);
	return soft_flush_receives(qp, burst);
}

/*
 * Carries a packet of a send, whose slot and memory are in use meanwhile: an answer that arrives before the end, here
 * or on another processor, does not complete it.
 */
static void carry(struct soft_qp *qp, struct soft_send *send, const struct frame *frame, struct burst *burst)
{
	unsigned long flags;
	bool sent = true;

	if (!send->mapped)
		soft_carry(slot_of(qp), frame, burst);
	else
		sent = soft_carry_mapped(qp, qp->ib.pd, frame, 0, burst);

	spin_lock_irqsave(&qp->sq_lock, flags);
	qp->rc.carrying = false;
	if (!sent)
		fail_send(qp, send, IB_WC_LOC_PROT_ERR);
	complete_acknowledged(qp, burst);
	watch_for_answer(qp);
	spin_unlock_irqrestore(&qp->sq_lock, flags);
}

bool soft_rc_step(struct soft_qp *qp, struct burst *burst)
{
	struct soft_slot *slot = slot_of(qp);
	struct frame frame = {};
	struct fabric_headers h;
	struct soft_send *send;
	unsigned long flags;
	bool again;
	u32 index;

	if (has_failed(qp))
		return flush(qp, burst);
	if (READ_ONCE(qp->rc.reading_count) && soft_rdma_answer(qp, burst))
		return true;
	if (READ_ONCE(qp->state) != IB_QPS_RTS)
		return false;

	spin_lock_irqsave(&qp->sq_lock, flags);
	if (READ_ONCE(qp->rc.killed) && qp->sq_head != qp->sq_tail) {
		qp->rc.failure = IB_WC_RETRY_EXC_ERR;
		spin_unlock_irqrestore(&qp->sq_lock, flags);
		return true;
	}
	send = choose_send(qp, &index, burst);
	if (!send) {
		again = qp->rc.failure;
		spin_unlock_irqrestore(&qp->sq_lock, flags);
		return again;
	}
	again = qp->rc.requester.next != qp->rc.requester.end;
	next_packet(qp, send, index, &h, &frame);
	qp->rc.carried = qp->rc.sq_next;
	qp->rc.carrying = true;
	spin_unlock_irqrestore(&qp->sq_lock, flags);

	burst->frames++;
	COUNT(slot, rc_sent);
	if (again)
		COUNT(slot, rc_sent_again);
	carry(qp, send, &frame, burst);
	return true;
}

/* A packet of the response to a read or an atomic operation: writes its data to the request's elements. */
static struct fabric_step take_response(struct soft_qp *qp, const struct frame *frame)
{
	u32 psn = frame->headers->psn, at;
	struct fabric_step step;
	enum ib_wc_status status;
	struct soft_send *send;
	bool take;

	step = fabric_requester_response(&qp->rc.requester, psn, &take);
	for (at = qp->sq_tail; take && at != qp->sq_head; at++) {
		send = send_at(qp, at);
		if (fabric_psn_distance(send->first_psn, psn) >= send->packets)
			continue;
		status = soft_rdma_take_response(qp, send, fabric_psn_distance(send->first_psn, psn), frame);
		if (status)
			fail_send(qp, send, status);
		break;
	}
	return step;
}

static void answer_arrived(struct soft_qp *qp, const struct frame *frame, struct burst *burst)
{
	struct fabric_requester *requester = &qp->rc.requester;
	const struct fabric_headers *h = frame->headers;
	struct fabric_step step;
	unsigned long flags;
	bool kick = false;
	u32 next;

	spin_lock_irqsave(&qp->sq_lock, flags);
	next = requester->next;
	if (likely(h->opcode == FABRIC_RC_ACKNOWLEDGE))
		step = fabric_requester_answered(requester, h->psn, h->aeth);
	else
		step = take_response(qp, frame);
	complete_acknowledged(qp, burst);
	if (step.failure || step.wait_us || requester->next != next)
		kick = take_step(qp, step);
	if (unlikely(qp->rc.blocked || qp->rc.failure)) {
		qp->rc.blocked = false;
		kick = true;
	}
	spin_unlock_irqrestore(&qp->sq_lock, flags);
	if (kick)
		soft_engine_kick(qp);
}

/* Arriving packets */

void soft_rc_arrive(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame, struct burst *burst)
{
	const struct fabric_headers *h = frame->headers;

	if (!soft_admit_connected(slot, qp, h))
		return;
	if (h->opcode != FABRIC_RC_ACKNOWLEDGE && !fabric_in(h->opcode, FABRIC_RESPONSES))
		soft_rc_request_arrived(slot, qp, frame, burst);
	else if (READ_ONCE(qp->state) == IB_QPS_RTS)
		answer_arrived(qp, frame, burst);
}

void soft_rc_init(struct soft_qp *qp)
{
	soft_hrtimer_setup(&qp->rc.timer, timer_over);
	qp->rc.mtu = 256;
}
