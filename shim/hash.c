// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "objects.h"
#include <linux/rhashtable.h>
#include <shim/hash.h>

static __always_inline struct rhashtable *table(struct shim_hash *hash) { return (struct rhashtable *)hash; }

/* A constant wherever key_bytes is one, so that hashing and comparing are inlined for that size. */
static __always_inline struct rhashtable_params parameters(uint16_t key_bytes)
{
	return (struct rhashtable_params){
		.key_len = key_bytes,
		.head_offset = offsetof(struct shim_hash_node, head),
		.key_offset = sizeof(struct shim_hash_node),
		.automatic_shrinking = true,
	};
}

SHIM int shim_hash_init(struct shim_hash *hash, uint16_t key_bytes)
{
	const struct rhashtable_params params = parameters(key_bytes);

	return rhashtable_init(table(hash), &params);
}

SHIM void shim_hash_destroy(struct shim_hash *hash) { rhashtable_destroy(table(hash)); }

SHIM struct shim_hash_node *shim_hash_find(struct shim_hash *hash, const void *key, uint16_t key_bytes)
{
	return rhashtable_lookup_fast(table(hash), key, parameters(key_bytes));
}

SHIM int shim_hash_insert(struct shim_hash *hash, struct shim_hash_node *node, uint16_t key_bytes)
{
	return rhashtable_lookup_insert_fast(table(hash), &node->head, parameters(key_bytes));
}

SHIM void shim_hash_remove(struct shim_hash *hash, struct shim_hash_node *node, uint16_t key_bytes)
{
	rhashtable_remove_fast(table(hash), &node->head, parameters(key_bytes));
}
