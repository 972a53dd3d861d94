// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ethtool operations of the rdma_netdev that replaces the client's datapath. As mlx5's they take the place of the
 * client's, which keeps them. A parent has statistics and a ring, a child only the name of its driver; neither has
 * moderation, channels or private flags.
 */
#include "compat.h"
#include "netdev.h"
#include <linux/ethtool.h>

static void get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	struct soft_netdev *nd = netdev_priv(dev);

	strscpy(info->driver, "soft_ib[ib_ipoib]", sizeof(info->driver));
	ib_get_device_fw_str(nd->rn.hca, info->fw_version);
	strscpy(info->bus_info, dev_name(nd->rn.hca->dev.parent), sizeof(info->bus_info));
}

static const char names[][ETH_GSTRING_LEN] = { "rx_packets", "tx_packets", "tx_queue_stopped" };

static int get_sset_count(struct net_device *dev, int sset)
{
	return sset == ETH_SS_STATS ? ARRAY_SIZE(names) : -EOPNOTSUPP;
}

static void get_strings(struct net_device *dev, u32 sset, u8 *data)
{
	if (sset == ETH_SS_STATS)
		memcpy(data, names, sizeof(names));
}

static void get_ethtool_stats(struct net_device *dev, struct ethtool_stats *stats, u64 *values)
{
	const struct soft_netdev *nd = netdev_priv(dev);

	values[0] = nd->rx_packets;
	values[1] = nd->tx_packets;
	values[2] = nd->tx_queue_stopped;
}

static void get_ringparam(SOFT_RINGPARAM_ARGS)
{
	const struct soft_netdev *nd = netdev_priv(dev);

	ring->tx_pending = nd->ring;
	ring->tx_max_pending = SOFT_SENDS;
	ring->rx_pending = SOFT_RECEIVES;
	ring->rx_max_pending = SOFT_RECEIVES;
}

/* Limits the sends in flight, on a running interface too. The receive ring has one size. */
static int set_ringparam(SOFT_RINGPARAM_ARGS)
{
	struct soft_netdev *nd = netdev_priv(dev);

	if (ring->tx_pending < 2 || ring->rx_pending != SOFT_RECEIVES)
		return -EINVAL;
	netif_tx_lock_bh(dev);
	nd->ring = ring->tx_pending;
	soft_netdev_stop_if_full(nd);
	netif_tx_unlock_bh(dev);
	return 0;
}

static const struct ethtool_ops parent_ops = {
	.get_drvinfo = get_drvinfo,
	.get_sset_count = get_sset_count,
	.get_strings = get_strings,
	.get_ethtool_stats = get_ethtool_stats,
	.get_ringparam = get_ringparam,
	.set_ringparam = set_ringparam,
};

static const struct ethtool_ops child_ops = {
	.get_drvinfo = get_drvinfo,
};

void soft_netdev_set_ethtool_ops(struct soft_netdev *nd)
{
	nd->dev->ethtool_ops = atomic64_read(&nd->slot->counters.accelerated_devices) > 1 ? &child_ops : &parent_ops;
}
