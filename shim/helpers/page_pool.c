// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Helpers for receive buffers, on the hot path: functions of the C boundary that need control flow or several kernel
 * calls. The comment above each gives the reason.
 */
#include "../compat.h"
#include <shim/page_pool.h>

/* A buffer is an address in C++: page_address() of what was allocated, or NULL. */
SHIM void *shim_helper_page_pool_alloc(struct page_pool *pool)
{
#if SHIM_HAS_PAGE_POOLS
	struct page *page = page_pool_dev_alloc_pages(pool);
#else
	struct page *page = plain_pages_alloc((struct plain_pages *)pool);
#endif

	return page ? page_address(page) : NULL;
}

/* A buffer is an address in C++; the pool gives page and offset, plain pages give the address. */
SHIM void *shim_helper_page_pool_alloc_frag(struct page_pool *pool, unsigned int bytes)
{
#if SHIM_HAS_PAGE_POOLS
	unsigned int offset;
	struct page *page = page_pool_dev_alloc_frag(pool, &offset, bytes);

	return page ? page_address(page) + offset : NULL;
#else
	return plain_pages_alloc_frag((struct plain_pages *)pool, bytes);
#endif
}
