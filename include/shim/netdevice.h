/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The netdev (struct net_device): allocation, registration, and its fields. CONTEXT: RTNL, or before registration, if
 * nothing else is given; functions that return a field may be called from any.
 */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_device;
struct net_device;
struct sockaddr;

/* Offloads of a netdev for datagrams. */
enum shim_feature {
	/* Scatter/gather. */
	SHIM_FEATURE_SG = 1,
	/* The HCA fills in, and verifies, TCP and UDP checksums over IPv4. */
	SHIM_FEATURE_IP_CSUM = 2,
	/* The HCA segments TCP over IPv4. */
	SHIM_FEATURE_TSO = 4,
	/* The HCA is a virtual function: there are no operations for its virtual functions. */
	SHIM_FEATURE_VF = 8,
	/* The driver segments TCP, and fills in checksums that the HCA can't. */
	SHIM_FEATURE_DRIVER_TSO = 16,
	/* The driver merges received TCP segments. */
	SHIM_FEATURE_GRO_HW = 32,
};

/*
 * Allocates a netdev: of a port, named "ib%d", in the HCA's network namespace (before Linux 6.17 in the initial one);
 * or a child of parent, in its namespace. Both are set up, with space for the HCA's rdma_netdev. Returns NULL on
 * failure. CONTEXT: RTNL.
 */
struct net_device *shim_helper_alloc_netdev(struct ib_device *ca, uint32_t port);
struct net_device *shim_helper_alloc_child_netdev(struct ib_device *ca, uint32_t port, struct net_device *parent,
						  const char *name);
/* Queues of a netdev, at most, unless its rdma_netdev has more. */
enum { SHIM_MAX_TX_QUEUES = 8, SHIM_MAX_RX_QUEUES = 8 };

/* Numbers of queues that were allocated, and of those that are used. */
unsigned int shim_netdev_real_num_tx_queues(const struct net_device *dev);
unsigned int shim_netdev_num_tx_queues(const struct net_device *dev);
unsigned int shim_netdev_num_rx_queues(const struct net_device *dev);
/* Sets the number of queues that are used, from the first. -EINVAL: none, or more than there are. */
int shim_netif_set_real_num_tx_queues(struct net_device *dev, unsigned int count);
int shim_netif_set_real_num_rx_queues(struct net_device *dev, unsigned int count);
/* Adds features and netdev operations for bits of enum shim_feature. CONTEXT: before registration, or in ndo_init. */
void shim_helper_netdev_add_features(struct net_device *dev, unsigned int features);
/* Replaces the sysfs attributes of a parent by those of a child. CONTEXT: before registration. */
void shim_netdev_set_child(struct net_device *dev);
/* Sets the driver's limit of segments of a GSO packet (netif_set_tso_max_segs()); the user's cannot exceed it. */
void shim_netif_set_tso_max_segs(struct net_device *dev, unsigned int segments);
/* The driver's limit of the bytes of a GSO packet (tso_max_size): the user's limits (gso_max_size, gso_ipv4_max_size),
   65536 by default, cannot exceed it. Kernels that cannot segment packets beyond 64 KiB keep that limit. */
void shim_netif_set_tso_max_size(struct net_device *dev, unsigned int bytes);
unsigned int shim_netdev_tso_max_size(const struct net_device *dev);
/* Maximum segments of a GSO packet (gso_max_segs), which the user can set, too. */
unsigned int shim_netdev_gso_max_segs(const struct net_device *dev);
void shim_netdev_set_gso_max_segs(struct net_device *dev, unsigned int segments);
/* Driver private data of the netdev: its ipoib::Interface. CONTEXT: any; set before registration. */
void *shim_rdma_netdev_clnt_priv(const struct net_device *dev);
void shim_rdma_netdev_set_clnt_priv(struct net_device *dev, void *owner);
/*
 * Registers the netdev. On success the kernel frees it in the end, after ipoib_netdev_gone(). -EEXIST: the name is
 * taken. -ENOMEM; other errors: of ipoib_ndo_init(), of a notifier.
 */
int shim_helper_register_netdevice(struct net_device *dev);
/* Unregisters the netdev at once (batch: NULL), or with the others of batch, a struct list_head. */
void shim_unregister_netdevice_queue(struct net_device *dev, void *batch);
/* Initialises a batch, and unregisters all netdevs in it, which takes as many grace periods as for one. */
void shim_init_list_head(void *batch);
void shim_unregister_netdevice_many(void *batch);
/* Frees a netdev that was never registered. */
void shim_free_netdev(struct net_device *dev);
/* Take and put a reference to the netdev. The end of its unregistration, without RTNL, waits until there is none. */
void shim_dev_hold(struct net_device *dev);
void shim_dev_put(struct net_device *dev);
/* Returns true if this driver created the netdev. CONTEXT: any. */
bool shim_netdev_is_ours(const struct net_device *dev);
/* Returns true for a slave of a bond, which has copied the netdev's address. CONTEXT: any. */
bool shim_netif_is_bond_slave(const struct net_device *dev);
/* Returns true if IFF_UP is set. */
bool shim_netdev_iff_up(const struct net_device *dev);
/* Sets or clears IFF_UP, with the netdev's operations and notifications. CONTEXT: RTNL, without an ops lock. */
void shim_dev_change_flags(struct net_device *dev, bool up);
/*
 * The netdev's ops lock, which the core holds inside RTNL around netdev operations if the rdma_netdev requested it.
 * Without one nothing is done. CONTEXT: RTNL, may sleep.
 */
bool shim_netdev_need_ops_lock(const struct net_device *dev);
void shim_netdev_lock_ops(struct net_device *dev);
void shim_netdev_unlock_ops(struct net_device *dev);
/* Returns true if the task has CAP_NET_ADMIN in the netdev's user namespace. CONTEXT: a system call. */
bool shim_ns_capable(const struct net_device *dev);

const char *shim_netdev_name(const struct net_device *dev);
/* The hardware address, 20 bytes. */
const uint8_t *shim_netdev_dev_addr(const struct net_device *dev);
/* Returns true if the address came with the request for the netdev (NET_ADDR_SET). */
bool shim_netdev_addr_set_by_user(const struct net_device *dev);
/* Changes bytes [offset, offset + bytes) of the hardware address. */
void shim_dev_addr_mod(struct net_device *dev, unsigned int offset, const void *address, unsigned int bytes);
/* Returns true if the netdev, or an upper device stacked on it, has this IP address. CONTEXT: process. */
bool shim_helper_netdev_has_address(struct net_device *dev, const struct sockaddr *address);
/* Returns, with a reference, the netdev's layer 2 master, or itself without one. CONTEXT: process. */
struct net_device *shim_helper_netdev_hold_master(struct net_device *dev);
/* Reports a changed hardware or broadcast address (NETDEV_CHANGEADDR), if the netdev is registered. */
void shim_helper_notify_changeaddr(struct net_device *dev);
/* Announces the hardware address to peers: gratuitous ARP, neighbour advertisements, IGMP reports. */
void shim_netdev_notify_peers(struct net_device *dev);
/* The broadcast address, 20 bytes, to be read or written. */
uint8_t *shim_netdev_broadcast(struct net_device *dev);
/* MTU in bytes. */
unsigned int shim_netdev_mtu(const struct net_device *dev);
/* Writes the MTU. CONTEXT: before registration, or in ndo_change_mtu. */
void shim_netdev_set_mtu(struct net_device *dev, unsigned int mtu);
/* Changes the MTU, with ndo_change_mtu and notifiers; returns their errors. CONTEXT: RTNL and the ops lock. */
int shim_dev_set_mtu(struct net_device *dev, unsigned int mtu);
/* Returns true if NETIF_F_RXCSUM or NETIF_F_GRO_HW is enabled. CONTEXT: any. */
bool shim_netdev_has_rxcsum(const struct net_device *dev);
bool shim_netdev_has_gro_hw(const struct net_device *dev);
/* Recomputes the features, with ipoib_offloads_sends() and ipoib_offers_checksums(). */
void shim_netdev_update_features(struct net_device *dev);
/* Calls visit(context, address), 20 bytes, for each multicast address, under the address list's lock, which the caller
 * must not hold. CONTEXT: any. */
void shim_helper_netdev_for_each_mc_addr(struct net_device *dev, void (*visit)(void *context, const uint8_t *address),
					 void *context);

/* Set the carrier. */
void shim_netif_carrier_on(struct net_device *dev);
void shim_netif_carrier_off(struct net_device *dev);

/* Interval of garbage collection in the ARP table (arp_tbl.gc_interval), in jiffies. CONTEXT: any. */
unsigned long shim_arp_tbl_gc_interval(void);

SHIM_END
