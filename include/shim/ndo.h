/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The netdev operations: calls of the core that go to ipoib_ndo_*(), or to the HCA's rdma_netdev. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_device;
struct net_device;
struct sk_buff;

/* Time without a completion after which the core calls ipoib_ndo_tx_timeout(). */
enum { IPOIB_WATCHDOG_SECONDS = 10 };

/* The sums that ndo_get_stats64 reports. */
struct shim_stats {
	uint64_t rx_packets, rx_bytes, rx_errors, rx_dropped, multicast;
	uint64_t tx_packets, tx_bytes, tx_errors, tx_dropped;
};

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

SHIM_END
