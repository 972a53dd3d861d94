// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Helpers for packets and their buffers, on the hot path: functions of the C boundary that need control flow or several
 * kernel calls. The comment above each gives the reason.
 */
#include "../compat.h"
#include "../objects.h"
#include <linux/icmpv6.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <net/checksum.h>
#include <net/icmp.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/tcp.h>
#include <shim/skbuff.h>
#include <shim/tso.h>

/* Both calls work on offsets that only the kernel's inline functions know. */
SHIM void shim_helper_skb_pull_mac_header(struct sk_buff *skb, unsigned int bytes)
{
	skb_reset_mac_header(skb);
	__skb_pull(skb, bytes);
}

/*
 * Sums up linear packets inline, on the hot path: skb_checksum_help() takes twice as long for a small packet. The
 * sender of a packet socket or of AF_XDP chooses the offsets: the start may lie in the hardware address, of which
 * skb_checksum_help() would warn, and the end behind the packet.
 */
SHIM int shim_helper_skb_checksum(struct sk_buff *skb)
{
	const int start = skb_checksum_start_offset(skb), end = start + skb->csum_offset + (int)sizeof(__sum16);
	__sum16 sum;

	if (unlikely(start < 0 || start >= (int)skb_headlen(skb)))
		return -EINVAL;
	if (skb_is_nonlinear(skb) || (skb_cloned(skb) && !skb_clone_writable(skb, end)))
		return skb_checksum_help(skb);
	if (unlikely(end > (int)skb->len))
		return -EINVAL;
	sum = csum_fold(csum_partial(skb->data + start, skb->len - start, 0));
	*(__sum16 *)(skb->data + end - sizeof(sum)) = sum ?: CSUM_MANGLED_0;
	skb->ip_summed = CHECKSUM_NONE;
	return 0;
}

/* Checksums by the kernel's inline functions, of which each architecture has its own; on the hot path. */
SHIM bool shim_helper_ip_checksum_holds(const void *packet)
{
	return ip_fast_csum(packet, sizeof(struct iphdr) / 4) == 0;
}

SHIM bool shim_helper_tcp_checksum_holds(const void *packet, unsigned int bytes)
{
	const struct iphdr *ip = packet;
	const unsigned int tcp_bytes = bytes - sizeof(*ip);

	return csum_tcpudp_magic(ip->saddr, ip->daddr, tcp_bytes, IPPROTO_TCP, csum_partial(ip + 1, tcp_bytes, 0)) == 0;
}

/* Sets the fields that GRO would set; struct skb_shared_info and struct tcphdr are the kernel's. */
SHIM void shim_helper_skb_set_merged(struct sk_buff *skb, unsigned int segments, unsigned int segment_bytes)
{
	const struct iphdr *ip = (const struct iphdr *)skb->data;
	struct tcphdr *tcp = (struct tcphdr *)(ip + 1);

	/* The most segments that SegmentMerger merges, each a fragment. */
	BUILD_BUG_ON(MAX_SKB_FRAGS < 16);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, sizeof(*ip));
	skb_shinfo(skb)->gso_size = segment_bytes;
	skb_shinfo(skb)->gso_segs = segments;
	skb_shinfo(skb)->gso_type = SKB_GSO_TCPV4;
	tcp->check = ~tcp_v4_check(skb->len - sizeof(*ip), ip->saddr, ip->daddr, 0);
	skb->csum_start = (unsigned char *)tcp - skb->head;
	skb->csum_offset = offsetof(struct tcphdr, check);
	skb->ip_summed = CHECKSUM_PARTIAL;
}

/* Checks the flags first, on the hot path: skb_tx_timestamp() calls a function for each packet, to look for a PHY. */
SHIM void shim_helper_skb_tx_timestamp(struct sk_buff *skb)
{
	if (unlikely(skb_shinfo(skb)->tx_flags))
		skb_tx_timestamp(skb);
}

/* icmp_send() reads the packet's control block as IP's; bottom halves are off for both calls. */
SHIM void shim_helper_icmp_too_big(struct sk_buff *skb, struct net_device *dev, unsigned int mtu)
{
	skb->dev = dev;
	memset(skb->cb, 0, sizeof(skb->cb));
	local_bh_disable();
	if (skb->protocol == htons(ETH_P_IP))
		icmp_send(skb, ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, htonl(mtu));
	else if (skb->protocol == htons(ETH_P_IPV6))
		icmpv6_send(skb, ICMPV6_PKT_TOOBIG, 0, mtu);
	local_bh_enable();
	shim_kfree_skb_reason(skb, SHIM_DROP_PKT_TOO_BIG);
}

/* Buffers of a page pool return to it only if the packet is marked. */
SHIM struct sk_buff *shim_helper_napi_build_skb(void *buffer, unsigned int bytes)
{
	struct sk_buff *skb = SHIM_BUILD_SKB(buffer, bytes);

	if (skb)
		shim_skb_mark_for_recycle(skb);
	return skb;
}

/* A buffer is an address in C++; skb_add_rx_frag() takes page and offset. */
SHIM void shim_helper_skb_add_rx_frag(struct sk_buff *skb, void *data, unsigned int bytes, unsigned int buffer_bytes)
{
	struct page *page = virt_to_head_page(data);

	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, data - page_address(page), bytes, buffer_bytes);
}

#ifdef SHIM_HAVE_TSO_HEADER_LENGTH
/* tso_build_hdr() does not count extension headers in the IPv6 payload length. */
SHIM void shim_helper_tso_build_hdr(struct shim_tso *tso, const struct sk_buff *skb, void *headers,
				    unsigned int data_bytes, bool last)
{
	struct ipv6hdr *ip = headers + skb_network_offset(skb);

	tso_build_hdr(skb, headers, &tso->tso, data_bytes, last);
	if (tso->tso.ipv6)
		ip->payload_len = htons(skb_network_header_len(skb) - sizeof(*ip) + tso->tso.tlen + data_bytes);
}

/* Pseudo-headers and checksums by the kernel's inline functions; one pass over the headers, on the hot path. */
SHIM void shim_helper_tso_checksums(const struct shim_tso *tso, const struct sk_buff *skb, void *headers,
				    unsigned int data_bytes, uint32_t sum)
{
	struct iphdr *ip4 = headers + skb_network_offset(skb);
	struct ipv6hdr *ip6 = (void *)ip4;
	struct tcphdr *tcp = headers + skb_transport_offset(skb);
	unsigned int bytes = tso->tso.tlen + data_bytes;
	__wsum all;

	tcp->check = 0;
	all = csum_partial(tcp, tso->tso.tlen, (__force __wsum)sum);
	if (tso->tso.ipv6) {
		tcp->check = tcp_v6_check(bytes, &ip6->saddr, &ip6->daddr, all);
	} else {
		ip_send_check(ip4);
		tcp->check = tcp_v4_check(bytes, ip4->saddr, ip4->daddr, all);
	}
}
#else
/* Not called where the kernel has no library for segmentation. */
SHIM void shim_helper_tso_build_hdr(struct shim_tso *tso, const struct sk_buff *skb, void *headers,
				    unsigned int data_bytes, bool last)
{
}

/* Not called where the kernel has no library for segmentation. */
SHIM void shim_helper_tso_checksums(const struct shim_tso *tso, const struct sk_buff *skb, void *headers,
				    unsigned int data_bytes, uint32_t sum)
{
}
#endif
