/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The communication manager (IBA chapter 12): identifiers and messages. */
#pragma once
#include <shim/base.h>
#include <shim/device.h>
SHIM_BEGIN

struct ib_cm_id;
struct ib_device;
struct sa_path_rec;

/* Bytes of private data in a REQ and a REP; unused ones are zero (IBA 12.6.5, 12.6.8). */
enum { SHIM_CM_REQ_PRIVATE_BYTES = 92, SHIM_CM_REP_PRIVATE_BYTES = 196 };

/* A message that was received, or the lack of one. */
struct shim_cm_message {
	/* SHIM_IB_CM_*, the values of enum ib_cm_event_type. */
	unsigned int event;
	/* REQ and REP; NULL otherwise. */
	const uint8_t *private_data;
	/* REQ: GID and LID of the peer's port; whether it requests a reliable connection. */
	struct shim_gid peer;
	uint32_t peer_lid;
	bool reliable;
	/* REQ: life time of packets, from the peer's local ACK timeout (IBA 12.7.34): 4.096 us * 2^n. */
	uint8_t packet_life_time;
	/* REJ: the reason (IBA 12.6.7.2). */
	unsigned int reason;
};

/* Reasons of a REJ that the driver sends or reads (IBA 12.6.7.2). */
enum shim_cm_reason {
	SHIM_CM_REJ_NO_QP = 1,
	SHIM_CM_REJ_NO_RESOURCES = 3,
	SHIM_CM_REJ_INVALID_TRANSPORT_TYPE = 9,
	SHIM_CM_REJ_STALE_CONN = 10,
	SHIM_CM_REJ_CONSUMER_DEFINED = 28,
};

/* The target of an identifier's messages, a part of the driver's object. */
struct shim_cm_endpoint {
	/* Handles a message. If it returns nonzero, ib_cm destroys the identifier. CONTEXT: process. */
	int (*handle)(struct shim_cm_endpoint *endpoint, struct ib_cm_id *id, const struct shim_cm_message *message);
};

/*
 * Creates an identifier. A REQ comes with a new identifier, and the listener's endpoint. An error pointer on failure.
 * CONTEXT: process, may sleep.
 */
struct ib_cm_id *shim_ib_create_cm_id(struct ib_device *ca, struct shim_cm_endpoint *endpoint);
/* Directs further messages to another endpoint. CONTEXT: the endpoint's handle(). */
void shim_cm_set_context(struct ib_cm_id *id, struct shim_cm_endpoint *endpoint);
/*
 * Ends the connection or listener, sends DREQ or REJ as the state requires, and waits until handle() has returned.
 * CONTEXT: process, not the endpoint's handle().
 */
void shim_ib_destroy_cm_id(struct ib_cm_id *id);
/* Listens for REQs. service_id: host byte order. CONTEXT: process. */
int shim_ib_cm_listen(struct ib_cm_id *id, uint64_t service_id);

/* A REQ (IBA 12.6.5). */
struct shim_cm_request {
	struct sa_path_rec *path;
	uint64_t service_id;
	uint32_t qpn;
	bool srq;
	/* Outstanding RDMA reads and atomics that the sender of the REQ accepts. */
	uint8_t responder_resources;
	/* Time for a response of the peer's CM, and of this host's: 4.096 us * 2^n. */
	uint8_t remote_cm_response_timeout, local_cm_response_timeout;
	/* Repetitions of a message without a response. */
	uint8_t max_cm_retries;
	const void *private_data;
	uint8_t private_bytes;
};
/* Send messages. Failures: -EINVAL in another state of the connection, -ENOMEM. CONTEXT: process. */
int shim_ib_send_cm_req(struct ib_cm_id *id, const struct shim_cm_request *request);

/* A REP (IBA 12.6.8). */
struct shim_cm_reply {
	/* The queue pair, and the first packet sequence number that it receives, 24 bits each. */
	uint32_t qpn, psn;
	bool srq;
	/* Times that the peer sends a message again after RNR NAKs, 0 to 6; 7: without limit. */
	uint8_t rnr_retries;
	const void *private_data;
	uint8_t private_bytes;
};
int shim_ib_send_cm_rep(struct ib_cm_id *id, const struct shim_cm_reply *reply);
int shim_ib_send_cm_rtu(struct ib_cm_id *id);
int shim_ib_send_cm_drep(struct ib_cm_id *id);
void shim_ib_send_cm_rej(struct ib_cm_id *id, enum shim_cm_reason reason);

SHIM_END
