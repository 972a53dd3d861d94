/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The communication manager (IBA 12): listening, messages and their events. */
#pragma once
#include <shim/base.h>
#include <shim/device.h>
SHIM_BEGIN

struct ib_cm_id;
struct ib_device;
struct sa_path_rec;

enum shim_cm_event {
	SHIM_CM_OTHER,
	SHIM_CM_REQ,
	SHIM_CM_REP,
	SHIM_CM_RTU,
	SHIM_CM_REJ,
	SHIM_CM_DREQ,
	SHIM_CM_DREP,
	/* A REQ, REP or DREQ of ours was never answered. */
	SHIM_CM_REQ_ERROR,
	SHIM_CM_REP_ERROR,
	SHIM_CM_DREQ_ERROR,
	/* The identifier may be used again: whatever it stood for is over. */
	SHIM_CM_TIMEWAIT_EXIT,
};

/* What a message has room for, behind what its sender put there zeros (IBA 12.6.5, 12.6.8). */
enum { SHIM_CM_REQ_PRIVATE_BYTES = 92, SHIM_CM_REP_PRIVATE_BYTES = 196 };

struct shim_cm_message {
	enum shim_cm_event event;
	/* Of REQ and REP; NULL otherwise. */
	const uint8_t *private_data;
	/* In a REQ: GID and LID of the peer's port, and whether it asks for a reliable connection. */
	struct shim_gid peer;
	uint32_t peer_lid;
	bool reliable;
	/* Of a REQ and a REP. */
	uint32_t remote_qpn;
	/* Of a REJ (IBA 12.6.7.2). */
	unsigned int reason;
};

/* Reasons of a REJ that IPoIB gives or looks at (IBA 12.6.7.2). */
enum shim_cm_reason {
	SHIM_CM_REJ_NO_QP = 1,
	SHIM_CM_REJ_NO_RESOURCES = 3,
	SHIM_CM_REJ_INVALID_TRANSPORT_TYPE = 9,
	SHIM_CM_REJ_STALE_CONN = 10,
	SHIM_CM_REJ_CONSUMER_DEFINED = 28,
};

/*
 * An identifier whose messages go to ipoib_cm_event() with this context. A REQ brings a new identifier with the
 * listener's context. An error pointer on failure. CONTEXT: process.
 */
struct ib_cm_id *shim_ib_create_cm_id(struct ib_device *ca, void *context);
void shim_cm_set_context(struct ib_cm_id *id, void *context);
/* Ends what it stands for, telling the peer, and waits until no ipoib_cm_event() runs. CONTEXT: process, not that. */
void shim_ib_destroy_cm_id(struct ib_cm_id *id);
int shim_ib_cm_listen(struct ib_cm_id *id, uint64_t service_id);

struct shim_cm_request {
	struct sa_path_rec *path;
	uint64_t service_id;
	uint32_t qpn;
	bool srq;
	/* Outstanding RDMA reads and atomics that the sender of the REQ accepts (IBA 12.7.29). */
	uint8_t responder_resources;
	/* Time for a response, 4.096 us * 2^n: of the peer's CM, and of this host's (IBA 12.7.4, 12.7.5). */
	uint8_t remote_cm_response_timeout, local_cm_response_timeout;
	/* Repetitions of a message without a response (IBA 12.7.27). */
	uint8_t max_cm_retries;
	const void *private_data;
	uint8_t private_bytes;
};
int shim_ib_send_cm_req(struct ib_cm_id *id, const struct shim_cm_request *request);

struct shim_cm_reply {
	uint32_t qpn, psn;
	bool srq;
	uint8_t rnr_retries;
	const void *private_data;
	uint8_t private_bytes;
};
int shim_ib_send_cm_rep(struct ib_cm_id *id, const struct shim_cm_reply *reply);
int shim_ib_send_cm_rtu(struct ib_cm_id *id);
int shim_ib_send_cm_drep(struct ib_cm_id *id);
void shim_ib_send_cm_rej(struct ib_cm_id *id, enum shim_cm_reason reason);

/* kernel -> C++. What it returns not zero destroys the identifier. CONTEXT: process. */
int ipoib_cm_event(struct ib_cm_id *id, const struct shim_cm_message *message, void *context);

SHIM_END
