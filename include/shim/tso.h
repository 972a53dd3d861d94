/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Cutting a TCP packet into segments, with the kernel's helpers for drivers of HCAs that can't. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct sk_buff;
struct shim_tso;

/*
 * Bytes. Of a packet that is cut, or given to an HCA to be cut: the headers of IP, which are 60 at most but for IPv6
 * with extension headers; and all headers, with the encapsulation and those of TCP.
 */
enum { SHIM_TSO_NETWORK_HEADERS = 64, SHIM_TSO_HEADERS = 4 + SHIM_TSO_NETWORK_HEADERS + 60 };

/* The packet's data begins with its encapsulation, and all of its headers are in the linear part. */
void shim_tso_start(struct shim_tso *tso, struct sk_buff *skb);
/* Writes the headers of the next segment, of so many bytes of data, without checksums. */
void shim_helper_tso_build_hdr(struct shim_tso *tso, const struct sk_buff *skb, void *headers, unsigned int data_bytes,
			       bool last);
/* Where the data goes on, and how much of it is in one piece there; and past so many bytes of it. */
void *shim_tso_data(const struct shim_tso *tso);
unsigned int shim_tso_piece_bytes(const struct shim_tso *tso);
void shim_tso_build_data(struct shim_tso *tso, const struct sk_buff *skb, unsigned int bytes);
/* Adds the bytes, which begin at this offset of the segment's data, to the sum of those before. */
uint32_t shim_csum_block_add(uint32_t sum, const void *data, unsigned int bytes, unsigned int offset);
/* Fills in both checksums of headers that were written, with the sum of the segment's data. */
void shim_helper_tso_checksums(const struct shim_tso *tso, const struct sk_buff *skb, void *headers,
			       unsigned int data_bytes, uint32_t sum);

SHIM_END
