// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A receive queue of a netdev has a NAPI context. */
#include <linux/netdevice.h>

void probe(struct net_device *dev, struct napi_struct *napi);
void probe(struct net_device *dev, struct napi_struct *napi)
{
	netif_queue_set_napi(dev, 0, NETDEV_QUEUE_TYPE_RX, napi);
}
