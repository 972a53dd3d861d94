/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Receive buffers: page pools, and single pages. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct page_pool;

/*
 * Receive buffers, given as addresses: pages of one order, or pieces (fragments) of such pages. Their page returns to
 * the pool when all packets in it are freed. A pool gives either only pages or only pieces.
 */
struct page_pool *shim_page_pool_create(unsigned int pages, unsigned int order, bool in_pieces);
/* Buffers that the stack still holds are freed as they return. CONTEXT: process. */
void shim_page_pool_destroy(struct page_pool *pool);
/* NULL: no memory. CONTEXT: process before the NAPI poll is enabled, or that poll. */
void *shim_helper_page_pool_alloc(struct page_pool *pool);
void *shim_helper_page_pool_alloc_frag(struct page_pool *pool, unsigned int bytes);
void shim_page_pool_put_full_page(struct page_pool *pool, void *buffer, bool in_poll);
/* One page that is of no pool. NULL: no memory. CONTEXT: process. */
void *shim_get_free_page(void);
/* Take and drop a reference to the page that the address is in. */
void shim_get_page(void *address);
void shim_put_page(void *address);
unsigned int shim_page_size(void);

SHIM_END
