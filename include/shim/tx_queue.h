/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The netdev's first transmit queue, and byte queue limits. Only an rdma_netdev has further queues. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;

/* The first transmit queue, which is the only one but for an rdma_netdev's. */
void shim_netif_tx_start_queue(struct net_device *dev);
void shim_netif_tx_stop_queue(struct net_device *dev);
void shim_netif_tx_wake_queue(struct net_device *dev);
bool shim_netif_tx_queue_stopped(const struct net_device *dev);
/* Stopped, by the driver or by byte queue limits. */
bool shim_netif_xmit_stopped(const struct net_device *dev);
/*
 * Stops all transmit queues, and waits until no transmit call runs; and wakes them all. One that is not in use stops
 * and wakes with the others: the kernel's watchdog looks at it, too. CONTEXT: process.
 */
void shim_netif_tx_disable(struct net_device *dev);
void shim_netif_tx_wake_all_queues(struct net_device *dev);
/* Byte queue limits. The answer of sent: whether the doorbell must be rung now. */
bool shim_netdev_tx_sent_queue(struct net_device *dev, unsigned int bytes, bool more);
void shim_netdev_tx_completed_queue(struct net_device *dev, unsigned int packets, unsigned int bytes);
void shim_netdev_tx_reset_queue(struct net_device *dev);
/* So many they always let through, unless the user sets another limit_min. */
void shim_netdev_queue_set_dql_min_limit(struct net_device *dev, unsigned int bytes);
/*
 * More packets follow at once, unless the driver stops the queue, so the doorbell may wait. CONTEXT: within
 * ndo_start_xmit.
 */
bool shim_netdev_xmit_more(void);
/* Milliseconds since the queue last accepted a packet. */
unsigned int shim_tx_queue_idle_ms(const struct net_device *dev);

SHIM_END
