/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel's resizable hash table (rhashtable). An element begins with a struct shim_hash_node, and its key
 * of key_bytes, 16 or 20, follows at once. Look-ups are lock-free under RCU; elements may be freed a grace period after
 * their removal.
 */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct shim_hash;
struct shim_hash_node;

/* Initialises a table. Failure: -ENOMEM. CONTEXT: process. */
int shim_rhashtable_init(struct shim_hash *hash, uint16_t key_bytes);
/* Frees the memory of a table, which must be empty. CONTEXT: process. */
void shim_rhashtable_destroy(struct shim_hash *hash);
/* Returns NULL if the table has no such key. CONTEXT: any, in an RCU read section. */
struct shim_hash_node *shim_rhashtable_lookup(struct shim_hash *hash, const void *key, uint16_t key_bytes);
/* Insert and remove an element. -EEXIST: the table has the key; -ENOMEM, -EBUSY, -E2BIG: there is no space. CONTEXT:
 * any; callers exclude one another. */
int shim_rhashtable_lookup_insert_fast(struct shim_hash *hash, struct shim_hash_node *node, uint16_t key_bytes);
void shim_rhashtable_remove_fast(struct shim_hash *hash, struct shim_hash_node *node, uint16_t key_bytes);

SHIM_END
