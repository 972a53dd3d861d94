// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The HCA (struct ib_device): attributes, ports and their tables, protection domains, events. */
#include "compat.h"
#include "objects.h"
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include <shim/device.h>

SHIM const char *shim_ib_device_name(const struct ib_device *ca) { return dev_name(&ca->dev); }
SHIM unsigned int shim_ib_max_send_sge(const struct ib_device *ca) { return ca->attrs.max_send_sge; }

SHIM uint64_t shim_ib_device_cap_flags(const struct ib_device *ca) { return ca->attrs.device_cap_flags; }
SHIM uint64_t shim_ib_kernel_cap_flags(const struct ib_device *ca) { return SHIM_KERNEL_CAP_FLAGS(ca); }

SHIM unsigned int shim_ib_num_comp_vectors(const struct ib_device *ca) { return ca->num_comp_vectors; }

SHIM int shim_rdma_mtu_enum_to_int(struct ib_device *ca, uint32_t port, int code)
{
	return rdma_mtu_enum_to_int(ca, port, code);
}

SHIM int shim_rdma_query_gid(struct ib_device *ca, uint32_t port, int index, struct shim_gid *gid)
{
	return rdma_query_gid(ca, port, index, (union ib_gid *)gid);
}

SHIM int shim_ib_ops_query_gid(struct ib_device *ca, uint32_t port, int index, struct shim_gid *gid)
{
	return ca->ops.query_gid(ca, port, index, (union ib_gid *)gid);
}

SHIM void shim_ib_dispatch_gid_change(struct ib_device *ca, uint32_t port)
{
	struct ib_event event = { .device = ca, .event = IB_EVENT_GID_CHANGE, .element.port_num = port };

	ib_dispatch_event(&event);
}

SHIM int shim_ib_query_pkey(struct ib_device *ca, uint32_t port, uint16_t index, uint16_t *pkey)
{
	return ib_query_pkey(ca, port, index, pkey);
}

SHIM int shim_ib_find_pkey(struct ib_device *ca, uint32_t port, uint16_t pkey, uint16_t *index)
{
	return ib_find_pkey(ca, port, pkey, index);
}

SHIM int shim_ib_find_cached_pkey(struct ib_device *ca, uint32_t port, uint16_t pkey, uint16_t *index)
{
	return ib_find_cached_pkey(ca, port, pkey, index);
}

SHIM uint32_t shim_rdma_end_port(const struct ib_device *ca) { return rdma_end_port(ca); }
SHIM bool shim_rdma_protocol_ib(const struct ib_device *ca, uint32_t port) { return rdma_protocol_ib(ca, port); }

SHIM struct ib_pd *shim_ib_alloc_pd(struct ib_device *ca) { return ib_alloc_pd(ca, 0); }
SHIM void shim_ib_dealloc_pd(struct ib_pd *pd) { ib_dealloc_pd(pd); }
SHIM uint32_t shim_ib_pd_lkey(const struct ib_pd *pd) { return pd->local_dma_lkey; }

SHIM unsigned int shim_ib_max_srq_sge(const struct ib_device *ca)
{
	return ca->attrs.max_srq ? ca->attrs.max_srq_sge : 0;
}

SHIM void shim_ib_unregister_event_handler(struct shim_event_handler *handler)
{
	ib_unregister_event_handler(&handler->handler);
}
