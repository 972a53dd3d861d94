/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Frames on their way, for engine.c (datagrams, routing) and rc.c (connections). CONTEXT of all: softirq, under RCU. */
#pragma once
#include "glue.h"

/* What one run of an engine gathers. */
struct burst {
	struct list_head due;
	unsigned int frames;
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
/* Puts the frame's payload into the receive, from byte at on. */
void soft_place(const struct soft_recv *recv, u32 at, const struct frame *frame);
u32 soft_recv_bytes(const struct soft_recv *recv);
void soft_complete_send(struct soft_qp *qp, const struct soft_send *send, enum ib_wc_status status,
			struct burst *burst);
/* Completes all receives as flushed. */
void soft_flush_receives(struct soft_qp *qp, struct burst *burst);
/* One of so many: this is the one that a fault knob takes. */
bool soft_every(u32 every, atomic_t *counter);

/* rc.c: one packet of a connection's queue pair, or what it takes to end it. False: nothing is left to do. */
bool soft_rc_step(struct soft_qp *qp, struct burst *burst);
void soft_rc_arrive(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame, struct burst *burst);
