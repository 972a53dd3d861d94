// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Packets (struct sk_buff). */
#include "compat.h"
#include "objects.h"
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/dst.h>
#include <net/ip.h>
#include <net/tcp.h>
#include <shim/skbuff.h>

SHIM unsigned char *shim_skb_data(const struct sk_buff *skb) { return skb->data; }
SHIM unsigned int shim_skb_len(const struct sk_buff *skb) { return skb->len; }
SHIM unsigned int shim_skb_headlen(const struct sk_buff *skb) { return skb_headlen(skb); }
SHIM unsigned int shim_skb_nr_frags(const struct sk_buff *skb) { return skb_shinfo(skb)->nr_frags; }

SHIM unsigned int shim_skb_frag_size(const struct sk_buff *skb, unsigned int frag)
{
	return skb_frag_size(&skb_shinfo(skb)->frags[frag]);
}

SHIM unsigned char *shim_skb_push(struct sk_buff *skb, unsigned int bytes) { return skb_push(skb, bytes); }
SHIM unsigned char *shim_skb_pull(struct sk_buff *skb, unsigned int bytes) { return __skb_pull(skb, bytes); }
SHIM void shim_skb_put(struct sk_buff *skb, unsigned int bytes) { skb_put(skb, bytes); }
SHIM void shim_skb_reserve(struct sk_buff *skb, unsigned int bytes) { skb_reserve(skb, bytes); }

SHIM int shim_skb_linearize(struct sk_buff *skb) { return skb_linearize(skb); }

SHIM unsigned int shim_skb_gso_size(const struct sk_buff *skb) { return skb_shinfo(skb)->gso_size; }

SHIM unsigned int shim_skb_tcp_headers(const struct sk_buff *skb)
{
	return skb_transport_offset(skb) + tcp_hdrlen(skb);
}

SHIM bool shim_pskb_may_pull(struct sk_buff *skb, unsigned int bytes) { return pskb_may_pull(skb, bytes); }
SHIM bool shim_skb_checksum_partial(const struct sk_buff *skb) { return skb->ip_summed == CHECKSUM_PARTIAL; }

SHIM void shim_skb_set_protocol(struct sk_buff *skb, uint16_t ethertype) { skb->protocol = cpu_to_be16(ethertype); }
SHIM void shim_skb_set_device(struct sk_buff *skb, struct net_device *dev) { skb->dev = dev; }
SHIM void shim_skb_record_rx_queue(struct sk_buff *skb, uint16_t queue) { skb_record_rx_queue(skb, queue); }

SHIM void shim_skb_set_packet_type(struct sk_buff *skb, enum shim_packet_type type) { skb->pkt_type = type; }

SHIM void shim_skb_set_checksum_unnecessary(struct sk_buff *skb) { skb->ip_summed = CHECKSUM_UNNECESSARY; }

SHIM bool shim_dev_direct_xmit(struct sk_buff *skb, unsigned int queue)
{
	return dev_xmit_complete(dev_direct_xmit(skb, queue));
}

SHIM unsigned int shim_skb_get_queue_mapping(const struct sk_buff *skb) { return skb_get_queue_mapping(skb); }
SHIM uint32_t shim_skb_get_hash(struct sk_buff *skb) { return skb_get_hash(skb); }

SHIM void shim_napi_consume_skb(struct sk_buff *skb, int budget) { napi_consume_skb(skb, budget); }

#ifdef SHIM_HAVE_DROP_REASONS
SHIM void shim_kfree_skb_reason(struct sk_buff *skb, enum shim_drop why)
{
	static const enum skb_drop_reason reasons[] = {
		[SHIM_DROP_HDR_TRUNC] = SKB_DROP_REASON_HDR_TRUNC,
		[SHIM_DROP_UNHANDLED_PROTO] = SKB_DROP_REASON_UNHANDLED_PROTO,
		[SHIM_DROP_NEIGH_FAILED] = SKB_DROP_REASON_NEIGH_FAILED,
		[SHIM_DROP_NEIGH_CREATEFAIL] = SKB_DROP_REASON_NEIGH_CREATEFAIL,
		[SHIM_DROP_NEIGH_QUEUEFULL] = SKB_DROP_REASON_NEIGH_QUEUEFULL,
		[SHIM_DROP_NEIGH_DEAD] = SKB_DROP_REASON_NEIGH_DEAD,
		[SHIM_DROP_PKT_TOO_BIG] = SKB_DROP_REASON_PKT_TOO_BIG,
		[SHIM_DROP_FULL_RING] = SKB_DROP_REASON_FULL_RING,
		[SHIM_DROP_DEV_READY] = SKB_DROP_REASON_DEV_READY,
		[SHIM_DROP_NOMEM] = SKB_DROP_REASON_NOMEM,
	};

	kfree_skb_reason(skb, reasons[why]);
}
#else
SHIM void shim_kfree_skb_reason(struct sk_buff *skb, enum shim_drop why) { kfree_skb(skb); }
#endif

SHIM void shim_dev_queue_xmit(struct sk_buff *skb, struct net_device *dev)
{
	skb->dev = dev;
	dev_queue_xmit(skb);
}

SHIM void shim_skb_dst_update_pmtu(struct sk_buff *skb, unsigned int mtu) { skb_dst_update_pmtu(skb, mtu); }

struct packet_note {
	unsigned int value;
};

SHIM void shim_skb_set_cb(struct sk_buff *skb, unsigned int note) { ((struct packet_note *)skb->cb)->value = note; }

SHIM unsigned int shim_skb_cb(const struct sk_buff *skb) { return ((const struct packet_note *)skb->cb)->value; }

SHIM void shim_skb_orphan(struct sk_buff *skb) { skb_orphan(skb); }
SHIM int shim_skb_orphan_frags(struct sk_buff *skb) { return skb_orphan_frags_rx(skb, GFP_ATOMIC); }

/* With PREEMPT_RT it reads `current`, on x86 in const_pcpu_hot; tx_queue.c reads pcpu_hot.cpu_number. gcc's LTO refuses
 * a file with both (6.12): they share a section, and one is constant. */
SHIM bool shim_netdev_xmit_more(void) { return netdev_xmit_more(); }

SHIM struct sk_buff *shim_skb_next(const struct sk_buff *skb) { return skb->next; }
SHIM void shim_skb_set_next(struct sk_buff *skb, struct sk_buff *next) { skb->next = next; }

SHIM struct sk_buff *shim_napi_alloc_skb(struct shim_napi *napi, unsigned int bytes)
{
	return napi_alloc_skb(&napi->napi, bytes);
}

#if SHIM_HAS_PAGE_POOLS
SHIM void shim_skb_mark_for_recycle(struct sk_buff *skb) { skb_mark_for_recycle(skb); }
#else
SHIM void shim_skb_mark_for_recycle(struct sk_buff *skb) {}
#endif

SHIM unsigned int shim_skb_buffer_headroom(void) { return NET_SKB_PAD; }
SHIM unsigned int shim_skb_buffer_tailroom(void) { return SKB_DATA_ALIGN(sizeof(struct skb_shared_info)); }
