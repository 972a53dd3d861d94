/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packets (struct sk_buff). */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;
struct shim_napi;
struct sk_buff;

unsigned char *shim_skb_data(const struct sk_buff *skb);
/* Bytes in all, and those of them in the linear part. */
unsigned int shim_skb_len(const struct sk_buff *skb);
unsigned int shim_skb_headlen(const struct sk_buff *skb);
unsigned int shim_skb_nr_frags(const struct sk_buff *skb);
unsigned int shim_skb_frag_size(const struct sk_buff *skb, unsigned int frag);

unsigned char *shim_skb_push(struct sk_buff *skb, unsigned int bytes);
/* The linear part has so many. */
unsigned char *shim_skb_pull(struct sk_buff *skb, unsigned int bytes);
void shim_skb_put(struct sk_buff *skb, unsigned int bytes);
void shim_skb_reserve(struct sk_buff *skb, unsigned int bytes);
/* Takes bytes off the front and marks them as the link header. */
void shim_helper_skb_pull_mac_header(struct sk_buff *skb, unsigned int bytes);
int shim_skb_linearize(struct sk_buff *skb);

/* Bytes of data in each segment of a packet that is to be cut into several; 0: it is to be sent as it is. */
unsigned int shim_skb_gso_size(const struct sk_buff *skb);
/* Of such a packet: bytes from its data to the end of the TCP header. */
unsigned int shim_skb_tcp_headers(const struct sk_buff *skb);
/* The first bytes are in the linear part afterwards; false: no memory. */
bool shim_pskb_may_pull(struct sk_buff *skb, unsigned int bytes);
/* The checksum of its TCP or UDP is to be filled in by whoever sends it; here, for one who can't have the HCA do it. */
bool shim_skb_checksum_partial(const struct sk_buff *skb);
int shim_helper_skb_checksum(struct sk_buff *skb);

/* Host byte order. */
void shim_skb_set_protocol(struct sk_buff *skb, uint16_t ethertype);
void shim_skb_set_device(struct sk_buff *skb, struct net_device *dev);
enum shim_packet_type { SHIM_PACKET_HOST, SHIM_PACKET_BROADCAST, SHIM_PACKET_MULTICAST };
void shim_skb_set_packet_type(struct sk_buff *skb, enum shim_packet_type type);
void shim_skb_set_checksum_unnecessary(struct sk_buff *skb);
/*
 * The packet, whose data begins with an IPv4 header without options and TCP behind it, was merged from so many, with
 * segment_bytes of data in each but the last: as if it had come by GRO.
 */
void shim_helper_skb_set_merged(struct sk_buff *skb, unsigned int segments, unsigned int segment_bytes);
void shim_helper_skb_tx_timestamp(struct sk_buff *skb);

/* The end of a packet that arrived or left, from a NAPI poll; budget as the poll was given it. */
void shim_napi_consume_skb(struct sk_buff *skb, int budget);
/* The end of a packet that did not, and why, for those who watch drops. CONTEXT: process or softirq. */
enum shim_drop {
	/* It begins with no hard header; of a type that IPoIB does not carry. */
	SHIM_DROP_MALFORMED,
	SHIM_DROP_TYPE,
	/* No path, group or connection leads to its destination; too many packets wait for one; it was forgotten. */
	SHIM_DROP_UNREACHABLE,
	SHIM_DROP_WAITING,
	SHIM_DROP_FORGOTTEN,
	SHIM_DROP_TOO_LONG,
	/* The ring is full; out of service; memory, or a mapping of it, was not to be had. */
	SHIM_DROP_FULL,
	SHIM_DROP_CLOSED,
	SHIM_DROP_NO_MEMORY,
};
void shim_kfree_skb_reason(struct sk_buff *skb, enum shim_drop why);
/* Hands a packet with its hard header to the device's queue once more. CONTEXT: process or softirq, no tx lock. */
void shim_dev_queue_xmit(struct sk_buff *skb, struct net_device *dev);

/* The route that the packet came by carries no more than mtu bytes of IP. CONTEXT: any. */
void shim_skb_dst_update_pmtu(struct sk_buff *skb, unsigned int mtu);
/*
 * Tells the sender of an IP packet the same: ICMP "fragmentation needed" or ICMPv6 "packet too big"; then drops it.
 * CONTEXT: process, no tx lock.
 */
void shim_helper_icmp_too_big(struct sk_buff *skb, struct net_device *dev, unsigned int mtu);
/* A number that stays with the packet while the driver has it. */
void shim_skb_set_cb(struct sk_buff *skb, unsigned int note);
unsigned int shim_skb_cb(const struct sk_buff *skb);

/* It counts for its socket no more. CONTEXT: process or softirq. */
void shim_skb_orphan(struct sk_buff *skb);
/* Copies pages that user space has lent (MSG_ZEROCOPY), so that it gets them back. 0 or -ENOMEM. CONTEXT: any. */
int shim_skb_orphan_frags(struct sk_buff *skb);
/* A chain of packets through their own link; the chain's owner keeps the ends. */
struct sk_buff *shim_skb_next(const struct sk_buff *skb);
void shim_skb_set_next(struct sk_buff *skb, struct sk_buff *next);
/* Builds a packet in a buffer of so many bytes, which it owns from then on. NULL: no memory, the buffer stays. */
struct sk_buff *shim_helper_napi_build_skb(void *buffer, unsigned int bytes);
/* An empty packet with bytes of linear room. NULL: no memory. CONTEXT: the NAPI poll. */
struct sk_buff *shim_napi_alloc_skb(struct shim_napi *napi, unsigned int bytes);
/* Appends data that lies in a buffer, which the packet owns from then on; its socket is charged for buffer_bytes. */
void shim_helper_skb_add_rx_frag(struct sk_buff *skb, void *data, unsigned int bytes, unsigned int buffer_bytes);
/* Buffers of a pool return to it when the packet is freed. */
void shim_skb_mark_for_recycle(struct sk_buff *skb);
/* What an skb needs in its buffer before and after the data. */
unsigned int shim_skb_buffer_headroom(void);
unsigned int shim_skb_buffer_tailroom(void);

SHIM_END
