/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The netdev: allocation, registration, and its fields. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_device;
struct net_device;
struct sockaddr;

/* Offloads of a netdev for datagrams. */
enum shim_ability {
	/* Scatter/gather. */
	SHIM_CAN_GATHER = 1,
	/* The HCA fills in, and verifies, TCP and UDP checksums over IPv4; segments TCP over IPv4. */
	SHIM_CAN_CHECKSUM = 2,
	SHIM_CAN_SEGMENT = 4,
	/* The HCA is a virtual function: there are no operations for its virtual functions. */
	SHIM_IS_FUNCTION = 8,
	/* The driver segments TCP, and fills in checksums that the HCA can't. */
	SHIM_CUT_BY_DRIVER = 16,
};

/*
 * One "ib%d" interface in the HCA's network namespace, set up but not registered; with room for the HCA's rdma_netdev.
 * CONTEXT: process.
 */
struct net_device *shim_helper_alloc_netdev(struct ib_device *ca, uint32_t port);
/* A child of parent, in its network namespace. CONTEXT: process. */
struct net_device *shim_helper_alloc_child_netdev(struct ib_device *ca, uint32_t port, struct net_device *parent,
						  const char *name);
/* Transmit queues that the netdev has; and use of the first so many of them. CONTEXT: RTNL. */
unsigned int shim_netdev_num_tx_queues(const struct net_device *dev);
int shim_netif_set_real_num_tx_queues(struct net_device *dev, unsigned int count);
int shim_netif_set_real_num_rx_queues(struct net_device *dev, unsigned int count);
/* Adds features, and operations, by bits of enum shim_ability. CONTEXT: before registration, or within ndo_init. */
void shim_helper_netdev_add_features(struct net_device *dev, unsigned int abilities);
/* It has the files of a child, not those of a parent. CONTEXT: before registration. */
void shim_netdev_set_child(struct net_device *dev);
/* A TCP packet that is to be cut becomes so many at most. */
void shim_netif_set_tso_max_segs(struct net_device *dev, unsigned int segments);
/* The most segments that the stack sends as one packet, which the user may change too. CONTEXT: RTNL. */
unsigned int shim_netdev_gso_max_segs(const struct net_device *dev);
void shim_netdev_set_gso_max_segs(struct net_device *dev, unsigned int segments);
/* What it is all about: its owner's state. */
void *shim_rdma_netdev_clnt_priv(const struct net_device *dev);
void shim_rdma_netdev_set_clnt_priv(struct net_device *dev, void *owner);
/* On success the kernel calls ipoib_netdev_gone() at the netdev's end, and frees it. CONTEXT: RTNL. */
int shim_helper_register_netdevice(struct net_device *dev);
/* At once, or with the others of batch, a struct list_head. CONTEXT: RTNL. */
void shim_unregister_netdevice_queue(struct net_device *dev, void *batch);
/* A batch of the driver's own: each grace period that unregistration takes is one for all in it. CONTEXT: RTNL. */
void shim_init_list_head(void *batch);
void shim_unregister_netdevice_many(void *batch);
/* One that was never registered. */
void shim_free_netdev(struct net_device *dev);
/* It was created by this driver. */
bool shim_netdev_is_ours(const struct net_device *dev);
/* A bond's port, whose address the bond has copied. CONTEXT: any. */
bool shim_netif_is_bond_slave(const struct net_device *dev);
/* IFF_UP. */
bool shim_netdev_iff_up(const struct net_device *dev);
/* As the user would. CONTEXT: RTNL, no netdev's ops lock. */
void shim_dev_change_flags(struct net_device *dev, bool up);
/*
 * The lock that the core holds, inside RTNL, around the netdev's operations, if its rdma_netdev asked for it; else
 * there is none, and nothing is done. CONTEXT: RTNL, may sleep.
 */
bool shim_netdev_need_ops_lock(const struct net_device *dev);
void shim_netdev_lock_ops(struct net_device *dev);
void shim_netdev_unlock_ops(struct net_device *dev);
/* The caller is an administrator of the netdev's namespace. CONTEXT: a system call. */
bool shim_ns_capable(const struct net_device *dev);

const char *shim_netdev_name(const struct net_device *dev);
/* Changes bytes [offset, offset + bytes) of the hardware address. CONTEXT: RTNL, or before registration. */
/* 20 bytes; given: they came with the request for the netdev. */
const uint8_t *shim_netdev_dev_addr(const struct net_device *dev);
bool shim_netdev_addr_set_by_user(const struct net_device *dev);
void shim_dev_addr_mod(struct net_device *dev, unsigned int offset, const void *address, unsigned int bytes);
/* The netdev, or one that it is below, has this IP address. CONTEXT: process. */
bool shim_helper_netdev_has_address(struct net_device *dev, const struct sockaddr *address);
/* What the netdev is enslaved to at layer 2, or itself; held for the caller. CONTEXT: process. */
struct net_device *shim_helper_netdev_hold_master(struct net_device *dev);
/* It was changed: whoever knows the old one is to forget it. CONTEXT: RTNL. */
void shim_helper_notify_changeaddr(struct net_device *dev);
/* Neighbours are told of the addresses, unasked. CONTEXT: RTNL. */
void shim_netdev_notify_peers(struct net_device *dev);
uint8_t *shim_netdev_broadcast(struct net_device *dev);
unsigned int shim_netdev_mtu(const struct net_device *dev);
/* Stores the MTU, before registration or from within ndo_change_mtu. */
void shim_netdev_set_mtu(struct net_device *dev, unsigned int mtu);
/* Changes it as the user would, with notifications. CONTEXT: RTNL and the ops lock. */
int shim_dev_set_mtu(struct net_device *dev, unsigned int mtu);
/* Features that the user can switch: received checksums count as verified; TCP segments are merged (LRO). */
bool shim_netdev_has_rxcsum(const struct net_device *dev);
bool shim_netdev_has_lro(const struct net_device *dev);
/* Asks ipoib_offloads_sends() and ipoib_leaves_checksums() anew. CONTEXT: RTNL. */
void shim_netdev_update_features(struct net_device *dev);
/* Calls visit(context, 20-byte address) for each multicast address, under the address list's lock. */
void shim_helper_netdev_for_each_mc_addr(struct net_device *dev, void (*visit)(void *context, const uint8_t *address),
					 void *context);

void shim_netif_carrier_on(struct net_device *dev);
void shim_netif_carrier_off(struct net_device *dev);

/* Seconds between two looks at the neighbour tables (arp_tbl.gc_interval), in jiffies. */
unsigned long shim_arp_tbl_gc_interval(void);

SHIM_END
