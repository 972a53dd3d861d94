/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

/* Zeroed memory, or NULL. CONTEXT: process, may sleep. */
void *shim_alloc(size_t bytes);
/* Zeroed memory, or NULL. CONTEXT: any. */
void *shim_alloc_atomic(size_t bytes);
/* Zeroed memory for a large array, perhaps not contiguous, or NULL. CONTEXT: process. */
void *shim_alloc_array(size_t count, size_t bytes);
/* Frees what any of the three gave; NULL is allowed. CONTEXT: process. */
void shim_free(void *memory);

SHIM_END
