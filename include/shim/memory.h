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
/*
 * Between these, no allocation of this thread starts I/O or waits for it. They nest: end() is given what begin()
 * returned. CONTEXT: process.
 */
unsigned int shim_noio_begin(void);
void shim_noio_end(unsigned int before);
/* Frees what any of the three gave; NULL is allowed. CONTEXT: process. */
void shim_free(void *memory);

SHIM_END
