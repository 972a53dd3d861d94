// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A netdev has operations for the statistics of its queues, which count stops, too. */
#include <linux/netdevice.h>
#include <net/netdev_queues.h>

void probe(struct net_device *dev, struct netdev_queue_stats_tx *stats);
void probe(struct net_device *dev, struct netdev_queue_stats_tx *stats)
{
	stats->stop = 0;
	dev->stat_ops->get_queue_stats_tx(dev, 0, stats);
}
