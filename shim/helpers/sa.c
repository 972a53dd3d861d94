// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Helpers for requests to the subnet administrator: functions of the C boundary that need control flow or several
 * kernel calls. The comment above each gives the reason.
 */
#include "../compat.h"
#include "../objects.h"
#include <linux/err.h>
#include <linux/slab.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>
#include <shim/sa.h>

/* The callback of a query; freed with the response. */
struct path_query {
	void (*callback)(int status, struct sa_path_rec *record, void *context);
	void *context;
};

static void path_query_done(SHIM_PATH_CALLBACK_ARGS)
{
	struct path_query *pending = context;

	pending->callback(status, status ? NULL : record, pending->context);
	kfree(pending);
}

/*
 * Fills a kernel structure, and keeps the callback in memory that lives until the response: ib_sa holds one context
 * pointer.
 */
SHIM int shim_helper_sa_path_query(struct ib_device *ca, uint32_t port, const struct shim_path_query *request,
				   unsigned int timeout_ms,
				   void (*callback)(int status, struct sa_path_rec *record, void *context),
				   void *context, struct ib_sa_query **query)
{
	struct path_query *pending = kmalloc(sizeof(*pending), GFP_ATOMIC);
	struct sa_path_rec record = {
		.rec_type = rdma_cap_opa_ah(ca, port) ? SA_PATH_REC_TYPE_OPA : SA_PATH_REC_TYPE_IB,
		.pkey = cpu_to_be16(request->pkey),
		.numb_path = 1,
		.traffic_class = request->traffic_class,
	};
	int id;

	if (!pending)
		return -ENOMEM;
	pending->callback = callback;
	pending->context = context;
	memcpy(&record.dgid, &request->dgid, sizeof(record.dgid));
	memcpy(&record.sgid, &request->sgid, sizeof(record.sgid));
	id = ib_sa_path_rec_get(&shim_sa_client, ca, port, &record,
				IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_NUMB_PATH |
					IB_SA_PATH_REC_TRAFFIC_CLASS | IB_SA_PATH_REC_PKEY,
				timeout_ms, GFP_ATOMIC, path_query_done, pending, query);
	if (id < 0)
		kfree(pending);
	return id;
}

/* The context of the membership, which has space for one pointer. */
struct join {
	int (*callback)(int status, const struct shim_mcmember *member, void *context);
	void *context;
};

static int join_done(int status, struct ib_sa_multicast *membership)
{
	struct join *join = membership->context;
	const struct ib_sa_mcmember_rec *record = &membership->rec;
	struct shim_mcmember member = {
		.qkey = be32_to_cpu(record->qkey),
		.mlid = be16_to_cpu(record->mlid),
		.pkey = be16_to_cpu(record->pkey),
		.mtu = record->mtu,
		.traffic_class = record->traffic_class,
		.rate = record->rate,
		.sl = record->sl,
		.hop_limit = record->hop_limit,
		.flow_label = be32_to_cpu(record->flow_label),
		.join_state = record->join_state,
	};
	int ret;

	memcpy(&member.mgid, &record->mgid, sizeof(member.mgid));
	memcpy(&member.port_gid, &record->port_gid, sizeof(member.port_gid));
	ret = join->callback(status, &member, join->context);
	if (ret)
		kfree(join);
	return ret;
}

/*
 * Fills a kernel structure, and keeps the callback in memory that lives as long as the membership: ib_sa holds one
 * context pointer.
 */
SHIM struct ib_sa_multicast *
shim_helper_sa_join(struct ib_device *ca, uint32_t port, const struct shim_mcmember *member, bool with_parameters,
		    int (*callback)(int status, const struct shim_mcmember *member, void *context), void *context)
{
	struct join *join = kmalloc(sizeof(*join), GFP_KERNEL);
	struct ib_sa_mcmember_rec record = {
		.pkey = cpu_to_be16(member->pkey),
		.join_state = member->join_state,
	};
	ib_sa_comp_mask mask = IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID | IB_SA_MCMEMBER_REC_PKEY |
			       IB_SA_MCMEMBER_REC_JOIN_STATE;
	struct ib_sa_multicast *membership;

	if (!join)
		return ERR_PTR(-ENOMEM);
	join->callback = callback;
	join->context = context;
	memcpy(&record.mgid, &member->mgid, sizeof(record.mgid));
	memcpy(&record.port_gid, &member->port_gid, sizeof(record.port_gid));
	if (with_parameters) {
		mask |= IB_SA_MCMEMBER_REC_QKEY | IB_SA_MCMEMBER_REC_MTU_SELECTOR | IB_SA_MCMEMBER_REC_MTU |
			IB_SA_MCMEMBER_REC_TRAFFIC_CLASS | IB_SA_MCMEMBER_REC_RATE_SELECTOR | IB_SA_MCMEMBER_REC_RATE |
			IB_SA_MCMEMBER_REC_SL | IB_SA_MCMEMBER_REC_FLOW_LABEL | IB_SA_MCMEMBER_REC_HOP_LIMIT;
		record.qkey = cpu_to_be32(member->qkey);
		record.mtu_selector = IB_SA_EQ;
		record.mtu = member->mtu;
		record.traffic_class = member->traffic_class;
		record.rate_selector = IB_SA_EQ;
		record.rate = member->rate;
		record.sl = member->sl;
		record.flow_label = cpu_to_be32(member->flow_label);
		record.hop_limit = member->hop_limit;
	}
	membership = ib_sa_join_multicast(&shim_sa_client, ca, port, &record, mask, GFP_KERNEL, join_done, join);
	if (IS_ERR(membership))
		kfree(join);
	return membership;
}

/* Frees that memory after the membership. */
SHIM void shim_helper_sa_leave(struct ib_sa_multicast *membership)
{
	struct join *join = membership->context;

	ib_sa_free_multicast(membership);
	kfree(join);
}
