/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The hard header: operations by which the stack writes it, and caches it in neighbour entries. CONTEXT: any. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct sk_buff;

/*
 * Bytes of the hard header: the destination's hardware address, 20, and the encapsulation (RFC 4391 section 6), 4.
 * The largest MTU, that of connected mode.
 */
enum { IPOIB_HEADER_BYTES = 24, IPOIB_MAX_MTU = 65520 };
/*
 * Pushes the hard header. Returns its length, negated without a destination. ethertype: host byte order; destination:
 * 20 bytes.
 */
int ipoib_header_create(struct sk_buff *skb, uint16_t ethertype, const void *destination);
/* Write a hard header, and its destination alone, in IPOIB_HEADER_BYTES of memory. */
void ipoib_header_write(void *header, uint16_t ethertype, const void *destination);
void ipoib_header_set_destination(void *header, const void *destination);

SHIM_END
