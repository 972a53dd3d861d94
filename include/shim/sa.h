/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Questions to the subnet administrator: path records and multicast membership. */
#pragma once
#include <shim/base.h>
#include <shim/device.h>
SHIM_BEGIN

struct ib_sa_query;
struct ib_sa_multicast;
struct sa_path_rec;

void shim_ib_sa_register_client(void);
/* Waits for every answer that is outstanding. */
void shim_ib_sa_unregister_client(void);

struct shim_path_query {
	struct shim_gid dgid, sgid;
	/* All 16 bits, the membership bit included. */
	uint16_t pkey;
	uint8_t traffic_class;
};
/*
 * Asks for one path, once, for at most timeout_ms. answered() is called once, in process context, with status
 * 0 and a record that lives until it returns, or a negative errno and NULL.
 * Returns an id for shim_ib_sa_cancel_query or a negative errno, in which case answered() is not called. CONTEXT: any.
 */
int shim_helper_sa_path_query(struct ib_device *ca, uint32_t port, const struct shim_path_query *question,
			      unsigned int timeout_ms,
			      void (*answered)(int status, struct sa_path_rec *record, void *context), void *context,
			      struct ib_sa_query **query);
/* The answer will be -EINTR, soon, unless it is under way. */
void shim_ib_sa_cancel_query(int id, struct ib_sa_query *query);
uint32_t shim_path_dlid(struct sa_path_rec *record);
uint8_t shim_path_sl(const struct sa_path_rec *record);
/* Mb/s. */
unsigned int shim_ib_rate_to_mbps(const struct sa_path_rec *record);
void shim_path_copy(struct sa_path_rec *to, const struct sa_path_rec *from);

/* An MCMemberRecord (IBA 15.2.5.17), less what IPoIB never looks at. */
struct shim_mcmember {
	struct shim_gid mgid, port_gid;
	uint32_t qkey;
	uint16_t mlid;
	uint16_t pkey;
	/* As the SA encodes it: 4 is 2048 bytes. */
	uint8_t mtu;
	uint8_t traffic_class;
	uint8_t rate;
	uint8_t sl;
	uint8_t hop_limit;
	uint32_t flow_label;
	uint8_t join_state;
};
/*
 * Asks for membership. answered() comes in process context, perhaps before this returns; what it returns not
 * zero ends the membership and frees it, zero keeps it for shim_helper_sa_leave. It may come again, with -ENETRESET,
 * when the subnet manager forgot the group.
 * with_parameters: the group must have (or gets) the Q_Key, MTU, rate, SL, ... given; otherwise it must exist.
 * Returns an error pointer, or the membership. CONTEXT: process.
 */
struct ib_sa_multicast *
shim_helper_sa_join(struct ib_device *ca, uint32_t port, const struct shim_mcmember *member, bool with_parameters,
		    int (*answered)(int status, const struct shim_mcmember *member, void *context), void *context);
/* Waits until no answered() runs, and leaves. CONTEXT: process. */
void shim_helper_sa_leave(struct ib_sa_multicast *membership);
/* Somebody on this host, in user space perhaps, is a member. CONTEXT: any. */
bool shim_ib_sa_get_mcmember_rec(struct ib_device *ca, uint32_t port, const struct shim_gid *mgid);
/* Bytes; 0: no such code. */
unsigned int shim_ib_mtu_enum_to_int(uint8_t code);

SHIM_END
