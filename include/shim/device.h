/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The HCA (struct ib_device): attributes, ports and their tables, protection domains, events. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_device;
struct ib_pd;
struct shim_event_handler;

/* A GID, network byte order. */
struct shim_gid {
	uint8_t raw[16];
};

/* Attributes of a port. */
struct shim_port {
	bool active;
	uint16_t lid;
	/* Bytes. */
	unsigned int max_mtu, active_mtu;
	/* The kernel's enum ib_port_speed and enum ib_port_width. */
	unsigned int speed, width;
	/* Omni-Path. Its driver reports an active MTU of 4096 also if that is 8192 or 10240; max_mtu is the port's. */
	bool omni_path;
};

/* Functions that return a field of the HCA. CONTEXT: any. */
const char *shim_ib_device_name(const struct ib_device *ca);
unsigned int shim_ib_max_send_sge(const struct ib_device *ca);
/* Capabilities: bits SHIM_IB_DEVICE_* that the HCA reports, and SHIM_IBK_* that its kernel driver has. */
uint64_t shim_ib_device_cap_flags(const struct ib_device *ca);
uint64_t shim_ib_kernel_cap_flags(const struct ib_device *ca);
unsigned int shim_ib_num_comp_vectors(const struct ib_device *ca);
/* Queries the port. CONTEXT: process, may sleep. */
int shim_helper_ib_query_port(struct ib_device *ca, uint32_t port, struct shim_port *attributes);
/* Returns the bytes of an MTU code of the port's SA, or of Omni-Path's; -1: there is no such code. CONTEXT: any. */
int shim_rdma_mtu_enum_to_int(struct ib_device *ca, uint32_t port, int code);
/* Reads a GID from ib_core's copy, which is renewed when the HCA reports a change. CONTEXT: any. */
int shim_rdma_query_gid(struct ib_device *ca, uint32_t port, int index, struct shim_gid *gid);
/* Reads a GID from the HCA. CONTEXT: process, may sleep. */
int shim_ib_ops_query_gid(struct ib_device *ca, uint32_t port, int index, struct shim_gid *gid);
/* Reports on the HCA's behalf that GIDs of the port have changed; ib_core then copies them, in a work item. CONTEXT:
 * any. */
void shim_ib_dispatch_gid_change(struct ib_device *ca, uint32_t port);
/* Finds a GID's index in ib_core's copy of the table. -ENOENT: there is none. CONTEXT: any. */
int shim_helper_rdma_find_gid(struct ib_device *ca, uint32_t port, const struct shim_gid *gid, uint16_t *index);
/* Read and search the port's P_Key table in the HCA. -ENOENT: not found. CONTEXT: process, may sleep. */
int shim_ib_query_pkey(struct ib_device *ca, uint32_t port, uint16_t index, uint16_t *pkey);
int shim_ib_find_pkey(struct ib_device *ca, uint32_t port, uint16_t pkey, uint16_t *index);
/* Searches ib_core's copy of the P_Key table. -ENOENT: not found. CONTEXT: any. */
int shim_ib_find_cached_pkey(struct ib_device *ca, uint32_t port, uint16_t pkey, uint16_t *index);
/* The number of ports. CONTEXT: any, as for the next two. */
uint32_t shim_rdma_end_port(const struct ib_device *ca);
/* Returns true if the port's link layer is InfiniBand. */
bool shim_rdma_protocol_ib(const struct ib_device *ca, uint32_t port);
/* Elements of a work request in a shared receive queue, at most; 0: the HCA has none. */
unsigned int shim_ib_max_srq_sge(const struct ib_device *ca);

/* Allocates a protection domain. An error pointer on failure. CONTEXT: process, may sleep. */
struct ib_pd *shim_ib_alloc_pd(struct ib_device *ca);
/* CONTEXT: process, may sleep. */
void shim_ib_dealloc_pd(struct ib_pd *pd);
/* The local DMA L_Key. CONTEXT: any. */
uint32_t shim_ib_pd_lkey(const struct ib_pd *pd);

/* Has on_event(context, event, port) called in process context, until unregistered. event: SHIM_IB_EVENT_*, the values
 * of enum ib_event_type. CONTEXT: process, may sleep. */
void shim_helper_register_event_handler(struct ib_device *ca, struct shim_event_handler *handler,
					void (*on_event)(void *context, unsigned int event, uint32_t port),
					void *context);
/* Waits until on_event() does not run. CONTEXT: process, may sleep. */
void shim_ib_unregister_event_handler(struct shim_event_handler *handler);

SHIM_END
