// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A netdev's rdma_netdev may have the core hold a lock of the netdev's around its operations. */
#include <net/netdev_lock.h>

int probe(struct net_device *dev);
int probe(struct net_device *dev)
{
	int ret = 0;

	netdev_lock_ops(dev);
	if (netdev_need_ops_lock(dev))
		ret = netif_set_mtu(dev, 2044);
	netdev_unlock_ops(dev);
	return ret;
}
