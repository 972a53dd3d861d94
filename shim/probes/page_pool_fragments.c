// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Page pools give fragments of pages. */
#if __has_include(<net/page_pool/helpers.h>)
#include <net/page_pool/helpers.h>
#else
#include <net/page_pool.h>
#endif

struct page *probe(struct page_pool *pool, unsigned int *offset);
struct page *probe(struct page_pool *pool, unsigned int *offset) { return page_pool_dev_alloc_frag(pool, offset, 1); }
