// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The netdev's transmit queues, and byte queue limits. */
#include "compat.h"
#include "objects.h"
#include <linux/netdevice.h>
#include <shim/tx_queue.h>

SHIM void shim_netif_tx_start_queue(struct net_device *dev, unsigned int queue)
{
	netif_tx_start_queue(netdev_get_tx_queue(dev, queue));
}
SHIM void shim_netif_tx_stop_queue(struct net_device *dev, unsigned int queue)
{
	netif_tx_stop_queue(netdev_get_tx_queue(dev, queue));
}
SHIM void shim_netif_tx_wake_queue(struct net_device *dev, unsigned int queue)
{
	netif_tx_wake_queue(netdev_get_tx_queue(dev, queue));
}
SHIM bool shim_netif_xmit_stopped(const struct net_device *dev, unsigned int queue)
{
	return netif_xmit_stopped(netdev_get_tx_queue(dev, queue));
}
SHIM bool shim_netif_tx_queue_stopped(const struct net_device *dev, unsigned int queue)
{
	return netif_tx_queue_stopped(netdev_get_tx_queue(dev, queue));
}
SHIM void shim_netif_tx_disable(struct net_device *dev) { netif_tx_disable(dev); }
SHIM void shim_netif_tx_wake_all_queues(struct net_device *dev) { netif_tx_wake_all_queues(dev); }

SHIM void shim_netif_tx_lock_bh(struct net_device *dev, unsigned int queue)
{
	__netif_tx_lock_bh(netdev_get_tx_queue(dev, queue));
}

SHIM void shim_netif_tx_unlock_bh(struct net_device *dev, unsigned int queue)
{
	__netif_tx_unlock_bh(netdev_get_tx_queue(dev, queue));
}

SHIM bool shim_netdev_tx_sent_queue(struct net_device *dev, unsigned int queue, unsigned int bytes, bool more)
{
	return __netdev_tx_sent_queue(netdev_get_tx_queue(dev, queue), bytes, more);
}

SHIM void shim_netdev_tx_completed_queue(struct net_device *dev, unsigned int queue, unsigned int packets,
					 unsigned int bytes)
{
	netdev_tx_completed_queue(netdev_get_tx_queue(dev, queue), packets, bytes);
}

SHIM void shim_netdev_tx_reset_queue(struct net_device *dev, unsigned int queue)
{
	netdev_tx_reset_queue(netdev_get_tx_queue(dev, queue));
}

SHIM void shim_netdev_queue_set_dql_min_limit(struct net_device *dev, unsigned int queue, unsigned int bytes)
{
	SHIM_SET_DQL_MIN_LIMIT(netdev_get_tx_queue(dev, queue), bytes);
}

SHIM unsigned int shim_tx_queue_idle_ms(const struct net_device *dev, unsigned int queue)
{
	return jiffies_to_msecs(jiffies - READ_ONCE(netdev_get_tx_queue(dev, queue)->trans_start));
}
