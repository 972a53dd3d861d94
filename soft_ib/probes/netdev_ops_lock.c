// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A netdev may have its operations run under a lock of its own. */
#include <net/netdev_lock.h>

void probe(struct net_device *dev, struct napi_struct *napi, int (*poll)(struct napi_struct *napi, int budget));
void probe(struct net_device *dev, struct napi_struct *napi, int (*poll)(struct napi_struct *napi, int budget))
{
	dev->request_ops_lock = true;
	netdev_lockdep_set_classes(dev);
	netif_napi_add_locked(dev, napi, poll);
	napi_enable_locked(napi);
	napi_disable_locked(napi);
	netif_napi_del_locked(napi);
}
