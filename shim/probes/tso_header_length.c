// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The segmentation library (net/tso.h) keeps the length of the transport header, and does not change the packet. */
#include <net/tso.h>

int probe(const struct sk_buff *skb, char *headers, struct tso_t *tso);
int probe(const struct sk_buff *skb, char *headers, struct tso_t *tso)
{
	tso_build_hdr(skb, headers, tso, 0, true);
	return tso->tlen;
}
