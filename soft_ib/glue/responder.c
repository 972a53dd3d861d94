// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The responder's half of reliable connections: messages reassembled by the rules in rc.cpp. Runs in the context of the
 * arriving packet, under rq_lock.
 */
#include "engine.h"

void soft_rc_reply(struct soft_qp *qp, enum fabric_verdict verdict, struct fabric_answer answer, struct burst *burst)
{
	struct fabric_headers h = soft_rc_packet(qp, FABRIC_RC_ACKNOWLEDGE, answer.psn);
	struct frame frame = { .headers = &h };

	h.aeth = answer.aeth;
	soft_carry(qp->hca->slot, &frame, burst);
	if (verdict != FABRIC_REFUSE)
		return;
	soft_break_off(qp);
	if (fabric_refuses_access(answer.aeth))
		soft_rc_raise(qp, IB_EVENT_QP_ACCESS_ERR);
}

/* An answer must not precede the responses to earlier requests. Under rq_lock. */
static enum fabric_verdict hold_back(struct soft_qp *qp, enum fabric_verdict verdict, struct fabric_answer answer)
{
	struct soft_connection *rc = &qp->rc;

	if (likely(!rc->reading_count && !rc->answering))
		return verdict;
	if (verdict == FABRIC_DISCARD || rc->late == FABRIC_REFUSE)
		return FABRIC_DISCARD;
	/* The ACK of a duplicate replaces no NAK for a later packet. */
	if (rc->late == FABRIC_ANSWER && fabric_psn_before(answer.psn, rc->late_answer.psn))
		return FABRIC_DISCARD;
	rc->late = verdict;
	rc->late_answer = answer;
	return FABRIC_DISCARD;
}

bool soft_take_receive(struct soft_qp *qp)
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

void soft_complete_receive(struct soft_slot *slot, struct soft_qp *qp, const struct fabric_headers *h, u32 bytes,
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

	if (fabric_has_immediate(h->opcode)) {
		wc.wc_flags = IB_WC_WITH_IMM;
		wc.ex.imm_data = cpu_to_be32(h->immediate);
		if (fabric_in(h->opcode, FABRIC_WRITES))
			wc.opcode = IB_WC_RECV_RDMA_WITH_IMM;
	} else if (unlikely(fabric_in(h->opcode, FABRIC_WITH_IETH))) {
		wc.wc_flags = IB_WC_WITH_INVALIDATE;
		wc.ex.invalidate_rkey = h->immediate;
	}
	qp->rc.recv_taken = false;
	soft_cq_push(to_cq(qp->ib.recv_cq), &wc, h->solicited, &burst->due);
	if (status == IB_WC_SUCCESS)
		COUNT(slot, delivered);
	else
		COUNT(slot, drop_length);
}

bool soft_takes_requests(const struct soft_qp *qp) { return !qp->rc.refused && soft_receives(qp); }

bool soft_is_established(struct soft_qp *qp)
{
	struct soft_connection *rc = &qp->rc;

	if (likely(rc->established_told) || (!rc->responder.messages && !rc->responder.in_message))
		return false;
	rc->established_told = true;
	return READ_ONCE(qp->state) == IB_QPS_RTR;
}

bool soft_place_send(struct soft_qp *qp, u32 at, const struct frame *frame)
{
	struct elements to = { .sge = qp->rc.recv.sge, .sges = qp->rc.recv.sges, .offset = at };

	if (unlikely(qp->rc.recv.mapped))
		return soft_place_mapped(qp, soft_recv_pd(qp), &to, IB_ACCESS_LOCAL_WRITE, frame);
	soft_place(&to, frame);
	return true;
}

/* Writes the next packet of a message to its position. Under rq_lock. */
static enum fabric_verdict take(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame,
				struct fabric_answer *answer, struct burst *burst)
{
	struct fabric_responder *responder = &qp->rc.responder;
	const struct fabric_headers *h = frame->headers;
	u32 offset = fabric_begins(h->opcode) ? 0 : responder->received;
	bool writes = fabric_in(h->opcode, FABRIC_WRITES);

	/* A write takes a receive only for immediate data. */
	if (writes ? fabric_has_immediate(h->opcode) : fabric_begins(h->opcode)) {
		if (soft_every(READ_ONCE(slot->rnr_every), &slot->rnr_of) || !soft_take_receive(qp)) {
			COUNT(slot, rnr_nak);
			*answer = fabric_responder_not_ready(responder, qp->rc.rnr_timer);
			return FABRIC_ANSWER;
		}
		qp->rc.recv_taken = true;
	}
	if (writes) {
		if (soft_rdma_write(slot, qp, frame, answer) == FABRIC_REFUSE)
			return FABRIC_REFUSE;
	} else if (offset + h->payload_bytes > soft_recv_bytes(&qp->rc.recv)) {
		soft_complete_receive(slot, qp, h, 0, IB_WC_LOC_LEN_ERR, burst);
		*answer = fabric_responder_nak(responder, FABRIC_NAK_INVALID_REQUEST);
		return FABRIC_REFUSE;
	} else if (!soft_place_send(qp, offset, frame)) {
		soft_complete_receive(slot, qp, h, 0, IB_WC_LOC_PROT_ERR, burst);
		*answer = fabric_responder_nak(responder, FABRIC_NAK_REMOTE_OPERATION);
		return FABRIC_REFUSE;
	}
	if (unlikely(fabric_in(h->opcode, FABRIC_WITH_IETH)) && !soft_invalidate(qp->hca, qp->ib.pd, h->immediate)) {
		soft_complete_receive(slot, qp, h, 0, IB_WC_REM_INV_REQ_ERR, burst);
		*answer = fabric_responder_nak(responder, FABRIC_NAK_REMOTE_ACCESS);
		return FABRIC_REFUSE;
	}
	*answer = fabric_responder_take(responder, h);
	if (fabric_ends(h->opcode) && qp->rc.recv_taken)
		soft_complete_receive(slot, qp, h, offset + h->payload_bytes, IB_WC_SUCCESS, burst);
	return h->ack_request ? FABRIC_ANSWER : FABRIC_DISCARD;
}

/* Executes a request by the responder's verdict. Under rq_lock. */
static enum fabric_verdict execute(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame,
				   struct fabric_answer *answer, struct burst *burst)
{
	const struct fabric_headers *h = frame->headers;
	enum fabric_verdict verdict = fabric_responder_look(&qp->rc.responder, h, qp->rc.mtu, answer);
	bool again = verdict == FABRIC_READ_AGAIN || verdict == FABRIC_ATOMIC_AGAIN;

	if (verdict != FABRIC_TAKE && !again)
		return verdict;
	if (!fabric_in(h->opcode, FABRIC_WITH_RESPONSE))
		return take(slot, qp, frame, answer, burst);
	if (h->opcode == FABRIC_RC_READ_REQUEST)
		return soft_rdma_read(slot, qp, h, again, answer);
	return soft_rdma_atomic(slot, qp, h, again, answer);
}

void soft_rc_request_arrived(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame, struct burst *burst)
{
	struct fabric_answer answer;
	enum fabric_verdict verdict;
	unsigned long flags;
	bool established;

	spin_lock_irqsave(&qp->rq_lock, flags);
	if (!soft_takes_requests(qp)) {
		spin_unlock_irqrestore(&qp->rq_lock, flags);
		return;
	}
	if (READ_ONCE(qp->rc.killed)) {
		answer = fabric_responder_nak(&qp->rc.responder, FABRIC_NAK_REMOTE_OPERATION);
		verdict = FABRIC_REFUSE;
	} else {
		verdict = execute(slot, qp, frame, &answer, burst);
	}
	qp->rc.refused = verdict == FABRIC_REFUSE;
	established = soft_is_established(qp);
	verdict = hold_back(qp, verdict, answer);
	spin_unlock_irqrestore(&qp->rq_lock, flags);
	if (unlikely(established))
		soft_rc_raise(qp, IB_EVENT_COMM_EST);
	if (verdict != FABRIC_DISCARD)
		soft_rc_reply(qp, verdict, answer, burst);
}
