// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* NAPI contexts: polls in softirq context, and the way of received packets into the stack. */
#include "compat.h"
#include "objects.h"
#include <linux/netdevice.h>
#include <net/busy_poll.h>
#include <shim/napi.h>

static int napi_poll(struct napi_struct *napi, int budget)
{
	struct shim_napi *shim = container_of(napi, struct shim_napi, napi);

	return shim->poll(shim->context, budget);
}

SHIM void shim_netif_napi_add(struct net_device *dev, struct shim_napi *napi, int (*poll)(void *context, int budget),
			      void *context)
{
	napi->poll = poll;
	napi->context = context;
	SHIM_NAPI_ADD(dev, &napi->napi, napi_poll);
}

SHIM void shim_netif_napi_add_tx(struct net_device *dev, struct shim_napi *napi, int (*poll)(void *context, int budget),
				 void *context)
{
	napi->poll = poll;
	napi->context = context;
	SHIM_NAPI_ADD_TX(dev, &napi->napi, napi_poll);
}

SHIM void shim_napi_lock(struct net_device *dev) { SHIM_NAPI_LOCK(dev); }
SHIM void shim_napi_unlock(struct net_device *dev) { SHIM_NAPI_UNLOCK(dev); }
SHIM void shim_netif_napi_del(struct shim_napi *napi) { SHIM_NAPI_DEL(&napi->napi); }

SHIM void shim_netif_queue_set_napi(struct net_device *dev, unsigned int queue, struct shim_napi *napi)
{
	SHIM_QUEUE_SET_NAPI(dev, queue, napi ? &napi->napi : NULL);
}

SHIM void shim_napi_enable(struct shim_napi *napi) { SHIM_NAPI_ENABLE(&napi->napi); }
SHIM void shim_napi_disable(struct shim_napi *napi) { SHIM_NAPI_DISABLE(&napi->napi); }
SHIM void shim_napi_schedule(struct shim_napi *napi) { napi_schedule(&napi->napi); }
SHIM bool shim_napi_complete_done(struct shim_napi *napi, int done) { return napi_complete_done(&napi->napi, done); }
SHIM bool shim_napi_holds_packets(const struct shim_napi *napi) { return SHIM_NAPI_HOLDS(&napi->napi); }
SHIM void shim_napi_gro_receive(struct shim_napi *napi, struct sk_buff *skb) { napi_gro_receive(&napi->napi, skb); }

SHIM void shim_skb_mark_napi_id(struct sk_buff *skb, struct shim_napi *napi) { skb_mark_napi_id(skb, &napi->napi); }
SHIM void shim_netif_receive_skb(struct sk_buff *skb) { netif_receive_skb(skb); }
