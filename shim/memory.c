// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <shim/memory.h>

SHIM void *shim_alloc(size_t bytes) { return kzalloc(bytes, GFP_KERNEL); }
SHIM void *shim_alloc_atomic(size_t bytes) { return kzalloc(bytes, GFP_ATOMIC); }
SHIM void *shim_alloc_array(size_t count, size_t bytes) { return kvcalloc(count, bytes, GFP_KERNEL); }
SHIM unsigned int shim_noio_begin(void) { return memalloc_noio_save(); }
SHIM void shim_noio_end(unsigned int before) { memalloc_noio_restore(before); }
SHIM void shim_free(void *memory) { kvfree(memory); }
