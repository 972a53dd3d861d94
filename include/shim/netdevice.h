/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The netdev: allocation, registration, and its fields. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_device;
struct net_device;
struct sockaddr;

/*
 * One "ib%d" interface in the HCA's network namespace, set up but not registered; with room for the HCA's rdma_netdev.
 * CONTEXT: process.
 */
struct net_device *shim_netdev_create(struct ib_device *ca, uint32_t port);
/* A child of parent, in its network namespace. CONTEXT: process. */
struct net_device *shim_netdev_create_child(struct ib_device *ca, uint32_t port, struct net_device *parent,
					    const char *name);
/* Limits a netdev, allocated with the queues that an rdma_netdev may need, to one each. CONTEXT: before registration.
 */
void shim_netdev_use_one_queue(struct net_device *dev);
/* Transmit queues that the netdev has; and use of the first so many of them. CONTEXT: RTNL. */
unsigned int shim_netdev_tx_queues(const struct net_device *dev);
int shim_netdev_use_tx_queues(struct net_device *dev, unsigned int count);
/* Adds features, and operations, by bits of enum shim_ability. CONTEXT: before registration, or within ndo_init. */
void shim_netdev_add_abilities(struct net_device *dev, unsigned int abilities);
/* It has the files of a child, not those of a parent. CONTEXT: before registration. */
void shim_netdev_set_child(struct net_device *dev);
/* A TCP packet that is to be cut becomes so many at most. */
void shim_netdev_limit_segments(struct net_device *dev, unsigned int segments);
/* The most segments that the stack sends as one packet, which the user may change too. CONTEXT: RTNL. */
unsigned int shim_netdev_max_segments(const struct net_device *dev);
void shim_netdev_set_max_segments(struct net_device *dev, unsigned int segments);
/* What it is all about: its owner's state. */
void *shim_netdev_owner(const struct net_device *dev);
void shim_netdev_set_owner(struct net_device *dev, void *owner);
/* On success the kernel calls ipoib_netdev_gone() at the netdev's end, and frees it. CONTEXT: RTNL. */
int shim_netdev_register(struct net_device *dev);
/* At once, or with the others of batch, a struct list_head. CONTEXT: RTNL. */
void shim_netdev_unregister(struct net_device *dev, void *batch);
/* A batch of the driver's own: each grace period that unregistration takes is one for all in it. CONTEXT: RTNL. */
void shim_netdev_batch_init(void *batch);
void shim_netdev_batch_unregister(void *batch);
/* One that was never registered. */
void shim_netdev_free(struct net_device *dev);
/* It was created by this driver. */
bool shim_netdev_is_ours(const struct net_device *dev);
/* A bond's port, whose address the bond has copied. CONTEXT: any. */
bool shim_netdev_bonded(const struct net_device *dev);
/* IFF_UP. */
bool shim_netdev_up(const struct net_device *dev);
/* As the user would. CONTEXT: RTNL, no netdev's ops lock. */
void shim_netdev_bring(struct net_device *dev, bool up);
/*
 * The lock that the core holds, inside RTNL, around the netdev's operations, if its rdma_netdev asked for it; else
 * there is none, and nothing is done. CONTEXT: RTNL, may sleep.
 */
bool shim_netdev_has_ops_lock(const struct net_device *dev);
void shim_netdev_lock_ops(struct net_device *dev);
void shim_netdev_unlock_ops(struct net_device *dev);
/* The caller is an administrator of the netdev's namespace. CONTEXT: a system call. */
bool shim_may_administer(const struct net_device *dev);

const char *shim_netdev_name(const struct net_device *dev);
/* Changes bytes [offset, offset + bytes) of the hardware address. CONTEXT: RTNL, or before registration. */
/* 20 bytes; given: they came with the request for the netdev. */
const uint8_t *shim_netdev_address(const struct net_device *dev);
bool shim_netdev_address_given(const struct net_device *dev);
void shim_netdev_set_address(struct net_device *dev, unsigned int offset, const void *address, unsigned int bytes);
/* The netdev, or one that it is below, has this IP address. CONTEXT: process. */
bool shim_netdev_has_address(struct net_device *dev, const struct sockaddr *address);
/* What the netdev is enslaved to at layer 2, or itself; held for the caller. CONTEXT: process. */
struct net_device *shim_netdev_hold_outermost(struct net_device *dev);
/* It was changed: whoever knows the old one is to forget it. CONTEXT: RTNL. */
void shim_netdev_address_changed(struct net_device *dev);
/* Neighbours are told of the addresses, unasked. CONTEXT: RTNL. */
void shim_netdev_notify_peers(struct net_device *dev);
uint8_t *shim_netdev_broadcast(struct net_device *dev);
unsigned int shim_netdev_mtu(const struct net_device *dev);
void shim_netdev_set_initial_mtu(struct net_device *dev, unsigned int mtu);
/* Stores the MTU, from within ndo_change_mtu. */
void shim_netdev_store_mtu(struct net_device *dev, unsigned int mtu);
/* Changes it as the user would, with notifications. CONTEXT: RTNL and the ops lock. */
int shim_netdev_change_mtu(struct net_device *dev, unsigned int mtu);
/* Features that the user can switch: received checksums count as verified; TCP segments are merged (LRO). */
bool shim_netdev_rx_checksum(const struct net_device *dev);
bool shim_netdev_lro(const struct net_device *dev);
/* Asks ipoib_offloads_sends() and ipoib_leaves_checksums() anew. CONTEXT: RTNL. */
void shim_netdev_update_features(struct net_device *dev);
/* Calls visit(context, 20-byte address) for each multicast address, under the address list's lock. */
void shim_netdev_for_each_multicast(struct net_device *dev, void (*visit)(void *context, const uint8_t *address),
				    void *context);

void shim_netdev_carrier_on(struct net_device *dev);
void shim_netdev_carrier_off(struct net_device *dev);

/* Seconds between two looks at the neighbour tables (arp_tbl.gc_interval), in jiffies. */
unsigned long shim_neighbour_gc_interval(void);

SHIM_END
