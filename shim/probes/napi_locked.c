// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The netdev's own lock protects its NAPI contexts, and drivers can hold it around several changes of them. */
#include <linux/netdevice.h>
#include <net/netdev_lock.h>

void probe(struct net_device *dev, struct napi_struct *napi, int (*poll)(struct napi_struct *, int));
void probe(struct net_device *dev, struct napi_struct *napi, int (*poll)(struct napi_struct *, int))
{
	netdev_lock_ops_to_full(dev);
	netif_napi_add_locked(dev, napi, poll);
	napi_enable_locked(napi);
	napi_disable_locked(napi);
	netif_napi_del_locked(napi);
	netdev_unlock_full_to_ops(dev);
}
