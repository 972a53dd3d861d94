/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames in flight. CONTEXT: softirq, or bottom halves off; under RCU and the processor's burst lock from
 * soft_burst_start() to soft_burst_end().
 */
#pragma once
#include "glue.h"

/* Effects gathered in one run of an engine. */
struct burst {
	spinlock_t *lock;
	struct list_head due;
	unsigned int frames;
};

/* Memory from a byte of some elements on: at kernel addresses, or with a region's key for each. */
struct elements {
	const struct ib_sge *sge;
	u32 sges, offset;
};

/* Elements with keys at kernel addresses: the bytes of one packet. */
struct soft_pieces {
	u32 count;
	/* regions_lock is held; bytes are in a region of fast registration, to be used only as long as it is. */
	bool locked, fast;
	struct ib_sge sge[SOFT_MAX_PIECES];
};

/* A frame in flight: header fields, and the payload as part of the sender's elements. */
struct frame {
	const struct fabric_headers *headers;
	const struct ib_sge *sge;
	unsigned int sges;
	/* Offset of the payload in the elements. */
	u32 offset;
	/* A consumer may write to the payload while it is read. */
	bool changing;
	/* Trunks that it has passed. */
	u8 trunks_passed;
};

/* Sends a frame of the slot's HCA: to the switch, to other HCAs, to its own queue pairs. */
void soft_carry(struct soft_slot *slot, const struct frame *frame, struct burst *burst);
/* Writes the frame's payload to elements at kernel addresses, from their offset on. */
void soft_place(const struct elements *to, const struct frame *frame);
/*
 * Writes a datagram into a receive that has space for it, with the GRH or the space for it before; corrupt: the last
 * byte is changed. Returns false if the elements are invalid.
 */
bool soft_fill(struct soft_qp *qp, const struct soft_recv *recv, const struct frame *frame, bool corrupt);
/* Copies the whole payload. */
void soft_gather(const struct frame *frame, void *to);
/* Bytes of a message that fits: no more than a message may have. */
u32 soft_recv_bytes(const struct soft_recv *recv);
void soft_complete_send(struct soft_qp *qp, const struct soft_send *send, enum ib_wc_status status,
			struct burst *burst);
/* send.c: executes a send of a datagram queue pair. Returns the status of its completion. */
enum ib_wc_status soft_execute(struct soft_qp *qp, const struct soft_send *send, struct burst *burst);
/* The queue pair leaves service; its engine flushes it. */
void soft_break_off(struct soft_qp *qp);
/* Completes receives as flushed, up to SOFT_BURST. Returns true if there are more. */
bool soft_flush_receives(struct soft_qp *qp, struct burst *burst);
/* Memory of a queue pair's receives belongs to this domain. */
static inline const struct ib_pd *soft_recv_pd(const struct soft_qp *qp)
{
	return (qp->srq ? qp->srq->ib.pd : qp->ib.pd);
}

/* True in the states in which packets are received. */
static inline bool soft_receives(const struct soft_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	return state == IB_QPS_RTR || state == IB_QPS_RTS || state == IB_QPS_SQE;
}
/*
 * admit.c: checks the queue pair's state, P_Key and Q_Key, the length of a MAD, and the fault knobs that drop packets.
 * Returns the index of the P_Key, or -1, and counts the drop.
 */
int soft_admit_datagram(struct soft_slot *slot, struct soft_qp *qp, const struct fabric_headers *h);
/* The same for a packet of a connection, which must come from the peer's port. Returns false for a drop. */
bool soft_admit_connected(struct soft_slot *slot, struct soft_qp *qp, const struct fabric_headers *h);
/* True once in this many calls, for a fault knob. */
bool soft_every(u32 every, atomic_t *counter);

/* Bursts for callers other than the engine. */
void soft_burst_start(struct burst *burst);
void soft_burst_end(struct burst *burst);

/* A frame that arrived from the other machine's switch. */
void soft_arrive_by_trunk(unsigned int trunk, const struct fabric_headers *headers, const void *payload,
			  u8 trunks_passed);

/* netdev_filter.c: passes the datagram to the queue pair's rdma_netdev, if that takes it. */
bool soft_filter_receive(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame);

/* trunk.c */
void soft_trunks_send(unsigned int trunks, const struct frame *frame);

/* capture.c: captures the frame, which goes onto the wire now, from an HCA here or, by_switch, from elsewhere. */
void soft_capture(const struct frame *frame, bool by_switch);

/* True if regions_lock is needed. */
static inline bool soft_has_fast_regions(const struct soft_hca *hca)
{
	return atomic64_read(&hca->slot->counters.fast_regions);
}
/*
 * memory.c: translates bytes of elements with keys to pieces, whose member locked the caller has set. Returns false if
 * they are not in regions of that domain with that access (IB_ACCESS_*), or the elements have fewer bytes.
 */
bool soft_map(struct soft_qp *qp, const struct ib_pd *pd, const struct elements *elements, u32 bytes, int access,
	      struct soft_pieces *pieces);
/* True if the whole element is in such a region. */
bool soft_may_access(struct soft_hca *hca, const struct ib_pd *pd, const struct ib_sge *element, int access);
/* Executes an atomic operation on 8 bytes of memory. Returns false if they may not be accessed. */
bool soft_atomic(struct soft_qp *qp, const struct fabric_headers *h, u64 *original);
/* Fast registration: makes a key valid for memory that the consumer has listed, or invalid. False: it may not. */
bool soft_register(struct soft_hca *hca, const struct ib_pd *pd, u32 key, int access);
bool soft_invalidate(struct soft_hca *hca, const struct ib_pd *pd, u32 key);
/* soft_carry() and soft_place() for elements with keys; false: as above, and nothing was done. */
bool soft_carry_mapped(struct soft_qp *qp, const struct ib_pd *pd, const struct frame *frame, int access,
		       struct burst *burst);
bool soft_place_mapped(struct soft_qp *qp, const struct ib_pd *pd, const struct elements *to, int access,
		       const struct frame *frame);

/* rc.c: sends one packet of a connection's queue pair, or ends it. Returns false if nothing is left to do. */
bool soft_rc_step(struct soft_qp *qp, struct burst *burst);
void soft_rc_arrive(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame, struct burst *burst);
/* Header fields common to all of the connection's packets. */
static inline struct fabric_headers soft_rc_packet(const struct soft_qp *qp, u8 opcode, u32 psn)
{
	const struct fabric_port *port = fabric_hca_port(soft_fabric, qp->hca->slot->index);
	struct fabric_headers h = qp->rc.path;

	h.opcode = opcode;
	h.psn = psn;
	h.slid = port->lid;
	h.pkey = port->pkeys[qp->pkey_index];
	return h;
}
/* Opcode of a message's last or only packet. */
static inline u8 soft_last_opcode(const struct soft_send *send, bool only)
{
	if (unlikely(send->last_word == SOFT_KEY_TO_INVALIDATE))
		return only ? FABRIC_RC_SEND_ONLY_INVALIDATE : FABRIC_RC_SEND_LAST_INVALIDATE;
	return send->opcode + (only ? FABRIC_RC_SEND_ONLY : FABRIC_RC_SEND_LAST) + send->last_word;
}

/*
 * Opcode of one of a message's packets, whose number is known. First, middle, last and only packets of RDMA WRITEs have
 * opcodes in the same order as those of sends.
 */
static inline u8 soft_opcode(const struct soft_send *send, u32 index)
{
	if (fabric_in(send->opcode, FABRIC_WITH_RESPONSE))
		return send->opcode;
	if (index == send->packets - 1)
		return soft_last_opcode(send, index == 0);
	return send->opcode + (index ? FABRIC_RC_SEND_MIDDLE : FABRIC_RC_SEND_FIRST);
}
/* pace.c: a frame of that many words of 4 bytes occupies the link of its HCA. */
void soft_link_occupy(struct soft_slot *slot, u32 words);
/* Nanoseconds until the link takes the next send, other than of subnet management; 0: now. */
u64 soft_link_wait(const struct soft_slot *slot);

/* Raises an asynchronous event of the queue pair. */
void soft_rc_raise(struct soft_qp *qp, enum ib_event_type type);

/* The message in progress will not be finished, and a shared queue gives this queue pair no more receives. */
void soft_flush_message(struct soft_qp *qp, struct burst *burst);

/* uc.c: sends the next packet of a message on an unreliable connection; last: it was the last one. */
enum ib_wc_status soft_uc_execute(struct soft_qp *qp, struct soft_send *send, bool *last, struct burst *burst);
void soft_uc_arrive(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame, struct burst *burst);

/* responder.c: parts of both kinds of connections, under rq_lock. */
/*
 * Returns true if an arriving request may be executed: the state may have changed since the packet was admitted, and a
 * flush may have begun. Under rq_lock.
 */
bool soft_takes_requests(const struct soft_qp *qp);
bool soft_take_receive(struct soft_qp *qp);
void soft_complete_receive(struct soft_slot *slot, struct soft_qp *qp, const struct fabric_headers *h, u32 bytes,
			   enum ib_wc_status status, struct burst *burst);
/* Writes a packet of a send to its position. Returns false if the receive's elements are not in permitted memory. */
bool soft_place_send(struct soft_qp *qp, u32 at, const struct frame *frame);
/* True once, if a packet was accepted before the queue pair is ready to send: COMM_EST is due. */
bool soft_is_established(struct soft_qp *qp);
void soft_rc_request_arrived(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame,
			     struct burst *burst);
/* Answers a request; FABRIC_REFUSE also takes the queue pair out of service. */
void soft_rc_reply(struct soft_qp *qp, enum fabric_verdict verdict, struct fabric_answer answer, struct burst *burst);

/* rdma.c: requests of the peer to read, to write, and for atomic operations, under rq_lock; new or repeated ones. */
enum fabric_verdict soft_rdma_read(struct soft_slot *slot, struct soft_qp *qp, const struct fabric_headers *h,
				   bool again, struct fabric_answer *answer);
enum fabric_verdict soft_rdma_write(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame,
				    struct fabric_answer *answer);
enum fabric_verdict soft_rdma_atomic(struct soft_slot *slot, struct soft_qp *qp, const struct fabric_headers *h,
				     bool again, struct fabric_answer *answer);
/* Sends the next packet of due responses. Returns false if none is due. */
bool soft_rdma_answer(struct soft_qp *qp, struct burst *burst);
/* Writes a packet of a response to its position in the read. Under sq_lock. */
enum ib_wc_status soft_rdma_take_response(struct soft_qp *qp, const struct soft_send *send, u32 index,
					  const struct frame *frame);
