/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames on their way, for engine.c (datagrams, routing), rc.c and rdma.c (connections), memory.c (user space's).
 * CONTEXT of all: softirq, under RCU.
 */
#pragma once
#include "glue.h"

/* What one run of an engine gathers. */
struct burst {
	struct list_head due;
	unsigned int frames;
};

/* Memory from a byte of some elements on: the kernel's own, or user space's with a key each. */
struct elements {
	const struct ib_sge *sge;
	u32 sges, offset;
};

/* Elements of user space's in the kernel's addresses: the bytes of one packet. */
struct soft_pieces {
	u32 count;
	struct ib_sge sge[SOFT_MOST_PIECES];
};

/* A frame under way: header fields, and the payload as part of the sender's elements. */
struct frame {
	const struct fabric_headers *headers;
	const struct ib_sge *sge;
	unsigned int sges;
	/* Where in the elements the payload begins. */
	u32 offset;
};

/* Sends a frame of the slot's HCA on its way: to the switch, to other HCAs, to its own queue pairs. */
void soft_carry(struct soft_slot *slot, const struct frame *frame, struct burst *burst);
/* The index of the P_Key that lets the frame in, or -1 and it is counted. */
int soft_admit(struct soft_slot *slot, struct soft_qp *qp, const struct fabric_headers *h);
/* Puts the frame's payload there. */
void soft_place(const struct elements *to, const struct frame *frame);
/*
 * Puts a datagram into a receive that has room for it, with the GRH or the space for it before; corrupt: the last byte
 * is changed. False: the elements are not where they may be.
 */
bool soft_fill(struct soft_qp *qp, const struct soft_recv *recv, const struct frame *frame, bool corrupt);
/* Copies the whole payload. */
void soft_gather(const struct frame *frame, void *to);
u32 soft_recv_bytes(const struct soft_recv *recv);
void soft_complete_send(struct soft_qp *qp, const struct soft_send *send, enum ib_wc_status status,
			struct burst *burst);
/* The queue pair leaves service; its engine flushes it. */
void soft_break_off(struct soft_qp *qp);
/* Completes all receives as flushed. */
void soft_flush_receives(struct soft_qp *qp, struct burst *burst);
/* The memory that a queue pair's receives are in belongs to it. */
static inline const struct ib_pd *soft_recv_pd(const struct soft_qp *qp)
{
	return (qp->srq ? qp->srq->ib.pd : qp->ib.pd);
}
/* One of so many: this is the one that a fault knob takes. */
bool soft_every(u32 every, atomic_t *counter);

/* Bursts of other callers than the engine. */
void soft_burst_start(struct burst *burst);
void soft_burst_end(struct burst *burst);

/* A frame that came from the other machine's switch. */
void soft_arrive_by_trunk(const struct fabric_headers *headers, const void *payload);

/* netdev_filter.c: the queue pair's lower half takes the datagram, if it has one that wants it. */
bool soft_filter_receive(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame);

/* trunk.c */
void soft_trunk_send(const struct frame *frame);

/*
 * capture.c: somebody may want to see the frame that goes onto the wire now, from an HCA here or, by_switch, from
 * elsewhere.
 */
void soft_capture(const struct frame *frame, bool by_switch);

/*
 * memory.c: so many bytes of user space's elements as pieces. False: they are not in regions of that domain with that
 * access (IB_ACCESS_*). Elements that end before give what they have.
 */
bool soft_map(struct soft_hca *hca, const struct ib_pd *pd, const struct elements *elements, u32 bytes, int access,
	      struct soft_pieces *pieces);
/* All of an element is in such a region. */
bool soft_may_access(struct soft_hca *hca, const struct ib_pd *pd, const struct ib_sge *element, int access);
/* soft_carry() and soft_place() for elements of user space's; false: as above, and nothing was done. */
bool soft_carry_mapped(struct soft_qp *qp, const struct ib_pd *pd, const struct frame *frame, int access,
		       struct burst *burst);
bool soft_place_mapped(struct soft_qp *qp, const struct ib_pd *pd, const struct elements *to, int access,
		       const struct frame *frame);

/* rc.c: one packet of a connection's queue pair, or what it takes to end it. False: nothing is left to do. */
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
/* An asynchronous event of the queue pair's. */
void soft_rc_raise(struct soft_qp *qp, enum ib_event_type type);

/* responder.c */
void soft_rc_request_arrived(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame,
			     struct burst *burst);
/* Answers a request; with FABRIC_REFUSE the queue pair leaves service. */
void soft_rc_reply(struct soft_qp *qp, enum fabric_verdict verdict, struct fabric_answer answer, struct burst *burst);

/* rdma.c: requests of the peer to read and write, under rq_lock; what to do with one that was taken or seen before. */
enum fabric_verdict soft_rdma_read(struct soft_slot *slot, struct soft_qp *qp, const struct fabric_headers *h,
				   bool again, struct fabric_answer *answer);
enum fabric_verdict soft_rdma_write(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame,
				    struct fabric_answer *answer);
/* The next packet of the responses that are due. False: none is. */
bool soft_rdma_answer(struct soft_qp *qp, struct burst *burst);
/* Puts a packet of a response into its place in the read. Under sq_lock. */
enum ib_wc_status soft_rdma_take_response(struct soft_qp *qp, const struct soft_send *send, u32 index,
					  const struct frame *frame);
