// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Helpers for rdma_netdevs, whose operations are function pointers that may be missing: functions of the C boundary
 * that need control flow or several kernel calls. The comment above each gives the reason.
 */
#include "../compat.h"
#include "../objects.h"
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>
#include <shim/ndo.h>
#include <shim/rdma_netdev.h>

/* The netdev operations during rdma_init_netdev(), which the rdma_netdev calls from its own or replaces. */
static const struct net_device_ops queue_ops = {
	.ndo_init = ipoib_queues_init,
	.ndo_uninit = ipoib_queues_uninit,
	.ndo_open = ipoib_queues_open,
	.ndo_stop = ipoib_queues_stop,
};

/* A netdev may have been allocated with more transmit queues than this HCA's rdma_netdev has. */
static void use_queues_of(struct net_device *dev, struct ib_device *ca, u32 port)
{
	struct rdma_netdev_alloc_params params = {};

	if (!ca->ops.rdma_netdev_get_params(ca, port, RDMA_NETDEV_IPOIB, &params) && params.txqs)
		netif_set_real_num_tx_queues(dev, min_t(unsigned int, params.txqs, dev->num_tx_queues));
}

/*
 * rdma_init_netdev() reads the netdev operations that it finds and replaces them; the driver's are restored
 * afterwards.
 */
SHIM int shim_helper_rdma_netdev_start(struct shim_rdma_netdev *state, struct net_device *dev, struct ib_device *ca,
				       uint32_t port)
{
	const struct net_device_ops *ours = dev->netdev_ops;
	int ret;

	dev->netdev_ops = &queue_ops;
	ret = rdma_init_netdev(ca, port, RDMA_NETDEV_IPOIB, dev->name, NET_NAME_UNKNOWN, shim_netdev_setup, dev);
	if (!ret) {
		state->ops = dev->netdev_ops;
		state->destructor = dev->priv_destructor;
		dev->priv_destructor = NULL;
		use_queues_of(dev, ca, port);
	}
	dev->netdev_ops = ours;
	return ret;
}

/* Calls the destructor once, if there is one. */
SHIM void shim_helper_rdma_netdev_end(struct shim_rdma_netdev *state, struct net_device *dev)
{
	if (state->destructor)
		state->destructor(dev);
	state->destructor = NULL;
}

/* The operation may be missing. */
SHIM int shim_helper_rdma_netdev_init(const struct shim_rdma_netdev *state, struct net_device *dev)
{
	return state->ops->ndo_init ? state->ops->ndo_init(dev) : 0;
}

/* The operation may be missing. */
SHIM void shim_helper_rdma_netdev_uninit(const struct shim_rdma_netdev *state, struct net_device *dev)
{
	if (state->ops->ndo_uninit)
		state->ops->ndo_uninit(dev);
}

/* Both operations may be missing. The stack has kept packets meanwhile, and nothing else wakes the queues. */
SHIM int shim_helper_rdma_netdev_open(const struct shim_rdma_netdev *state, struct net_device *dev, uint16_t pkey_index)
{
	int ret;

	if (shim_rdma_netdev(dev)->set_id)
		shim_rdma_netdev(dev)->set_id(dev, pkey_index);
	ret = state->ops->ndo_open ? state->ops->ndo_open(dev) : 0;
	if (!ret)
		netif_tx_wake_all_queues(dev);
	return ret;
}

/* The operation may be missing; no transmit call runs during it. */
SHIM void shim_helper_rdma_netdev_stop(const struct shim_rdma_netdev *state, struct net_device *dev)
{
	netif_tx_disable(dev);
	if (state->ops->ndo_stop)
		state->ops->ndo_stop(dev);
}

/* The operation may be missing; the field is written then, as dev_set_mtu() does. */
SHIM int shim_helper_rdma_netdev_change_mtu(const struct shim_rdma_netdev *state, struct net_device *dev,
					    unsigned int mtu)
{
	if (state->ops->ndo_change_mtu)
		return state->ops->ndo_change_mtu(dev, mtu);
	WRITE_ONCE(dev->mtu, mtu);
	return 0;
}

/* The operation may be missing; on old kernels there is none. */
SHIM void shim_helper_rdma_netdev_tx_timeout(struct net_device *dev, unsigned int queue)
{
#ifdef SHIM_HAVE_RDMA_NETDEV_TIMEOUT
	if (shim_rdma_netdev(dev)->tx_timeout)
		shim_rdma_netdev(dev)->tx_timeout(dev, queue);
#endif
}

/* dev_get_stats() would call the driver's operations. */
static void get_stats(const struct shim_rdma_netdev *state, struct net_device *dev, struct rtnl_link_stats64 *sums)
{
	if (state->ops->ndo_get_stats64)
		state->ops->ndo_get_stats64(dev, sums);
	else if (SHIM_HAS_TSTATS(dev))
		SHIM_GET_TSTATS(dev, sums);
	else
		netdev_stats_to_stats64(sums, &dev->stats);
}

/*
 * Reads statistics as dev_get_stats() does, from the first source that the netdev has; struct rtnl_link_stats64 is
 * the kernel's.
 */
SHIM void shim_helper_rdma_netdev_get_stats(const struct shim_rdma_netdev *state, struct net_device *dev,
					    struct shim_stats *stats)
{
	struct rtnl_link_stats64 sums = {};

	get_stats(state, dev, &sums);
	SHIM_ADD_STATS(stats, &sums);
}
