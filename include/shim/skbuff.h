/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packets (struct sk_buff). CONTEXT: any, by the packet's owner, if nothing else is given. Sizes are in bytes. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;
struct shim_napi;
struct sk_buff;

unsigned char *shim_skb_data(const struct sk_buff *skb);
/* Length of the data, and of its linear part. */
unsigned int shim_skb_len(const struct sk_buff *skb);
unsigned int shim_skb_headlen(const struct sk_buff *skb);
/* Number of fragments, and length of one. */
unsigned int shim_skb_nr_frags(const struct sk_buff *skb);
unsigned int shim_skb_frag_size(const struct sk_buff *skb, unsigned int frag);

unsigned char *shim_skb_push(struct sk_buff *skb, unsigned int bytes);
/* Removes bytes from the front (__skb_pull); the linear part must have them. */
unsigned char *shim_skb_pull(struct sk_buff *skb, unsigned int bytes);
void shim_skb_put(struct sk_buff *skb, unsigned int bytes);
void shim_skb_reserve(struct sk_buff *skb, unsigned int bytes);
/* Removes bytes from the front, and marks them as the link header. */
void shim_helper_skb_pull_mac_header(struct sk_buff *skb, unsigned int bytes);
/* Makes all data linear. 0 or -ENOMEM. */
int shim_skb_linearize(struct sk_buff *skb);

/* Data of each segment of a GSO packet; 0: the packet is not to be segmented. */
unsigned int shim_skb_gso_size(const struct sk_buff *skb);
/* Headers of a GSO packet, TCP's included. */
unsigned int shim_skb_tcp_headers(const struct sk_buff *skb);
/* Makes the first bytes linear. Returns false if the packet is shorter, or there is no memory. */
bool shim_pskb_may_pull(struct sk_buff *skb, unsigned int bytes);
/* Returns true if the checksum is still to be filled in (CHECKSUM_PARTIAL). */
bool shim_skb_checksum_partial(const struct sk_buff *skb);
/* Fills in that checksum. Returns 0 or a negative errno. */
int shim_helper_skb_checksum(struct sk_buff *skb);

/* Set fields of a received packet. ethertype: host byte order. */
void shim_skb_set_protocol(struct sk_buff *skb, uint16_t ethertype);
void shim_skb_set_device(struct sk_buff *skb, struct net_device *dev);
/* The netdev's queue that received the packet, from 0. */
void shim_skb_record_rx_queue(struct sk_buff *skb, uint16_t queue);
enum shim_packet_type { SHIM_PACKET_HOST, SHIM_PACKET_BROADCAST, SHIM_PACKET_MULTICAST };
void shim_skb_set_packet_type(struct sk_buff *skb, enum shim_packet_type type);
/*
 * Return true if a checksum of a TCP segment over IPv4 is right: of its IP header, which has no options; of TCP.
 * bytes: from the IP header on. CONTEXT: any.
 */
bool shim_helper_ip_checksum_holds(const void *packet);
bool shim_helper_tcp_checksum_holds(const void *packet, unsigned int bytes);
/* Marks the checksum as verified. */
void shim_skb_set_checksum_unnecessary(struct sk_buff *skb);
/*
 * Marks the packet as merged from segments, as GRO does: segment_bytes of data in each but the last. The data begins
 * with an IPv4 header without options, and TCP.
 */
void shim_helper_skb_set_merged(struct sk_buff *skb, unsigned int segments, unsigned int segment_bytes);
/* Takes the time stamp of transmission, if the socket requested it. */
void shim_helper_skb_tx_timestamp(struct sk_buff *skb);

/* Frees a packet that was sent or received. budget: that of the poll, 0 elsewhere. */
void shim_napi_consume_skb(struct sk_buff *skb, int budget);
/* Drop reasons: the kernel's SKB_DROP_REASON_* of the same name, or none where the kernel has no reasons. */
enum shim_drop {
	/* The packet has no hard header. */
	SHIM_DROP_HDR_TRUNC,
	/* IPoIB does not carry the Ethertype. */
	SHIM_DROP_UNHANDLED_PROTO,
	/* There is no path, group or connection. */
	SHIM_DROP_NEIGH_FAILED,
	/* A path, neighbour or group could not be created: a limit is reached, or there is no memory. */
	SHIM_DROP_NEIGH_CREATEFAIL,
	/* Too many packets wait for the path, group or connection. */
	SHIM_DROP_NEIGH_QUEUEFULL,
	/* The path or group was removed. */
	SHIM_DROP_NEIGH_DEAD,
	/* The packet is longer than its destination accepts. */
	SHIM_DROP_PKT_TOO_BIG,
	/* The send ring, or the send pool, is full. */
	SHIM_DROP_FULL_RING,
	/* The interface is down, or restarts its queues. */
	SHIM_DROP_DEV_READY,
	/* There is no memory, or no DMA mapping. */
	SHIM_DROP_NOMEM,
};
/* Frees a packet that is dropped. CONTEXT: process or softirq. */
void shim_kfree_skb_reason(struct sk_buff *skb, enum shim_drop why);
/* Queues a packet with hard header on the device. CONTEXT: process or softirq, without a transmit lock. */
void shim_dev_queue_xmit(struct sk_buff *skb, struct net_device *dev);
/*
 * Has a packet of the device transmitted on this queue, behind the qdisc. Returns false if the queue was stopped or
 * frozen: the packet is dropped, and not counted. True also if the core dropped and counted it. CONTEXT: process or
 * softirq, without a transmit lock.
 */
bool shim_dev_direct_xmit(struct sk_buff *skb, unsigned int queue);
/* The transmit queue that the core selected, from 0. */
unsigned int shim_skb_get_queue_mapping(const struct sk_buff *skb);
/* A hash of the packet's flow: addresses, protocol and ports. */
uint32_t shim_skb_get_hash(struct sk_buff *skb);

/* Reports the path MTU, of IP packets, to the packet's route. */
void shim_skb_dst_update_pmtu(struct sk_buff *skb, unsigned int mtu);
/*
 * Sends ICMP "fragmentation needed" or ICMPv6 "packet too big" to the packet's sender, and drops the packet. CONTEXT:
 * process, without a transmit lock.
 */
void shim_helper_icmp_too_big(struct sk_buff *skb, struct net_device *dev, unsigned int mtu);
/* A number in the control block (skb->cb), while the driver owns the packet. */
void shim_skb_set_cb(struct sk_buff *skb, unsigned int note);
unsigned int shim_skb_cb(const struct sk_buff *skb);

/* Uncharges the packet from its socket. CONTEXT: process or softirq. */
void shim_skb_orphan(struct sk_buff *skb);
/* Copies pages of user space (MSG_ZEROCOPY), so that it gets them back. 0 or -ENOMEM. */
int shim_skb_orphan_frags(struct sk_buff *skb);

/* Returns true if more packets follow at once, so that the doorbell may wait. CONTEXT: ndo_start_xmit. */
bool shim_netdev_xmit_more(void);

/* The link of a list of packets. */
struct sk_buff *shim_skb_next(const struct sk_buff *skb);
void shim_skb_set_next(struct sk_buff *skb, struct sk_buff *next);

/* Builds a packet in a page pool's buffer, which the packet then owns. NULL: no memory. CONTEXT: the NAPI poll. */
struct sk_buff *shim_helper_napi_build_skb(void *buffer, unsigned int bytes);
/* Allocates a packet with linear space. NULL: no memory. CONTEXT: the NAPI poll. */
struct sk_buff *shim_napi_alloc_skb(struct shim_napi *napi, unsigned int bytes);
/* Appends data in a buffer, which the packet then owns; the socket is charged buffer_bytes. */
void shim_helper_skb_add_rx_frag(struct sk_buff *skb, void *data, unsigned int bytes, unsigned int buffer_bytes);
/* Has the packet's buffers return to their page pool. */
void shim_skb_mark_for_recycle(struct sk_buff *skb);
/* Space that shim_helper_napi_build_skb() needs in a buffer before and after the data. */
unsigned int shim_skb_buffer_headroom(void);
unsigned int shim_skb_buffer_tailroom(void);

SHIM_END
