/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The rtnetlink kind "ipoib": `ip link add link ib0 name X type ipoib pkey P mode M umcast U`. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;
struct netlink_ext_ack;

/* What the user asked for; has_* tell what was said. */
struct shim_link_request {
	/* IFLA_LINK: NULL when it names nothing. */
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
/* The words that the user gets with the errno, cut to fit. NULL extack: nobody to tell. */
void shim_helper_extack(struct netlink_ext_ack *extack, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* kernel -> C++. CONTEXT: RTNL. dev is set up and not registered; on failure the kernel frees it. */
int ipoib_newlink(struct net_device *dev, const struct shim_link_request *request, struct netlink_ext_ack *extack);
int ipoib_changelink(struct net_device *dev, const struct shim_link_request *request, struct netlink_ext_ack *extack);
/* Queues the netdev for unregistration in batch, a struct list_head. */
void ipoib_dellink(struct net_device *dev, void *batch);
void ipoib_link_info(const struct net_device *dev, struct shim_link_info *info);
/* The netdev that this is a child of, or itself. */
const struct net_device *ipoib_link_parent(const struct net_device *dev);

SHIM_END
