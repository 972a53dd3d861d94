/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Substitute for page pools, for kernels whose packets do not return buffers to them: buffers are pages, or fragments
 * of pages, with a reference each, which the page allocator takes back when the packet is freed.
 */
#pragma once
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>

struct plain_pages {
	unsigned int order;
	struct page_frag_cache fragments;
};

static inline struct plain_pages *plain_pages_create(unsigned int order)
{
	struct plain_pages *pages = kzalloc(sizeof(*pages), GFP_KERNEL);

	if (!pages)
		return ERR_PTR(-ENOMEM);
	pages->order = order;
	return pages;
}

static inline void plain_pages_destroy(struct plain_pages *pages)
{
	if (pages->fragments.va)
		__page_frag_cache_drain(virt_to_head_page(pages->fragments.va), pages->fragments.pagecnt_bias);
	kfree(pages);
}

static inline struct page *plain_pages_alloc(const struct plain_pages *pages) { return dev_alloc_pages(pages->order); }

static inline void *plain_pages_alloc_frag(struct plain_pages *pages, unsigned int bytes)
{
	return page_frag_alloc(&pages->fragments, bytes, GFP_ATOMIC | __GFP_NOWARN);
}
