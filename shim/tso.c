// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "objects.h"
#include <linux/skbuff.h>
#include <net/checksum.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/tcp.h>
#include <shim/tso.h>

SHIM void shim_tso_start(struct shim_tso *tso, struct sk_buff *skb) { tso_start(skb, &tso->tso); }

SHIM void shim_helper_tso_build_hdr(struct shim_tso *tso, const struct sk_buff *skb, void *headers,
				    unsigned int data_bytes, bool last)
{
	struct ipv6hdr *ip = headers + skb_network_offset(skb);

	tso_build_hdr(skb, headers, &tso->tso, data_bytes, last);
	/* It does not count extension headers. */
	if (tso->tso.ipv6)
		ip->payload_len = htons(skb_network_header_len(skb) - sizeof(*ip) + tso->tso.tlen + data_bytes);
}

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
