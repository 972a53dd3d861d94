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
