// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Hash tables (linux/rhashtable.h). */
#include "objects.h"
#include <linux/rhashtable.h>
#include <shim/hash.h>

static __always_inline struct rhashtable *table(struct shim_hash *hash) { return (struct rhashtable *)hash; }

/*
 * With constant parameters the compiler inlines hashing and comparing; otherwise each is a call by pointer. Where shims
 * are compiled, key_bytes is not a constant yet, so each size of keys has parameters of its own.
 */
#define KEYS_OF(bytes)                                                                                                 \
	static inline int compare_##bytes(struct rhashtable_compare_arg *arg, const void *object)                      \
	{                                                                                                              \
		return memcmp(object + sizeof(struct shim_hash_node), arg->key, bytes) != 0;                           \
	}                                                                                                              \
	static const struct rhashtable_params keys_of_##bytes = {                                                      \
		.key_len = bytes,                                                                                      \
		.head_offset = offsetof(struct shim_hash_node, head),                                                  \
		.key_offset = sizeof(struct shim_hash_node),                                                           \
		.automatic_shrinking = true,                                                                           \
		.obj_cmpfn = compare_##bytes,                                                                          \
	}
KEYS_OF(16);
KEYS_OF(20);

SHIM int shim_rhashtable_init(struct shim_hash *hash, uint16_t key_bytes)
{
	return rhashtable_init(table(hash), key_bytes == 16 ? &keys_of_16 : &keys_of_20);
}

SHIM void shim_rhashtable_destroy(struct shim_hash *hash) { rhashtable_destroy(table(hash)); }

/* flatten: the compiler would inline only a part, and the parameters would not be constants. */
SHIM __attribute__((flatten)) struct shim_hash_node *shim_rhashtable_lookup(struct shim_hash *hash, const void *key,
									    uint16_t key_bytes)
{
	return key_bytes == 16 ? rhashtable_lookup(table(hash), key, keys_of_16) :
				 rhashtable_lookup(table(hash), key, keys_of_20);
}

SHIM int shim_rhashtable_lookup_insert_fast(struct shim_hash *hash, struct shim_hash_node *node, uint16_t key_bytes)
{
	return key_bytes == 16 ? rhashtable_lookup_insert_fast(table(hash), &node->head, keys_of_16) :
				 rhashtable_lookup_insert_fast(table(hash), &node->head, keys_of_20);
}

SHIM void shim_rhashtable_remove_fast(struct shim_hash *hash, struct shim_hash_node *node, uint16_t key_bytes)
{
	(void)(key_bytes == 16 ? rhashtable_remove_fast(table(hash), &node->head, keys_of_16) :
				 rhashtable_remove_fast(table(hash), &node->head, keys_of_20));
}
