/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The netdev's transmit queues, by their number from 0, and their byte queue limits. CONTEXT: any, if nothing else is
 * given.
 */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;

void shim_netif_tx_start_queue(struct net_device *dev, unsigned int queue);
void shim_netif_tx_stop_queue(struct net_device *dev, unsigned int queue);
void shim_netif_tx_wake_queue(struct net_device *dev, unsigned int queue);
bool shim_netif_tx_queue_stopped(const struct net_device *dev, unsigned int queue);
/* Returns true if the queue is stopped by the driver or by byte queue limits. */
bool shim_netif_xmit_stopped(const struct net_device *dev, unsigned int queue);
/* Bytes in the qdisc of the queue, hard headers included; 0 if several queues share one (root qdiscs without mq). */
unsigned int shim_helper_netif_tx_backlog(const struct net_device *dev, unsigned int queue);
/*
 * Stop, and wake, all transmit queues, those not in use included: the watchdog checks them, too. After stopping no
 * transmit call runs. CONTEXT: process.
 */
void shim_netif_tx_disable(struct net_device *dev);
void shim_netif_tx_wake_all_queues(struct net_device *dev);
/* The transmit lock, which the core holds around ndo_start_xmit. CONTEXT: process or softirq. */
void shim_netif_tx_lock_bh(struct net_device *dev, unsigned int queue);
void shim_netif_tx_unlock_bh(struct net_device *dev, unsigned int queue);
/*
 * Byte queue limits: report what was sent, completed, or dropped by a reset. shim_netdev_tx_sent_queue() returns true
 * if the doorbell must be rung now; more: further packets follow.
 */
bool shim_netdev_tx_sent_queue(struct net_device *dev, unsigned int queue, unsigned int bytes, bool more);
void shim_netdev_tx_completed_queue(struct net_device *dev, unsigned int queue, unsigned int packets,
				    unsigned int bytes);
void shim_netdev_tx_reset_queue(struct net_device *dev, unsigned int queue);
/* Sets the minimum limit in bytes, which the user can change (byte_queue_limits/limit_min). */
void shim_netdev_queue_set_dql_min_limit(struct net_device *dev, unsigned int queue, unsigned int bytes);
/* Milliseconds since the core last passed a packet of the queue to ndo_start_xmit. */
unsigned int shim_tx_queue_idle_ms(const struct net_device *dev, unsigned int queue);

SHIM_END
