// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Requests to the subnet administrator. Those that keep a callback are in helpers/sa.c. */
#include "objects.h"
#include <rdma/ib_sa.h>
#include <shim/sa.h>

struct ib_sa_client shim_sa_client;

SHIM void shim_ib_sa_register_client(void) { ib_sa_register_client(&shim_sa_client); }
SHIM void shim_ib_sa_unregister_client(void) { ib_sa_unregister_client(&shim_sa_client); }

SHIM void shim_ib_sa_cancel_query(int id, struct ib_sa_query *query) { ib_sa_cancel_query(id, query); }
SHIM uint32_t shim_path_dlid(struct sa_path_rec *record) { return be32_to_cpu(sa_path_get_dlid(record)); }
SHIM uint8_t shim_path_sl(const struct sa_path_rec *record) { return record->sl; }
SHIM unsigned int shim_ib_rate_to_mbps(const struct sa_path_rec *record) { return ib_rate_to_mbps(record->rate); }
SHIM void shim_path_copy(struct sa_path_rec *to, const struct sa_path_rec *from) { *to = *from; }

SHIM bool shim_ib_sa_get_mcmember_rec(struct ib_device *ca, uint32_t port, const struct shim_gid *mgid)
{
	struct ib_sa_mcmember_rec record;

	return ib_sa_get_mcmember_rec(ca, port, (union ib_gid *)mgid, &record) == 0;
}
