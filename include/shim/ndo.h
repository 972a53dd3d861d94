/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The netdev operations (struct net_device_ops): calls of the core to C++. CONTEXT: RTNL, and the ops lock if there is
 * one, if nothing else is given.
 */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_device;
struct net_device;
struct sk_buff;

/*
 * Seconds after the last ndo_start_xmit (trans_start) from which on the core calls ipoib_ndo_tx_timeout() for a queue
 * that is stopped; and the interval in which TxQueue::watch() looks for sends that do not complete on any queue.
 */
enum { IPOIB_WATCHDOG_S = 10 };

/* Statistics of ndo_get_stats64. */
struct shim_stats {
	uint64_t rx_packets, rx_bytes, rx_errors, rx_dropped, multicast;
	uint64_t tx_packets, tx_bytes, tx_errors, tx_dropped;
};

int ipoib_ndo_init(struct net_device *dev);
void ipoib_ndo_uninit(struct net_device *dev);
/* The netdev's destructor: the last reference is gone. CONTEXT: process, without RTNL. */
void ipoib_netdev_gone(struct net_device *dev);
int ipoib_ndo_open(struct net_device *dev);
int ipoib_ndo_stop(struct net_device *dev);
int ipoib_ndo_change_mtu(struct net_device *dev, int mtu);
/* Sends, queues or drops the packet. CONTEXT: softirq, or bottom halves off; under the queue's transmit lock. */
void ipoib_ndo_start_xmit(struct sk_buff *skb, struct net_device *dev);
/*
 * Returns the number of the transmit queue that sends the packet, or -1: any does. Called only if several are used.
 * CONTEXT: bottom halves off.
 */
int ipoib_ndo_select_queue(struct sk_buff *skb, struct net_device *dev);
/* The queue was stopped for too long; old kernels do not say which, but 0. CONTEXT: softirq, of the watchdog. */
void ipoib_ndo_tx_timeout(struct net_device *dev, unsigned int queue);
/* Returns the HCA, and in *port the port's number. CONTEXT: any. */
struct ib_device *ipoib_port_of(const struct net_device *dev, uint32_t *port);
/*
 * Sets the GUID of the hardware address, 20 bytes; the port's GID table may lack it. -EBUSY: the netdev is up; -EINVAL:
 * bytes other than the GUID differ, or the GUID is 0; other errors: the port's GID cannot be read.
 */
int ipoib_ndo_set_address(struct net_device *dev, const uint8_t *address);
/* Return true if the stack may send packets for segmentation (GSO), or without checksums. */
bool ipoib_offloads_sends(const struct net_device *dev);
bool ipoib_offers_checksums(const struct net_device *dev);
/* The multicast list has changed. CONTEXT: the address list's lock; as ndo_set_rx_mode_async (7.1), RTNL. */
void ipoib_ndo_set_rx_mode(struct net_device *dev);
/* Fills in *stats, which is zero. CONTEXT: any. */
void ipoib_ndo_get_stats(struct net_device *dev, struct shim_stats *stats);

SHIM_END
