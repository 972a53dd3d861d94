/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The client of ib_core: HCAs that come and go. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_device;
struct net_device;
struct shim_gid;
struct sockaddr;

/* Registers the driver: ipoib_add_device() is called for each HCA. CONTEXT: process, may sleep. */
int shim_ib_register_client(void);
/* Calls ipoib_remove_device() for each HCA, and unregisters. CONTEXT: process, may sleep. */
void shim_ib_unregister_client(void);

/* Add and remove an HCA. ipoib_add_device() sets *state, which the other two functions get. CONTEXT: process, without
 * RTNL. */
int ipoib_add_device(struct ib_device *ca, void **state);
void ipoib_remove_device(struct ib_device *ca, void *state);
/* Returns, with a reference, the netdev that a request of rdma_cm is for; NULL: none. gid and address may be NULL.
 * CONTEXT: process. */
struct net_device *ipoib_find_netdev(void *state, uint32_t port, uint16_t pkey, const struct shim_gid *gid,
				     const struct sockaddr *address);

SHIM_END
