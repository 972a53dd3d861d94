// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "objects.h"
#include <linux/skbuff.h>
#include <net/checksum.h>
#include <net/ip.h>
#include <net/tcp.h>
#include <shim/tso.h>

SHIM void shim_tso_begin(struct shim_tso *tso, struct sk_buff *skb) { tso_start(skb, &tso->tso); }

SHIM void shim_tso_write_headers(struct shim_tso *tso, const struct sk_buff *skb, void *headers,
				 unsigned int data_bytes, bool last)
{
	tso_build_hdr(skb, headers, &tso->tso, data_bytes, last);
}

SHIM void *shim_tso_data(const struct shim_tso *tso) { return tso->tso.data; }
SHIM unsigned int shim_tso_piece_bytes(const struct shim_tso *tso) { return tso->tso.size; }

SHIM void shim_tso_advance(struct shim_tso *tso, const struct sk_buff *skb, unsigned int bytes)
{
	tso_build_data(skb, &tso->tso, bytes);
}

SHIM uint32_t shim_tso_add_to_sum(uint32_t sum, const void *data, unsigned int bytes, unsigned int offset)
{
	return (__force uint32_t)csum_block_add((__force __wsum)sum, csum_partial(data, bytes, 0), offset);
}

SHIM void shim_tso_fill_checksums(const struct shim_tso *tso, const struct sk_buff *skb, void *headers,
				  unsigned int data_bytes, uint32_t sum)
{
	struct iphdr *ip = headers + skb_network_offset(skb);
	struct tcphdr *tcp = headers + skb_transport_offset(skb);

	ip_send_check(ip);
	tcp->check = 0;
	tcp->check = tcp_v4_check(tso->tso.tlen + data_bytes, ip->saddr, ip->daddr,
				  csum_partial(tcp, tso->tso.tlen, (__force __wsum)sum));
}
