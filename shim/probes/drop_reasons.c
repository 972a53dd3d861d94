// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Packets are freed with a reason, and the reasons that we have are known. */
#include <linux/skbuff.h>

void probe(struct sk_buff *skb);
void probe(struct sk_buff *skb)
{
	static const enum skb_drop_reason reasons[] = {
		SKB_DROP_REASON_HDR_TRUNC,	  SKB_DROP_REASON_UNHANDLED_PROTO, SKB_DROP_REASON_NEIGH_FAILED,
		SKB_DROP_REASON_NEIGH_QUEUEFULL,  SKB_DROP_REASON_NEIGH_DEAD,	   SKB_DROP_REASON_PKT_TOO_BIG,
		SKB_DROP_REASON_FULL_RING,	  SKB_DROP_REASON_DEV_READY,	   SKB_DROP_REASON_NOMEM,
		SKB_DROP_REASON_NEIGH_CREATEFAIL,
	};

	kfree_skb_reason(skb, reasons[0]);
}
