/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Memory, zeroed. Allocation returns NULL on failure. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

/* CONTEXT: process, may sleep. */
void *shim_kzalloc(size_t bytes);
/* CONTEXT: any. */
void *shim_kzalloc_atomic(size_t bytes);
/* Allocates an array, perhaps not physically contiguous. CONTEXT: process, may sleep. */
void *shim_kvcalloc(size_t count, size_t bytes);
/*
 * Between these, no allocation of this thread starts I/O or waits for it. They nest: restore() takes what save()
 * returned. CONTEXT: process.
 */
unsigned int shim_memalloc_noio_save(void);
void shim_memalloc_noio_restore(unsigned int before);
/* Frees memory of the three above; NULL is allowed. CONTEXT: process for shim_kvcalloc()'s, any for the others'. */
void shim_kvfree(void *memory);

SHIM_END
