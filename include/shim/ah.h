/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Address handles. */
#pragma once
#include <shim/base.h>
#include <shim/device.h>
SHIM_BEGIN

struct ib_ah;
struct ib_pd;
struct sa_path_rec;

/* Destination of datagrams to a multicast group. */
struct shim_ah_attributes {
	uint32_t port;
	uint16_t dlid;
	uint8_t sl;
	/* A rate as the SA encodes it (IBA 15.2.5.16). */
	uint8_t rate;
	uint8_t traffic_class, hop_limit;
	uint32_t flow_label;
	/* Index of the source GID in the port's table. */
	uint8_t sgid_index;
	struct shim_gid dgid;
};

/* Create an address handle, from attributes or from a path record. An error pointer on failure. CONTEXT: process, may
 * sleep, as for destruction. */
struct ib_ah *shim_helper_create_ah(struct ib_pd *pd, const struct shim_ah_attributes *attributes);
struct ib_ah *shim_helper_create_ah_from_path(struct ib_pd *pd, uint32_t port, struct sa_path_rec *record);
void shim_rdma_destroy_ah(struct ib_ah *ah);

SHIM_END
