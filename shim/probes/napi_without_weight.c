// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A NAPI is added without saying its weight. */
#include <linux/netdevice.h>

void probe(struct net_device *dev, struct napi_struct *napi, int (*poll)(struct napi_struct *napi, int budget));
void probe(struct net_device *dev, struct napi_struct *napi, int (*poll)(struct napi_struct *napi, int budget))
{
	netif_napi_add(dev, napi, poll);
	netif_napi_add_tx(dev, napi, poll);
}
