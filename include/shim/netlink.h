/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The rtnetlink kind "ipoib": `ip link add link ib0 name X type ipoib pkey P mode M umcast U`. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;
struct netlink_ext_ack;

/* Attributes of a request; has_*: the attribute is present. */
struct shim_link_request {
	/* IFLA_LINK; NULL: there is no such netdev. */
	struct net_device *link;
	bool has_link, has_pkey, has_mode, has_umcast;
	uint16_t pkey, mode, umcast;
};

struct shim_link_info {
	uint16_t pkey, mode, umcast;
};

/* CONTEXT: process, no RTNL. */
int shim_rtnl_link_register(void);
void shim_rtnl_link_unregister(void);
enum { SHIM_EXTACK_BYTES = 80 };
/* Sets the message that the user gets with the errno, truncated to SHIM_EXTACK_BYTES; extack may be NULL. */
void shim_helper_extack(struct netlink_ext_ack *extack, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* CONTEXT of all below: RTNL. */
/* Creates an interface. dev is set up and not registered; on failure the kernel frees it. */
int ipoib_newlink(struct net_device *dev, const struct shim_link_request *request, struct netlink_ext_ack *extack);
int ipoib_changelink(struct net_device *dev, const struct shim_link_request *request, struct netlink_ext_ack *extack);
/* Queues the netdev for unregistration in batch, a struct list_head. */
void ipoib_dellink(struct net_device *dev, void *batch);
void ipoib_link_info(const struct net_device *dev, struct shim_link_info *info);
/* Returns the netdev's parent, or itself. CONTEXT: any. */
const struct net_device *ipoib_link_parent(const struct net_device *dev);

SHIM_END
