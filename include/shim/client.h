/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The client of ib_core: HCAs that come and go. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_device;
struct net_device;
struct shim_gid;
struct sockaddr;

int shim_ib_register_client(void);
/* Takes every HCA away first. */
void shim_ib_unregister_client(void);
/* What remove gets as state. */
int ipoib_add_device(struct ib_device *ca, void **state);
void ipoib_remove_device(struct ib_device *ca, void *state);
/* The netdev for which a request came in, held for the caller; gid and address may be NULL. CONTEXT: process. */
struct net_device *ipoib_find_netdev(void *state, uint32_t port, uint16_t pkey, const struct shim_gid *gid,
				     const struct sockaddr *address);

SHIM_END
