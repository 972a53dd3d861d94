// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A page pool knows its netdev and NAPI context. */
#include <linux/netdevice.h>
#include <net/page_pool/types.h>

void probe(struct page_pool_params *parameters, struct net_device *dev, struct napi_struct *napi);
void probe(struct page_pool_params *parameters, struct net_device *dev, struct napi_struct *napi)
{
	parameters->netdev = dev;
	parameters->napi = napi;
}
