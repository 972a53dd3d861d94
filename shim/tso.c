// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Segmentation of TCP packets (net/tso.h), where the kernel has a library for it; else SHIM_HAS_TSO is 0. */
#include "compat.h"
#include "objects.h"
#include <linux/skbuff.h>
#include <net/checksum.h>
#include <shim/tso.h>

#ifdef SHIM_HAVE_TSO_HEADER_LENGTH
SHIM void shim_tso_start(struct shim_tso *tso, struct sk_buff *skb) { tso_start(skb, &tso->tso); }

SHIM void *shim_tso_data(const struct shim_tso *tso) { return tso->tso.data; }
SHIM unsigned int shim_tso_piece_bytes(const struct shim_tso *tso) { return tso->tso.size; }

SHIM void shim_tso_build_data(struct shim_tso *tso, const struct sk_buff *skb, unsigned int bytes)
{
	tso_build_data(skb, &tso->tso, bytes);
}

SHIM uint32_t shim_csum_block_add(uint32_t sum, const void *data, unsigned int bytes, unsigned int offset)
{
	return (__force uint32_t)csum_block_add((__force __wsum)sum, csum_partial(data, bytes, 0), offset);
}
#else
SHIM void shim_tso_start(struct shim_tso *tso, struct sk_buff *skb) {}
SHIM void *shim_tso_data(const struct shim_tso *tso) { return NULL; }
SHIM unsigned int shim_tso_piece_bytes(const struct shim_tso *tso) { return 0; }
SHIM void shim_tso_build_data(struct shim_tso *tso, const struct sk_buff *skb, unsigned int bytes) {}
SHIM uint32_t shim_csum_block_add(uint32_t sum, const void *data, unsigned int bytes, unsigned int offset)
{
	return sum;
}
#endif
