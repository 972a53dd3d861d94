// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* __vmalloc() takes no page protection. */
#include <linux/gfp.h>
#include <linux/vmalloc.h>

void *probe(unsigned long bytes);
void *probe(unsigned long bytes) { return __vmalloc(bytes, GFP_KERNEL); }
