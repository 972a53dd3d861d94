// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "compat.h"
#include "objects.h"
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>
#include <shim/ndo.h>
#include <shim/rdma_netdev.h>

static struct rdma_netdev *rdma_netdev(const struct net_device *dev) { return netdev_priv(dev); }

/* The operations that an rdma_netdev finds on the netdev, to call from its own or to replace. */
static const struct net_device_ops queue_ops = {
	.ndo_init = ipoib_queues_init,
	.ndo_uninit = ipoib_queues_uninit,
	.ndo_open = ipoib_queues_open,
	.ndo_stop = ipoib_queues_stop,
};

SHIM int shim_rdma_netdev_start(struct shim_rdma_netdev *state, struct net_device *dev, struct ib_device *ca,
				uint32_t port)
{
	const struct net_device_ops *ours = dev->netdev_ops;
	int ret;

	dev->netdev_ops = &queue_ops;
	ret = rdma_init_netdev(ca, port, RDMA_NETDEV_IPOIB, dev->name, NET_NAME_UNKNOWN, shim_netdev_setup, dev);
	if (!ret) {
		/* The rdma_netdev has installed its own. */
		state->ops = dev->netdev_ops;
		state->destructor = dev->priv_destructor;
		dev->priv_destructor = NULL;
	}
	dev->netdev_ops = ours;
	return ret;
}

SHIM void shim_rdma_netdev_end(struct shim_rdma_netdev *state, struct net_device *dev)
{
	if (state->destructor)
		state->destructor(dev);
	state->destructor = NULL;
}

SHIM int shim_rdma_netdev_init(const struct shim_rdma_netdev *state, struct net_device *dev)
{
	return state->ops->ndo_init ? state->ops->ndo_init(dev) : 0;
}

SHIM void shim_rdma_netdev_uninit(const struct shim_rdma_netdev *state, struct net_device *dev)
{
	if (state->ops->ndo_uninit)
		state->ops->ndo_uninit(dev);
}

SHIM int shim_rdma_netdev_open(const struct shim_rdma_netdev *state, struct net_device *dev, uint16_t pkey_index)
{
	int ret;

	if (rdma_netdev(dev)->set_id)
		rdma_netdev(dev)->set_id(dev, pkey_index);
	ret = state->ops->ndo_open ? state->ops->ndo_open(dev) : 0;
	/* Packets that the stack has kept meanwhile go now: nobody else would tell it. */
	if (!ret)
		netif_tx_wake_all_queues(dev);
	return ret;
}

SHIM void shim_rdma_netdev_stop(const struct shim_rdma_netdev *state, struct net_device *dev)
{
	netif_tx_disable(dev);
	if (state->ops->ndo_stop)
		state->ops->ndo_stop(dev);
}

SHIM int shim_rdma_netdev_change_mtu(const struct shim_rdma_netdev *state, struct net_device *dev, unsigned int mtu)
{
	if (state->ops->ndo_change_mtu)
		return state->ops->ndo_change_mtu(dev, mtu);
	WRITE_ONCE(dev->mtu, mtu);
	return 0;
}

SHIM void shim_rdma_netdev_tx_timeout(struct net_device *dev)
{
	if (rdma_netdev(dev)->tx_timeout)
		rdma_netdev(dev)->tx_timeout(dev, 0);
}

/* As dev_get_stats() reads a netdev, which is not asked: the operations that it calls are the driver's. */
static void get_stats(const struct shim_rdma_netdev *state, struct net_device *dev, struct rtnl_link_stats64 *sums)
{
	if (state->ops->ndo_get_stats64)
		state->ops->ndo_get_stats64(dev, sums);
	else if (SHIM_HAS_TSTATS(dev))
		dev_get_tstats64(dev, sums);
	else
		netdev_stats_to_stats64(sums, &dev->stats);
}

SHIM void shim_rdma_netdev_get_stats(const struct shim_rdma_netdev *state, struct net_device *dev,
				     struct shim_stats *stats)
{
	struct rtnl_link_stats64 sums = {};

	get_stats(state, dev, &sums);
	stats->rx_packets += sums.rx_packets;
	stats->rx_bytes += sums.rx_bytes;
	stats->rx_errors += sums.rx_errors;
	stats->rx_dropped += sums.rx_dropped;
	stats->multicast += sums.multicast;
	stats->tx_packets += sums.tx_packets;
	stats->tx_bytes += sums.tx_bytes;
	stats->tx_errors += sums.tx_errors;
	stats->tx_dropped += sums.tx_dropped;
}

SHIM void shim_rdma_netdev_set_mtu(struct net_device *dev, unsigned int mtu) { rdma_netdev(dev)->mtu = mtu; }

SHIM void shim_rdma_netdev_send(struct net_device *dev, struct sk_buff *skb, struct ib_ah *ah, uint32_t qpn)
{
	rdma_netdev(dev)->send(dev, skb, ah, qpn);
}

SHIM int shim_rdma_netdev_attach(struct net_device *dev, struct ib_device *ca, const struct shim_gid *mgid,
				 uint16_t mlid, bool set_qkey, uint32_t qkey)
{
	return rdma_netdev(dev)->attach_mcast(dev, ca, (union ib_gid *)mgid, mlid, set_qkey, qkey);
}

SHIM void shim_rdma_netdev_detach(struct net_device *dev, struct ib_device *ca, const struct shim_gid *mgid,
				  uint16_t mlid)
{
	rdma_netdev(dev)->detach_mcast(dev, ca, (union ib_gid *)mgid, mlid);
}
