/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;
struct sk_buff;
struct ib_device;
struct shim_napi;
struct sockaddr;

/* RFC 4391's encapsulation header and, before it, the destination's hardware address; the largest MTU of any mode. */
enum { IPOIB_HEADER_BYTES = 24, IPOIB_MAX_MTU = 65520 };

/* The sums that ndo_get_stats64 reports. */
struct shim_stats {
	uint64_t rx_packets, rx_bytes, rx_errors, rx_dropped, multicast;
	uint64_t tx_packets, tx_bytes, tx_errors, tx_dropped;
};

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
/* As sscanf's %i: decimal, 0x..., 0.... False: no number. */
bool shim_parse_int(const char *text, int *value);

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

/* The first transmit queue, which is the only one but for an rdma_netdev's. */
void shim_tx_queue_start(struct net_device *dev);
void shim_tx_queue_stop(struct net_device *dev);
void shim_tx_queue_wake(struct net_device *dev);
bool shim_tx_queue_stopped(const struct net_device *dev);
/* Stopped, by the driver or by byte queue limits. */
bool shim_tx_queue_held(const struct net_device *dev);
/*
 * Stops all transmit queues, and waits until no transmit call runs; and wakes them all. One that is not in use stops
 * and wakes with the others: the kernel's watchdog looks at it, too. CONTEXT: process.
 */
void shim_tx_queue_disable(struct net_device *dev);
void shim_tx_queues_wake(struct net_device *dev);
/* Byte queue limits. The answer of sent: whether the doorbell must be rung now. */
bool shim_tx_queue_sent(struct net_device *dev, unsigned int bytes, bool more);
void shim_tx_queue_completed(struct net_device *dev, unsigned int packets, unsigned int bytes);
void shim_tx_queue_reset(struct net_device *dev);
/* So many they always let through, unless the user sets another limit_min. */
void shim_tx_queue_always_allow(struct net_device *dev, unsigned int bytes);
/*
 * More packets follow at once, unless the driver stops the queue, so the doorbell may wait. CONTEXT: within
 * ndo_start_xmit.
 */
bool shim_xmit_more(void);
/* Milliseconds since the queue last accepted a packet. */
unsigned int shim_tx_queue_idle_ms(const struct net_device *dev);

/* poll(context, budget) returns the packets it handled. */
void shim_napi_add(struct net_device *dev, struct shim_napi *napi, int (*poll)(void *context, int budget),
		   void *context, bool transmit);
void shim_napi_remove(struct shim_napi *napi);
void shim_napi_enable(struct shim_napi *napi);
/* CONTEXT: process, may sleep. */
void shim_napi_disable(struct shim_napi *napi);
void shim_napi_schedule(struct shim_napi *napi);
/* True: the poll is over and interrupts may be asked for. */
bool shim_napi_complete(struct shim_napi *napi, int done);
/* To the stack, by GRO; or past it, which is for when GRO holds none: it would overtake them. */
void shim_napi_receive(struct shim_napi *napi, struct sk_buff *skb);
void shim_napi_receive_unmerged(struct shim_napi *napi, struct sk_buff *skb);
bool shim_napi_holds_packets(const struct shim_napi *napi);

/* Seconds between two looks at the neighbour tables (arp_tbl.gc_interval), in jiffies. */
unsigned long shim_neighbour_gc_interval(void);

/* kernel -> C++; the netdev's owner is an ipoib::Interface. */
int ipoib_ndo_init(struct net_device *dev);
void ipoib_ndo_uninit(struct net_device *dev);
/* Nobody can use the netdev any more. CONTEXT: process, no RTNL. */
void ipoib_netdev_gone(struct net_device *dev);
int ipoib_ndo_open(struct net_device *dev);
int ipoib_ndo_stop(struct net_device *dev);
int ipoib_ndo_change_mtu(struct net_device *dev, int mtu);
/* Always takes the packet. CONTEXT: softirq or BH disabled, under the queue's transmit lock. */
void ipoib_ndo_start_xmit(struct sk_buff *skb, struct net_device *dev);
void ipoib_ndo_tx_timeout(struct net_device *dev);
/* The HCA, and the number of its port. CONTEXT: any. */
struct ib_device *ipoib_port_of(const struct net_device *dev, uint32_t *port);
/* The user wants this address, 20 bytes. CONTEXT: RTNL. */
int ipoib_ndo_set_address(struct net_device *dev, const uint8_t *address);
/* Packets may come larger than the MTU, or without checksums: they are cut, and have them filled in where needed. */
bool ipoib_offloads_sends(const struct net_device *dev);
bool ipoib_leaves_checksums(const struct net_device *dev);
void ipoib_ndo_set_rx_mode(struct net_device *dev);
void ipoib_ndo_get_stats(struct net_device *dev, struct shim_stats *stats);
/* Pushes the encapsulation and the destination; returns their length, negative when there is no destination. */
int ipoib_header_create(struct sk_buff *skb, uint16_t ethertype, const void *destination);
/* The same where there is no packet, in IPOIB_HEADER_BYTES; and a new destination in such a header. */
void ipoib_header_write(void *header, uint16_t ethertype, const void *destination);
void ipoib_header_set_destination(void *header, const void *destination);
/* sysfs attributes; show returns the bytes written to buffer (a page). */
enum ipoib_attribute {
	IPOIB_ATTRIBUTE_MODE,
	IPOIB_ATTRIBUTE_PKEY,
	IPOIB_ATTRIBUTE_UMCAST,
	IPOIB_ATTRIBUTE_CREATE_CHILD,
	IPOIB_ATTRIBUTE_DELETE_CHILD,
	IPOIB_ATTRIBUTE_PARENT,
};
long ipoib_attribute_show(struct net_device *dev, enum ipoib_attribute attribute, char *buffer);
/* CONTEXT: RTNL, which lets the file, and so the netdev, go when it is released. */
long ipoib_attribute_store(struct net_device *dev, enum ipoib_attribute attribute, const char *text, size_t bytes);
int shim_format(char *buffer, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

SHIM_END
