/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rules of connections, in rc.cpp: packet numbers, acknowledgements, retries, reads. Called by the glue for each
 * packet of a connection.
 */
#pragma once
#include "core.h"
#ifdef __cplusplus
extern "C" {
#endif

/* PSNs count modulo 2^24: distance from a to b. */
static inline uint32_t fabric_psn_distance(uint32_t a, uint32_t b) { return (b - a) & FABRIC_PSN_MASK; }
static inline bool fabric_psn_before(uint32_t a, uint32_t b) { return fabric_psn_distance(b, a) > FABRIC_PSN_MASK / 2; }

/*
 * True if a packet may come from the connection's peer (IBA 9.6.1): its SLID is the path's DLID, or another one of that
 * port, whose LMC is taken to be this one's; and so are the GUIDs of a GRH. No field names the sender's queue pair.
 */
ENTRY bool fabric_is_from_peer(const struct fabric_headers *headers, const struct fabric_headers *path, uint8_t lmc);

/*
 * Reliable connections (IBA 9.7). The requester is the half of a queue pair that sends messages in packets of the
 * path's MTU, numbered by PSN, and keeps them until they are acknowledged; the responder is the half that accepts them
 * in order. Neither handles time or memory: their owner moves bytes, runs the timer and calls, one at a time for each.
 *
 * A request to read is one packet, and has the PSNs of all packets of its response, which acknowledge it. A request for
 * the rest of it starts at the PSN that is missing. An atomic operation is such a request with a response of one
 * packet; it is executed once, and its response kept for a repeated request.
 */
struct fabric_reading {
	/* PSNs of the response: the next to come, and the one after its last. */
	uint32_t next, past;
};

struct fabric_requester {
	/* The oldest packet that is not acknowledged, the next to be sent, and the first that never was. */
	uint32_t unacknowledged, next, end;
	/* Retries allowed (IBA 9.7.6; 7 RNR retries mean no limit), and used since the last acknowledgement. */
	uint8_t retry_limit, rnr_limit, retries, rnr_retries;
	/* Maximum number of reads and atomic operations in flight, and the present ones, oldest first. */
	uint8_t read_limit, read_count;
	/* A gap in a response was seen, and no missing packet has arrived since. */
	bool asked_again;
	struct fabric_reading reads[FABRIC_MAX_READS];
};

enum fabric_failure {
	FABRIC_NO_FAILURE,
	FABRIC_RETRY_EXCEEDED,
	FABRIC_RNR_RETRY_EXCEEDED,
	FABRIC_REMOTE_INVALID_REQUEST,
	FABRIC_REMOTE_ACCESS_ERROR,
	FABRIC_REMOTE_OPERATION_ERROR,
};

/* Next step of the requester: continue at next, at once or after wait_us; or end the connection. */
struct fabric_step {
	uint32_t wait_us;
	enum fabric_failure failure;
};

ENTRY void fabric_requester_start(struct fabric_requester *requester, uint32_t psn, uint8_t retry_limit,
				  uint8_t rnr_limit);
/*
 * True if a request of this many PSNs may be sent now: at most half of the PSNs are in flight, and as many reads as
 * allowed.
 */
static inline bool fabric_requester_may_send(const struct fabric_requester *requester, uint32_t packets, bool read)
{
	return requester->next != requester->end ||
	       (fabric_psn_distance(requester->unacknowledged, requester->end) + packets <= FABRIC_PSN_MASK / 2 &&
		(!read || requester->read_count < requester->read_limit));
}
/* The packet next was sent. */
ENTRY void fabric_requester_sent(struct fabric_requester *requester);
/* A request to read, or for an atomic operation, was sent, with next as its PSN and a response of this many packets. */
ENTRY void fabric_requester_sent_read(struct fabric_requester *requester, uint32_t packets);
/* An ACK or a NAK arrived. */
ENTRY struct fabric_step fabric_requester_answered(struct fabric_requester *requester, uint32_t psn, uint32_t aeth);
/* A packet of a response arrived. take: it is the next one, and now acknowledged. */
ENTRY struct fabric_step fabric_requester_response(struct fabric_requester *requester, uint32_t psn, bool *take);
/* No answer arrived within the local ACK timeout. */
ENTRY struct fabric_step fabric_requester_timed_out(struct fabric_requester *requester);

/* An executed atomic operation. */
struct fabric_atomic {
	uint64_t original;
	uint32_t psn;
};

struct fabric_responder {
	uint32_t expected, messages;
	/* Bytes of the message in progress, and announced bytes of an RDMA WRITE. */
	uint32_t received, announced;
	bool in_message, writing, nak_sent;
	/* The last atomic operations, a ring, and their number so far. */
	struct fabric_atomic atomics[FABRIC_MAX_READS];
	uint32_t atomic_count;
};

enum fabric_verdict {
	/* The packet changes nothing and gets no answer. */
	FABRIC_DISCARD,
	/* The packet is answered, and not accepted: AETH and PSN are in struct fabric_answer. */
	FABRIC_ANSWER,
	/* The peer broke the protocol: answered as above, and the connection ends. */
	FABRIC_REFUSE,
	/* The next packet of a message: to be accepted, or refused by one of the calls below. */
	FABRIC_TAKE,
	/* A repeated request to read: its response is to be sent again, from the request's PSN on. */
	FABRIC_READ_AGAIN,
	/* A repeated request for an atomic operation, which was executed: its response is to be sent again. */
	FABRIC_ATOMIC_AGAIN,
};

struct fabric_answer {
	uint32_t psn, aeth;
};

ENTRY void fabric_responder_start(struct fabric_responder *responder, uint32_t psn);
ENTRY enum fabric_verdict fabric_responder_look(struct fabric_responder *responder,
						const struct fabric_headers *headers, uint32_t path_mtu,
						struct fabric_answer *answer);
/* The packet's bytes are in place, at offset received. */
ENTRY struct fabric_answer fabric_responder_take(struct fabric_responder *responder,
						 const struct fabric_headers *headers);
/* The request to read will be answered, by packets with this AETH from this PSN on. */
ENTRY struct fabric_answer fabric_responder_take_read(struct fabric_responder *responder,
						      const struct fabric_headers *headers, uint32_t path_mtu);
/* The atomic operation is executed, and will be answered; original: the value before. */
ENTRY struct fabric_answer fabric_responder_take_atomic(struct fabric_responder *responder,
							const struct fabric_headers *headers, uint64_t original);
/* The value before, of an atomic operation that is answered again. */
ENTRY uint64_t fabric_responder_original(const struct fabric_responder *responder,
					 const struct fabric_headers *headers);
/* The AETH of a response that is sent again. */
ENTRY struct fabric_answer fabric_responder_read_again(const struct fabric_responder *responder,
						       const struct fabric_headers *headers);
/* No receive is posted for the new message; rnr_timer is the queue pair's (IBA 9.7.5.2.8, as encoded). */
ENTRY struct fabric_answer fabric_responder_not_ready(struct fabric_responder *responder, uint8_t rnr_timer);
enum fabric_nak { FABRIC_NAK_INVALID_REQUEST = 1, FABRIC_NAK_REMOTE_ACCESS = 2, FABRIC_NAK_REMOTE_OPERATION = 3 };
ENTRY struct fabric_answer fabric_responder_nak(const struct fabric_responder *responder, enum fabric_nak reason);
/* AETH of such a NAK, for remote access. */
static inline bool fabric_refuses_access(uint32_t aeth) { return aeth >> 24 == (0x60 | FABRIC_NAK_REMOTE_ACCESS); }

/*
 * Unreliable connections (IBA 9.8.2) have the same responder, without answers: a message of which a packet is missing
 * is dropped as a whole. Returns FABRIC_TAKE, or FABRIC_DISCARD: the packet is dropped, and the message in progress
 * with it.
 */
ENTRY enum fabric_verdict fabric_responder_look_unreliable(struct fabric_responder *responder,
							   const struct fabric_headers *headers, uint32_t path_mtu);
/* The rest of the message in progress is dropped, whose packet was to be accepted. */
ENTRY void fabric_responder_drop(struct fabric_responder *responder);

/* Number of packets of a message, or of a response. */
static inline uint32_t fabric_packets(uint32_t bytes, uint32_t path_mtu)
{
	return bytes <= path_mtu ? 1 : (bytes - 1) / path_mtu + 1;
}

#ifdef __cplusplus
}
#endif
