// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Unreliable connections (IBA 9.8.2): messages of several packets without acknowledgements. A send is complete when its
 * last packet has left; a message of which a packet is lost is dropped, and its receive taken by the next one.
 */
#include "engine.h"

enum ib_wc_status soft_uc_execute(struct soft_qp *qp, struct soft_send *send, bool *last, struct burst *burst)
{
	struct fabric_requester *requester = &qp->rc.requester;
	struct frame frame = { .sge = send->sge, .sges = send->sges };
	struct fabric_headers h;
	u32 index;

	if (!send->packets) {
		send->packets = fabric_packets(send->bytes, qp->rc.mtu);
		send->first_psn = requester->next;
	}
	index = fabric_psn_distance(send->first_psn, requester->next);
	*last = index == send->packets - 1;
	h = soft_rc_packet(qp, FABRIC_UC | soft_opcode(send, index), requester->next);
	frame.headers = &h;
	frame.offset = index * qp->rc.mtu;
	h.payload_bytes = min(send->bytes - frame.offset, qp->rc.mtu);
	h.solicited = *last && send->headers.solicited;
	h.immediate = send->headers.immediate;
	h.remote_address = send->headers.remote_address;
	h.remote_key = send->headers.remote_key;
	h.remote_bytes = send->bytes;
	requester->next = (requester->next + 1) & FABRIC_PSN_MASK;
	if (!send->mapped)
		soft_carry(qp->hca->slot, &frame, burst);
	else if (!soft_carry_mapped(qp, qp->ib.pd, &frame, 0, burst))
		return IB_WC_LOC_PROT_ERR;
	return IB_WC_SUCCESS;
}

/* Drops the rest of the message. */
static void drop(struct soft_slot *slot, struct soft_qp *qp)
{
	COUNT(slot, drop_message);
	fabric_responder_drop(&qp->rc.responder);
}

/* Writes the next packet of a message to its position. Returns false if the queue pair has failed. Under rq_lock. */
static bool take(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame, struct burst *burst)
{
	struct fabric_responder *responder = &qp->rc.responder;
	const struct fabric_headers *h = frame->headers;
	bool writes = fabric_in(h->opcode, FABRIC_WRITES);
	bool receives = writes ? fabric_has_immediate(h->opcode) : fabric_begins(h->opcode);
	u32 offset = responder->received;
	struct fabric_answer refused;

	if (receives && !qp->rc.recv_taken && !soft_take_receive(qp)) {
		COUNT(slot, drop_no_receive);
		drop(slot, qp);
		return true;
	}
	qp->rc.recv_taken |= receives;
	if (writes ? soft_rdma_write(slot, qp, frame, &refused) == FABRIC_REFUSE :
		     offset + h->payload_bytes > soft_recv_bytes(&qp->rc.recv)) {
		drop(slot, qp);
		return true;
	}
	if (!writes && !soft_place_send(qp, offset, frame)) {
		soft_complete_receive(slot, qp, h, 0, IB_WC_LOC_PROT_ERR, burst);
		return false;
	}
	fabric_responder_take(responder, h);
	if (fabric_ends(h->opcode) && (!writes || receives))
		soft_complete_receive(slot, qp, h, offset + h->payload_bytes, IB_WC_SUCCESS, burst);
	return true;
}

void soft_uc_arrive(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame, struct burst *burst)
{
	struct fabric_responder *responder = &qp->rc.responder;
	bool established, in_message, works = true;
	unsigned long flags;

	if (!soft_admit_connected(slot, qp, frame->headers))
		return;
	spin_lock_irqsave(&qp->rq_lock, flags);
	if (!soft_takes_requests(qp)) {
		spin_unlock_irqrestore(&qp->rq_lock, flags);
		return;
	}
	in_message = responder->in_message;
	if (fabric_responder_look_unreliable(responder, frame->headers, qp->rc.mtu) == FABRIC_TAKE) {
		/* A new message ends the one of which the last packet is missing. */
		if (in_message && fabric_begins(frame->headers->opcode))
			COUNT(slot, drop_message);
		works = take(slot, qp, frame, burst);
		qp->rc.refused = !works;
	} else if (in_message) {
		COUNT(slot, drop_message);
	}
	established = soft_is_established(qp);
	spin_unlock_irqrestore(&qp->rq_lock, flags);
	if (!works)
		soft_break_off(qp);
	else if (unlikely(established))
		soft_rc_raise(qp, IB_EVENT_COMM_EST);
}
