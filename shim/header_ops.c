// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The hard header: the operations by which the stack writes it, and caches it in neighbour entries. */
#include "objects.h"
#include <linux/netdevice.h>
#include <net/neighbour.h>
#include <shim/header_ops.h>

static int header_create(struct sk_buff *skb, struct net_device *dev, unsigned short type, const void *daddr,
			 const void *saddr, unsigned int len)
{
	return ipoib_header_create(skb, type, daddr);
}

/* The hard header in a neighbour entry, which the stack copies to each packet. */
static u8 *cached_header(struct hh_cache *cache) { return (u8 *)cache->hh_data + HH_DATA_OFF(IPOIB_HEADER_BYTES); }

static int header_cache(const struct neighbour *neighbour, struct hh_cache *cache, __be16 type)
{
	ipoib_header_write(cached_header(cache), be16_to_cpu(type), neighbour->ha);
	/* Read without a lock by neigh_output(). */
	smp_store_release(&cache->hh_len, IPOIB_HEADER_BYTES);
	return 0;
}

static void header_cache_update(struct hh_cache *cache, const struct net_device *dev, const unsigned char *address)
{
	ipoib_header_set_destination(cached_header(cache), address);
}

const struct header_ops shim_header_ops = {
	.create = header_create,
	.cache = header_cache,
	.cache_update = header_cache_update,
};
