// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Receive buffers: page pools, and pages that belong to no pool. helpers/page_pool.c has what takes buffers out of a
 * pool. */
#include "compat.h"
#include "objects.h"
#include <linux/mm.h>
#include <shim/page_pool.h>

#if SHIM_HAS_PAGE_POOLS
SHIM struct page_pool *shim_page_pool_create(struct net_device *dev, struct shim_napi *napi, unsigned int pages,
					     unsigned int order, bool in_pieces)
{
	const struct page_pool_params parameters = {
		.flags = in_pieces ? SHIM_POOL_IN_PIECES : 0,
		.order = order,
		.pool_size = pages,
		.nid = NUMA_NO_NODE,
		SHIM_POOL_OWNER(dev, &napi->napi),
	};

	return page_pool_create(&parameters);
}

SHIM void shim_page_pool_destroy(struct page_pool *pool) { page_pool_destroy(pool); }

SHIM void shim_page_pool_put_full_page(struct page_pool *pool, void *buffer, bool in_poll)
{
	page_pool_put_full_page(pool, virt_to_head_page(buffer), in_poll);
}
#else
SHIM struct page_pool *shim_page_pool_create(struct net_device *dev, struct shim_napi *napi, unsigned int pages,
					     unsigned int order, bool in_pieces)
{
	return (struct page_pool *)plain_pages_create(order);
}

SHIM void shim_page_pool_destroy(struct page_pool *pool) { plain_pages_destroy((struct plain_pages *)pool); }

SHIM void shim_page_pool_put_full_page(struct page_pool *pool, void *buffer, bool in_poll)
{
	put_page(virt_to_head_page(buffer));
}
#endif

SHIM void *shim_get_free_pages(unsigned int order)
{
	/* Most callers have another way without pages of a higher order. */
	const gfp_t flags = __GFP_COMP | __GFP_RETRY_MAYFAIL | __GFP_NOWARN;

	return (void *)__get_free_pages(order ? GFP_KERNEL | flags : GFP_KERNEL, order);
}

SHIM void shim_get_page(void *address) { get_page(virt_to_head_page(address)); }
SHIM void shim_put_page(void *address) { put_page(virt_to_head_page(address)); }
SHIM unsigned int shim_page_size(void) { return PAGE_SIZE; }
