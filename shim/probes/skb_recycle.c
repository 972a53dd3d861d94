// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Packets return their buffers to the page pools that these are from. */
#include <linux/skbuff.h>

void probe(struct sk_buff *skb);
void probe(struct sk_buff *skb) { skb_mark_for_recycle(skb); }
