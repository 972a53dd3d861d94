// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Statistics of the netdev's queues (net/netdev_queues.h). */
#include "compat.h"
#include "objects.h"
#include <linux/netdevice.h>
#include <shim/netdevice.h>
#include <shim/queue_stats.h>

#ifdef SHIM_HAVE_NETDEV_STAT_OPS
#include <net/netdev_queues.h>

static void get_queue_stats_rx(struct net_device *dev, int queue, struct netdev_queue_stats_rx *rx)
{
	struct shim_queue_stats stats;

	if (!ipoib_queue_stats(dev, SHIM_QUEUE_RX, queue, queue + 1, &stats))
		return;
	rx->packets = stats.packets;
	rx->bytes = stats.bytes;
}

static void get_queue_stats_tx(struct net_device *dev, int queue, struct netdev_queue_stats_tx *tx)
{
	struct shim_queue_stats stats;

	if (!ipoib_queue_stats(dev, SHIM_QUEUE_TX, queue, queue + 1, &stats))
		return;
	tx->packets = stats.packets;
	tx->bytes = stats.bytes;
	tx->stop = stats.stops;
}

/* Statistics of queues that are not in use now. */
static void get_base_stats(struct net_device *dev, struct netdev_queue_stats_rx *rx, struct netdev_queue_stats_tx *tx)
{
	struct shim_queue_stats received, sent;

	if (!ipoib_queue_stats(dev, SHIM_QUEUE_RX, dev->real_num_rx_queues, SHIM_MAX_RX_QUEUES, &received) ||
	    !ipoib_queue_stats(dev, SHIM_QUEUE_TX, dev->real_num_tx_queues, SHIM_MAX_TX_QUEUES, &sent))
		return;
	rx->packets = received.packets;
	rx->bytes = received.bytes;
	tx->packets = sent.packets;
	tx->bytes = sent.bytes;
	tx->stop = sent.stops;
}

static const struct netdev_stat_ops stat_ops = {
	.get_queue_stats_rx = get_queue_stats_rx,
	.get_queue_stats_tx = get_queue_stats_tx,
	.get_base_stats = get_base_stats,
};

void shim_set_stat_ops(struct net_device *dev) { dev->stat_ops = &stat_ops; }
#else
void shim_set_stat_ops(struct net_device *dev) {}
#endif
