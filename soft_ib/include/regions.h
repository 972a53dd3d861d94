/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions: their keys, and what a key permits (IBA 10.6). Independent of the memory itself and of locks, and
 * inline, since each packet that names a key calls fabric_region_allows().
 *
 * The upper 24 bits of a key are the region's index, by which its owner finds it. The lower 8 bits belong to the
 * consumer of a region for fast registration, who changes them with each registration, so that an old key fails.
 */
#pragma once
#include "core.h"

enum { FABRIC_KEY_BITS = 8, FABRIC_MAX_REGION_INDEX = 0xffffff };

struct fabric_region {
	/* Protection domain, only compared. */
	const void *domain;
	/* The first byte in work requests. */
	uint64_t address, length;
	uint32_t key;
	/* Permitted access, bits of the owner's choice. */
	uint32_t access;
	/* The key is in use; false: the region waits for a registration. */
	bool valid;
};

static inline uint32_t fabric_key(uint32_t index) { return index << FABRIC_KEY_BITS; }
static inline uint32_t fabric_key_index(uint32_t key) { return key >> FABRIC_KEY_BITS; }

/* True if that key permits this access, all of its bits, to these bytes. */
static inline bool fabric_region_allows(const struct fabric_region *region, uint32_t key, const void *domain,
					uint64_t address, uint64_t bytes, uint32_t access)
{
	return region->valid && region->key == key && region->domain == domain && (region->access & access) == access &&
	       address >= region->address && bytes <= region->length &&
	       address - region->address <= region->length - bytes;
}

/* Fast registration. Returns false, without an effect, if the region is in use, or not that domain's. */
static inline bool fabric_region_register(struct fabric_region *region, const struct fabric_region *as)
{
	if (region->valid || region->domain != as->domain || fabric_key_index(region->key) != fabric_key_index(as->key))
		return false;
	*region = *as;
	region->valid = true;
	return true;
}

/* Returns false, without an effect, if the key is not in use, or not that domain's. */
static inline bool fabric_region_invalidate(struct fabric_region *region, uint32_t key, const void *domain)
{
	if (!region->valid || region->key != key || region->domain != domain)
		return false;
	region->valid = false;
	return true;
}

struct fabric_page_list {
	void **page;
	uint32_t count;
};

/*
 * Pages of a region for fast registration. The newest mapping takes the place of the list in use when it is registered:
 * memory may be mapped anew while the region is in use, and a registration without a new mapping keeps the list.
 */
struct fabric_page_lists {
	struct fabric_page_list used, mapped;
	/* The newest mapping was not registered yet. */
	bool mapped_anew;
};

/* Registers, if the newest mapping has all bytes of the region, the first one at this offset in its first page. */
static inline bool fabric_pages_register(struct fabric_page_lists *lists, struct fabric_region *region,
					 const struct fabric_region *as, uint32_t offset, uint32_t page_bytes)
{
	struct fabric_page_list newest = lists->mapped_anew ? lists->mapped : lists->used;
	uint64_t bytes = (uint64_t)newest.count * page_bytes;

	if (as->length > bytes || offset > bytes - as->length || !fabric_region_register(region, as))
		return false;
	if (lists->mapped_anew) {
		lists->mapped = lists->used;
		lists->used = newest;
		lists->mapped_anew = false;
	}
	return true;
}
