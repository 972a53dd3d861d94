// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Packets around a buffer have their struct sk_buff from the cache of the NAPI's processor. */
#include <linux/skbuff.h>

struct sk_buff *probe(void *buffer, unsigned int bytes);
struct sk_buff *probe(void *buffer, unsigned int bytes) { return napi_build_skb(buffer, bytes); }
