// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The netdev's first transmit queue, and byte queue limits. Only an rdma_netdev has further queues. */
#include "compat.h"
#include "objects.h"
#include <linux/netdevice.h>
#include <shim/tx_queue.h>

static __always_inline struct netdev_queue *tx_queue(const struct net_device *dev)
{
	return netdev_get_tx_queue(dev, 0);
}

SHIM void shim_netif_tx_start_queue(struct net_device *dev) { netif_tx_start_queue(tx_queue(dev)); }
SHIM void shim_netif_tx_stop_queue(struct net_device *dev) { netif_tx_stop_queue(tx_queue(dev)); }
SHIM void shim_netif_tx_wake_queue(struct net_device *dev) { netif_tx_wake_queue(tx_queue(dev)); }
SHIM bool shim_netif_xmit_stopped(const struct net_device *dev) { return netif_xmit_stopped(tx_queue(dev)); }
SHIM bool shim_netif_tx_queue_stopped(const struct net_device *dev) { return netif_tx_queue_stopped(tx_queue(dev)); }
SHIM void shim_netif_tx_disable(struct net_device *dev) { netif_tx_disable(dev); }
SHIM void shim_netif_tx_wake_all_queues(struct net_device *dev) { netif_tx_wake_all_queues(dev); }

SHIM bool shim_netdev_tx_sent_queue(struct net_device *dev, unsigned int bytes, bool more)
{
	return __netdev_tx_sent_queue(tx_queue(dev), bytes, more);
}

SHIM void shim_netdev_tx_completed_queue(struct net_device *dev, unsigned int packets, unsigned int bytes)
{
	netdev_tx_completed_queue(tx_queue(dev), packets, bytes);
}

SHIM void shim_netdev_tx_reset_queue(struct net_device *dev) { netdev_tx_reset_queue(tx_queue(dev)); }

SHIM void shim_netdev_queue_set_dql_min_limit(struct net_device *dev, unsigned int bytes)
{
	SHIM_SET_DQL_MIN_LIMIT(tx_queue(dev), bytes);
}

SHIM bool shim_netdev_xmit_more(void) { return netdev_xmit_more(); }

SHIM unsigned int shim_tx_queue_idle_ms(const struct net_device *dev)
{
	return jiffies_to_msecs(jiffies - READ_ONCE(tx_queue(dev)->trans_start));
}
