/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The HCA (struct ib_device): attributes, ports and their tables, protection domains, events. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_device;
struct ib_pd;
struct shim_event_handler;

struct shim_gid {
	uint8_t raw[16];
};

struct shim_port {
	bool active;
	uint16_t lid;
	uint8_t lmc;
	/* Bytes. */
	unsigned int max_mtu, active_mtu;
	/* As PortInfo has them (IBA 14.2.5.6). */
	unsigned int speed, width;
};

const char *shim_ib_device_name(const struct ib_device *ca);
unsigned int shim_ib_max_send_sge(const struct ib_device *ca);
/* Capabilities: bits SHIM_IB_DEVICE_* that the HCA reports, and SHIM_IBK_* that its kernel driver has. */
uint64_t shim_ib_device_cap_flags(const struct ib_device *ca);
uint64_t shim_ib_kernel_cap_flags(const struct ib_device *ca);
unsigned int shim_ib_num_comp_vectors(const struct ib_device *ca);
/* CONTEXT: process. */
int shim_helper_ib_query_port(struct ib_device *ca, uint32_t port, struct shim_port *attributes);
/* ib_core's copy, which it makes anew when the HCA reports a change. */
int shim_rdma_query_gid(struct ib_device *ca, uint32_t port, int index, struct shim_gid *gid);
/* The HCA's own answer. */
int shim_ib_ops_query_gid(struct ib_device *ca, uint32_t port, int index, struct shim_gid *gid);
/*
 * Reports on behalf of the HCA that the port's GIDs have changed: ib_core copies them a moment later, and passes no
 * event to its clients.
 */
void shim_ib_dispatch_gid_change(struct ib_device *ca, uint32_t port);
/* CONTEXT: any. */
int shim_helper_rdma_find_gid(struct ib_device *ca, uint32_t port, const struct shim_gid *gid, uint16_t *index);
int shim_ib_query_pkey(struct ib_device *ca, uint32_t port, uint16_t index, uint16_t *pkey);
int shim_ib_find_pkey(struct ib_device *ca, uint32_t port, uint16_t pkey, uint16_t *index);
/* In the RDMA core's copy of the table: the HCA is not asked. CONTEXT: any. */
int shim_ib_find_cached_pkey(struct ib_device *ca, uint32_t port, uint16_t pkey, uint16_t *index);
uint32_t shim_rdma_end_port(const struct ib_device *ca);
/* The port's link layer is InfiniBand. */
bool shim_rdma_protocol_ib(const struct ib_device *ca, uint32_t port);
unsigned int shim_ib_max_srq_sge(const struct ib_device *ca);

struct ib_pd *shim_ib_alloc_pd(struct ib_device *ca);
void shim_ib_dealloc_pd(struct ib_pd *pd);
uint32_t shim_ib_pd_lkey(const struct ib_pd *pd);

enum shim_event {
	SHIM_EVENT_OTHER,
	SHIM_EVENT_CLIENT_REREGISTER,
	SHIM_EVENT_PORT_ERROR,
	SHIM_EVENT_PORT_ACTIVE,
	SHIM_EVENT_LID_CHANGE,
	SHIM_EVENT_PKEY_CHANGE,
	SHIM_EVENT_GID_CHANGE,
};
void shim_helper_register_event_handler(struct ib_device *ca, struct shim_event_handler *handler,
					void (*on_event)(void *context, enum shim_event event, uint32_t port),
					void *context);
void shim_ib_unregister_event_handler(struct shim_event_handler *handler);

SHIM_END
