/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests to the subnet administrator: path records and multicast membership (IBA 15.2). */
#pragma once
#include <shim/base.h>
#include <shim/device.h>
SHIM_BEGIN

struct ib_sa_query;
struct ib_sa_multicast;
struct sa_path_rec;

void shim_ib_sa_register_client(void);
/* Waits for all responses. CONTEXT: process. */
void shim_ib_sa_unregister_client(void);

/* A path record query. */
struct shim_path_query {
	struct shim_gid dgid, sgid;
	/* Host byte order, with the membership bit. */
	uint16_t pkey;
	uint8_t traffic_class;
};
/*
 * Sends a query; newer kernels' ib_sa repeats it, up to ten times within timeout_ms. Returns an id (>= 0) for
 * shim_ib_sa_cancel_query(), or a negative errno, and then does not call callback(). That is called in process context,
 * with status 0 and a record that is valid until it returns, or with a negative errno and NULL. CONTEXT: any.
 */
int shim_helper_sa_path_query(struct ib_device *ca, uint32_t port, const struct shim_path_query *request,
			      unsigned int timeout_ms,
			      void (*callback)(int status, struct sa_path_rec *record, void *context), void *context,
			      struct ib_sa_query **query);
/* Has callback() called with -EINTR, unless a response has come. CONTEXT: any. */
void shim_ib_sa_cancel_query(int id, struct ib_sa_query *query);
/* Fields of a path record. */
uint32_t shim_path_dlid(struct sa_path_rec *record);
uint8_t shim_path_sl(const struct sa_path_rec *record);
/* Mb/s. */
unsigned int shim_ib_rate_to_mbps(const struct sa_path_rec *record);
void shim_path_copy(struct sa_path_rec *to, const struct sa_path_rec *from);

/*
 * The fields of an MCMemberRecord (IBA 15.2.5.17) that IPoIB uses, in host byte order. mtu: the SA's code, 4 is 2048
 * bytes. rate: the code of IBA 15.2.5.16. flow_label: 20 bits. join_state: bits; 0: full member, 3: send-only full
 * member.
 */
struct shim_mcmember {
	struct shim_gid mgid, port_gid;
	uint32_t qkey;
	uint16_t mlid;
	uint16_t pkey;
	uint8_t mtu;
	uint8_t traffic_class;
	uint8_t rate;
	uint8_t sl;
	uint8_t hop_limit;
	uint32_t flow_label;
	uint8_t join_state;
};
/*
 * Sends a join. with_parameters: Q_Key, MTU, rate, SL, ... are those that the group must have, or is created with;
 * otherwise it must exist. callback() is called in process context, perhaps before this function returns. If it returns
 * 0, the membership lasts until shim_helper_sa_leave(), and callback() may be called again, with -ENETRESET, if the
 * membership is lost; otherwise the membership is freed. An error pointer on failure. CONTEXT: process, may sleep.
 */
struct ib_sa_multicast *
shim_helper_sa_join(struct ib_device *ca, uint32_t port, const struct shim_mcmember *member, bool with_parameters,
		    int (*callback)(int status, const struct shim_mcmember *member, void *context), void *context);
/* Waits until callback() does not run, and leaves the group. CONTEXT: process, may sleep. */
void shim_helper_sa_leave(struct ib_sa_multicast *membership);
/* Returns true if a user on this host, of whatever kind, is a member of the group. CONTEXT: any. */
bool shim_ib_sa_get_mcmember_rec(struct ib_device *ca, uint32_t port, const struct shim_gid *mgid);

SHIM_END
