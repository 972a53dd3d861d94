// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The ethtool operations, which call ipoib_ethtool_*(). */
#include "compat.h"
#include "objects.h"
#include <linux/ethtool.h>
#include <rdma/ib_verbs.h>
#include <shim/ethtool.h>
#include <shim/ndo.h>

static void get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	u32 port;
	struct ib_device *ca = ipoib_port_of(dev, &port);

	strscpy(info->driver, "ib_ipoib", sizeof(info->driver));
	ib_get_device_fw_str(ca, info->fw_version);
	strscpy(info->bus_info, dev_name(ca->dev.parent), sizeof(info->bus_info));
}

static int get_link_ksettings(struct net_device *dev, struct ethtool_link_ksettings *settings)
{
	unsigned int speed = netif_carrier_ok(dev) ? ipoib_ethtool_speed(dev) : 0;

	if (!speed) {
		settings->base.speed = SPEED_UNKNOWN;
		settings->base.duplex = DUPLEX_UNKNOWN;
		return 0;
	}
	settings->base.speed = speed;
	settings->base.duplex = DUPLEX_FULL;
	settings->base.phy_address = 0xff;
	settings->base.autoneg = AUTONEG_ENABLE;
	settings->base.port = PORT_OTHER;
	return 0;
}

static int get_sset_count(struct net_device *dev, int sset)
{
	switch (sset) {
	case ETH_SS_STATS:
		return (int)ipoib_ethtool_statistics_count(dev);
	case ETH_SS_PRIV_FLAGS:
		return IPOIB_FLAGS;
	default:
		return -EOPNOTSUPP;
	}
}

static void get_strings(struct net_device *dev, u32 sset, u8 *data)
{
	if (sset == ETH_SS_STATS)
		ipoib_ethtool_statistic_names(dev, (char *)data);
	else if (sset == ETH_SS_PRIV_FLAGS)
		ipoib_ethtool_flag_names((char *)data);
}

static void get_ethtool_stats(struct net_device *dev, struct ethtool_stats *stats, u64 *values)
{
	ipoib_ethtool_statistics(dev, (uint64_t *)values);
}

static void to_coalesce(const struct shim_moderation *moderation, struct ethtool_coalesce *coalesce)
{
	coalesce->rx_coalesce_usecs = moderation->usecs;
	coalesce->rx_max_coalesced_frames = moderation->frames;
	coalesce->use_adaptive_rx_coalesce = moderation->adaptive;
}

static struct shim_moderation from_coalesce(const struct ethtool_coalesce *coalesce)
{
	return (struct shim_moderation){
		.usecs = coalesce->rx_coalesce_usecs,
		.frames = coalesce->rx_max_coalesced_frames,
		.adaptive = coalesce->use_adaptive_rx_coalesce,
	};
}

static int get_coalesce(SHIM_COALESCE_ARGS)
{
	struct shim_moderation moderation;

	ipoib_ethtool_get_moderation(dev, &moderation);
	to_coalesce(&moderation, coalesce);
	return 0;
}

static int set_coalesce(SHIM_COALESCE_ARGS)
{
	const struct shim_moderation moderation = from_coalesce(coalesce);

	return ipoib_ethtool_set_moderation(dev, &moderation);
}

static int get_per_queue_coalesce(struct net_device *dev, u32 queue, struct ethtool_coalesce *coalesce)
{
	struct shim_moderation moderation;
	int ret = ipoib_ethtool_get_queue_moderation(dev, queue, &moderation);

	if (!ret)
		to_coalesce(&moderation, coalesce);
	return ret;
}

static int set_per_queue_coalesce(struct net_device *dev, u32 queue, struct ethtool_coalesce *coalesce)
{
	const struct shim_moderation moderation = from_coalesce(coalesce);

	return ipoib_ethtool_set_queue_moderation(dev, queue, &moderation);
}

static void get_ringparam(SHIM_RINGPARAM_ARGS)
{
	struct shim_rings rings;

	ipoib_ethtool_get_rings(dev, &rings);
	ring->tx_pending = rings.sends;
	ring->rx_pending = rings.receives;
	ring->tx_max_pending = rings.max_sends;
	ring->rx_max_pending = rings.max_receives;
}

static int set_ringparam(SHIM_RINGPARAM_ARGS)
{
	return ipoib_ethtool_set_rings(dev, ring->tx_pending, ring->rx_pending);
}

static u32 get_priv_flags(struct net_device *dev) { return ipoib_ethtool_get_flags(dev); }
static int set_priv_flags(struct net_device *dev, u32 flags) { return ipoib_ethtool_set_flags(dev, flags); }

static void get_channels(struct net_device *dev, struct ethtool_channels *channels)
{
	struct shim_channels ours;

	ipoib_ethtool_get_channels(dev, &ours);
	channels->tx_count = ours.transmits;
	channels->rx_count = ours.receives;
	channels->max_tx = ours.max_transmits;
	channels->max_rx = ours.max_receives;
}

static int set_channels(struct net_device *dev, struct ethtool_channels *channels)
{
	/* The core has compared the counts with the maxima. */
	if (!channels->tx_count || !channels->rx_count)
		return -EINVAL;
	return ipoib_ethtool_set_channels(dev, channels->tx_count, channels->rx_count);
}

/*
 * Where the rdma_netdev asks for a lock around the netdev's operations, these run under that, without RTNL. There the
 * driver refuses to change moderation, rings, channels and flags, and reads nothing else that RTNL protects; the core's
 * get_link does.
 */
static const struct ethtool_ops ethtool_ops = {
#ifdef SHIM_HAVE_ETHTOOL_OP_NEEDS_RTNL
	.op_needs_rtnl = ETHTOOL_OP_NEEDS_RTNL_GLINK,
#endif
	.supported_coalesce_params =
		ETHTOOL_COALESCE_RX_USECS | ETHTOOL_COALESCE_RX_MAX_FRAMES | ETHTOOL_COALESCE_USE_ADAPTIVE_RX,
	.get_drvinfo = get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = get_link_ksettings,
	.get_sset_count = get_sset_count,
	.get_strings = get_strings,
	.get_ethtool_stats = get_ethtool_stats,
	.get_coalesce = get_coalesce,
	.set_coalesce = set_coalesce,
	.get_per_queue_coalesce = get_per_queue_coalesce,
	.set_per_queue_coalesce = set_per_queue_coalesce,
	.get_ringparam = get_ringparam,
	.set_ringparam = set_ringparam,
	.get_priv_flags = get_priv_flags,
	.set_priv_flags = set_priv_flags,
	.get_channels = get_channels,
	.set_channels = set_channels,
	.get_ts_info = ethtool_op_get_ts_info,
};

void shim_set_ethtool_ops(struct net_device *dev) { dev->ethtool_ops = &ethtool_ops; }
