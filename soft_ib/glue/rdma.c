// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RDMA of reliable connections: the peer's requests to write and read this memory and for atomic operations on it, and
 * the responses to those of this side. The packet rules are in rc.cpp, the messages in rc.c, which calls this; keys and
 * bounds are checked in memory.c. The engine of the responding HCA sends responses, and answers to later packets of the
 * connection.
 */
#include "engine.h"

/* An access without permission ends the connection. */
static enum fabric_verdict refuse(struct soft_qp *qp, enum fabric_nak reason, struct fabric_answer *answer)
{
	*answer = fabric_responder_nak(&qp->rc.responder, reason);
	return FABRIC_REFUSE;
}

static bool may_access(struct soft_qp *qp, const struct ib_sge *memory, int access)
{
	/* The key of a zero-length access is ignored (IBA 9.7.4.1.1). */
	return !memory->length || soft_may_access(qp->hca, qp->ib.pd, memory, access);
}

/*
 * Space for one more response; a repeated request also repeats all later ones. Returns NULL if the peer has more
 * requests in flight than it may.
 */
static struct soft_reading *new_reading(struct soft_connection *rc, u32 psn, bool again)
{
	struct soft_reading *reading;

	while (again && rc->reading_count &&
	       fabric_psn_distance(psn, rc->readings[rc->reading_count - 1].psn) < FABRIC_PSN_MASK / 2)
		rc->reading_count--;
	if (rc->reading_count >= rc->max_readings)
		return NULL;
	reading = &rc->readings[rc->reading_count];
	*reading = (struct soft_reading){ .psn = psn };
	return reading;
}

/* The response is complete, and due. */
static enum fabric_verdict add_reading(struct soft_qp *qp)
{
	qp->rc.reading_count++;
	soft_engine_kick(qp);
	return FABRIC_DISCARD;
}

enum fabric_verdict soft_rdma_read(struct soft_slot *slot, struct soft_qp *qp, const struct fabric_headers *h,
				   bool again, struct fabric_answer *answer)
{
	struct soft_connection *rc = &qp->rc;
	struct ib_sge memory = { .addr = h->remote_address, .length = h->remote_bytes, .lkey = h->remote_key };
	struct soft_reading *reading;

	if (!(qp->access & IB_ACCESS_REMOTE_READ))
		return refuse(qp, FABRIC_NAK_INVALID_REQUEST, answer);
	if (!may_access(qp, &memory, IB_ACCESS_REMOTE_READ))
		return refuse(qp, FABRIC_NAK_REMOTE_ACCESS, answer);
	reading = new_reading(rc, h->psn, again);
	if (!reading)
		return again ? FABRIC_DISCARD : refuse(qp, FABRIC_NAK_INVALID_REQUEST, answer);
	*answer = again ? fabric_responder_read_again(&rc->responder, h) :
			  fabric_responder_take_read(&rc->responder, h, rc->mtu);
	reading->memory = memory;
	reading->aeth = answer->aeth;
	if (!again)
		COUNT(slot, rdma_reads);
	return add_reading(qp);
}

enum fabric_verdict soft_rdma_atomic(struct soft_slot *slot, struct soft_qp *qp, const struct fabric_headers *h,
				     bool again, struct fabric_answer *answer)
{
	struct soft_connection *rc = &qp->rc;
	struct soft_reading *reading = new_reading(rc, h->psn, again);

	if (!reading)
		return again ? FABRIC_DISCARD : refuse(qp, FABRIC_NAK_INVALID_REQUEST, answer);
	if (again) {
		reading->original = fabric_responder_original(&rc->responder, h);
		*answer = fabric_responder_read_again(&rc->responder, h);
	} else {
		if (!(qp->access & IB_ACCESS_REMOTE_ATOMIC))
			return refuse(qp, FABRIC_NAK_INVALID_REQUEST, answer);
		if (!soft_atomic(qp, h, &reading->original))
			return refuse(qp, FABRIC_NAK_REMOTE_ACCESS, answer);
		*answer = fabric_responder_take_atomic(&rc->responder, h, reading->original);
		COUNT(slot, atomics);
	}
	reading->atomic = true;
	reading->aeth = answer->aeth;
	return add_reading(qp);
}

/* Headers and position of the next packet. Under rq_lock. */
static struct fabric_headers next_response(struct soft_qp *qp, struct ib_sge *memory)
{
	struct soft_connection *rc = &qp->rc;
	struct soft_reading *reading = &rc->readings[0];
	bool last = reading->memory.length <= rc->mtu;
	u8 opcode = last ? FABRIC_RC_READ_RESPONSE_ONLY : FABRIC_RC_READ_RESPONSE_FIRST;
	struct fabric_headers h;

	if (reading->begun)
		opcode = last ? FABRIC_RC_READ_RESPONSE_LAST : FABRIC_RC_READ_RESPONSE_MIDDLE;
	if (unlikely(reading->atomic))
		opcode = FABRIC_RC_ATOMIC_ACKNOWLEDGE;
	h = soft_rc_packet(qp, opcode, reading->psn);
	h.aeth = reading->aeth;
	h.operand = reading->original;
	h.payload_bytes = min(reading->memory.length, rc->mtu);
	*memory = reading->memory;
	reading->memory.addr += h.payload_bytes;
	reading->memory.length -= h.payload_bytes;
	reading->psn = (reading->psn + 1) & FABRIC_PSN_MASK;
	reading->begun = true;
	if (last)
		memmove(reading, reading + 1, --rc->reading_count * sizeof(*reading));
	return h;
}

bool soft_rdma_answer(struct soft_qp *qp, struct burst *burst)
{
	struct soft_connection *rc = &qp->rc;
	enum fabric_verdict late = FABRIC_DISCARD;
	struct fabric_answer answer;
	struct fabric_headers h;
	struct ib_sge memory;
	struct frame frame = { .headers = &h, .sge = &memory, .sges = 1 };
	unsigned long flags;

	spin_lock_irqsave(&qp->rq_lock, flags);
	if (!rc->reading_count) {
		spin_unlock_irqrestore(&qp->rq_lock, flags);
		return false;
	}
	h = next_response(qp, &memory);
	rc->answering = true;
	spin_unlock_irqrestore(&qp->rq_lock, flags);

	burst->frames++;
	if (!soft_carry_mapped(qp, qp->ib.pd, &frame, IB_ACCESS_REMOTE_READ, burst)) {
		/* The region was removed during the read. */
		spin_lock_irqsave(&qp->rq_lock, flags);
		rc->refused = true;
		spin_unlock_irqrestore(&qp->rq_lock, flags);
		answer = fabric_responder_nak(&rc->responder, FABRIC_NAK_REMOTE_ACCESS);
		answer.psn = h.psn;
		soft_rc_reply(qp, FABRIC_REFUSE, answer, burst);
		return true;
	}
	spin_lock_irqsave(&qp->rq_lock, flags);
	rc->answering = false;
	if (!rc->reading_count) {
		late = rc->late;
		answer = rc->late_answer;
		rc->late = FABRIC_DISCARD;
	}
	spin_unlock_irqrestore(&qp->rq_lock, flags);
	if (late != FABRIC_DISCARD)
		soft_rc_reply(qp, late, answer, burst);
	return true;
}

enum fabric_verdict soft_rdma_write(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame,
				    struct fabric_answer *answer)
{
	const struct fabric_headers *h = frame->headers;
	struct soft_connection *rc = &qp->rc;
	struct elements to = { .sge = &rc->written, .sges = 1 };

	if (fabric_begins(h->opcode)) {
		rc->written = (struct ib_sge){
			.addr = h->remote_address,
			.length = h->remote_bytes,
			.lkey = h->remote_key,
		};
		if (!(qp->access & IB_ACCESS_REMOTE_WRITE))
			return refuse(qp, FABRIC_NAK_INVALID_REQUEST, answer);
		if (!may_access(qp, &rc->written, IB_ACCESS_REMOTE_WRITE))
			return refuse(qp, FABRIC_NAK_REMOTE_ACCESS, answer);
	} else {
		to.offset = rc->responder.received;
	}
	if (!soft_place_mapped(qp, qp->ib.pd, &to, IB_ACCESS_REMOTE_WRITE, frame))
		return refuse(qp, FABRIC_NAK_REMOTE_ACCESS, answer);
	if (fabric_ends(h->opcode))
		COUNT(slot, rdma_writes);
	return FABRIC_TAKE;
}

/* Writes to the elements of a read, or of an atomic operation. */
static enum ib_wc_status place_response(struct soft_qp *qp, const struct soft_send *send, const struct elements *to,
					const struct frame *frame)
{
	if (!send->mapped)
		soft_place(to, frame);
	else if (!soft_place_mapped(qp, qp->ib.pd, to, IB_ACCESS_LOCAL_WRITE, frame))
		return IB_WC_LOC_PROT_ERR;
	return IB_WC_SUCCESS;
}

static noinline enum ib_wc_status take_original(struct soft_qp *qp, const struct soft_send *send,
						const struct fabric_headers *h)
{
	struct elements to = { .sge = send->sge, .sges = send->sges };
	struct fabric_headers headers = { .payload_bytes = sizeof(h->operand) };
	struct ib_sge sge = { .addr = (uintptr_t)&h->operand, .length = sizeof(h->operand) };
	struct frame frame = { .headers = &headers, .sge = &sge, .sges = 1 };

	return h->opcode == FABRIC_RC_ATOMIC_ACKNOWLEDGE ? place_response(qp, send, &to, &frame) : IB_WC_BAD_RESP_ERR;
}

enum ib_wc_status soft_rdma_take_response(struct soft_qp *qp, const struct soft_send *send, u32 index,
					  const struct frame *frame)
{
	struct elements to = { .sge = send->sge, .sges = send->sges, .offset = index * qp->rc.mtu };

	if (unlikely(fabric_in(send->opcode, FABRIC_ATOMICS)))
		return take_original(qp, send, frame->headers);
	if (send->opcode != FABRIC_RC_READ_REQUEST || frame->headers->opcode == FABRIC_RC_ATOMIC_ACKNOWLEDGE ||
	    frame->headers->payload_bytes != min(send->bytes - to.offset, qp->rc.mtu))
		return IB_WC_BAD_RESP_ERR;
	return place_response(qp, send, &to, frame);
}
