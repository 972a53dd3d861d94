// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Allocation of memory. */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <shim/memory.h>

SHIM void *shim_kzalloc(size_t bytes) { return kzalloc(bytes, GFP_KERNEL); }
SHIM void *shim_kzalloc_atomic(size_t bytes) { return kzalloc(bytes, GFP_ATOMIC); }
SHIM void *shim_kvcalloc(size_t count, size_t bytes) { return kvcalloc(count, bytes, GFP_KERNEL); }
SHIM unsigned int shim_memalloc_noio_save(void) { return memalloc_noio_save(); }
SHIM void shim_memalloc_noio_restore(unsigned int before) { memalloc_noio_restore(before); }
SHIM void shim_kvfree(void *memory) { kvfree(memory); }
