// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Address handles. */
#include <linux/err.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>
#include <shim/ah.h>

SHIM struct ib_ah *shim_helper_create_ah(struct ib_pd *pd, const struct shim_ah_attributes *attributes)
{
	struct rdma_ah_attr attr = { .type = rdma_ah_find_type(pd->device, attributes->port) };
	union ib_gid dgid;

	memcpy(&dgid, &attributes->dgid, sizeof(dgid));
	rdma_ah_set_port_num(&attr, attributes->port);
	rdma_ah_set_dlid(&attr, attributes->dlid);
	rdma_ah_set_sl(&attr, attributes->sl);
	rdma_ah_set_static_rate(&attr, attributes->rate);
	rdma_ah_set_grh(&attr, &dgid, attributes->flow_label, attributes->sgid_index, attributes->hop_limit,
			attributes->traffic_class);
	return rdma_create_ah(pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
}

SHIM struct ib_ah *shim_helper_create_ah_from_path(struct ib_pd *pd, uint32_t port, struct sa_path_rec *record)
{
	struct rdma_ah_attr attr = {};
	struct ib_ah *ah;
	int ret = ib_init_ah_attr_from_path(pd->device, port, record, &attr, NULL);

	if (ret)
		return ERR_PTR(ret);
	ah = rdma_create_ah(pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	rdma_destroy_ah_attr(&attr);
	return ah;
}

SHIM void shim_rdma_destroy_ah(struct ib_ah *ah) { rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE); }
