/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Receive buffers: page pools, and pages that belong to no pool. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;
struct page_pool;
struct shim_napi;

/*
 * Creates a pool of whole pages of an order, or of pieces (fragments) of them, for a NAPI context that was added: pages
 * that are freed in its poll return without a lock. Buffers are addresses; a page returns to the pool when all packets
 * in it are freed. An error pointer on failure. CONTEXT: process, may sleep.
 */
struct page_pool *shim_page_pool_create(struct net_device *dev, struct shim_napi *napi, unsigned int pages,
					unsigned int order, bool in_pieces);
/*
 * Destroys the pool; buffers that the stack holds are freed when they return. CONTEXT: process; the NAPI context is
 * disabled.
 */
void shim_page_pool_destroy(struct page_pool *pool);
/* Take a page, or a piece of bytes. NULL: no memory. CONTEXT: process before packets have pages, or the NAPI poll. */
void *shim_helper_page_pool_alloc(struct page_pool *pool);
void *shim_helper_page_pool_alloc_frag(struct page_pool *pool, unsigned int bytes);
/* Returns a buffer. in_poll: the NAPI poll calls. */
void shim_page_pool_put_full_page(struct page_pool *pool, void *buffer, bool in_poll);
/* Allocates a (compound) page of an order that belongs to no pool. NULL: no memory. CONTEXT: process, may sleep. */
void *shim_get_free_pages(unsigned int order);
/* Take and drop a reference to an address's page. CONTEXT: any. */
void shim_get_page(void *address);
void shim_put_page(void *address);
unsigned int shim_page_size(void);

SHIM_END
