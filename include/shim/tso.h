/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Segmentation of TCP packets by the driver, with the kernel's library (net/tso.h). CONTEXT: the packet's owner. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct sk_buff;
struct shim_tso;

/*
 * Maximum bytes of headers in a packet that is segmented: of IP, which are 60 but for IPv6 with extension headers; and
 * of all, with the encapsulation and TCP.
 */
enum { SHIM_TSO_NETWORK_HEADERS = 64, SHIM_TSO_HEADERS = 4 + SHIM_TSO_NETWORK_HEADERS + 60 };

/* Begins with a packet whose data begins with the encapsulation, and whose headers are linear. */
void shim_tso_start(struct shim_tso *tso, struct sk_buff *skb);
/* Writes the headers of the next segment, with data_bytes of data, without checksums. */
void shim_helper_tso_build_hdr(struct shim_tso *tso, const struct sk_buff *skb, void *headers, unsigned int data_bytes,
			       bool last);
/* The next data, and its contiguous bytes; and a step past bytes of it. */
void *shim_tso_data(const struct shim_tso *tso);
unsigned int shim_tso_piece_bytes(const struct shim_tso *tso);
void shim_tso_build_data(struct shim_tso *tso, const struct sk_buff *skb, unsigned int bytes);
/* Adds the checksum of bytes at this offset of the segment's data to sum. */
uint32_t shim_csum_block_add(uint32_t sum, const void *data, unsigned int bytes, unsigned int offset);
/* Fills in the checksums of IPv4 and TCP; sum: that of the segment's data. */
void shim_helper_tso_checksums(const struct shim_tso *tso, const struct sk_buff *skb, void *headers,
			       unsigned int data_bytes, uint32_t sum);

SHIM_END
