// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A page pool that gives fragments of pages is created with a flag for it. */
#if __has_include(<net/page_pool/helpers.h>)
#include <net/page_pool/helpers.h>
#else
#include <net/page_pool.h>
#endif

unsigned int probe(void);
unsigned int probe(void) { return PP_FLAG_PAGE_FRAG; }
