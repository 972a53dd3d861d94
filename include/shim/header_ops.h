/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The hard header: the operations by which the stack writes it, and caches it in neighbour entries. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct sk_buff;

/* RFC 4391's encapsulation header and, before it, the destination's hardware address; the largest MTU of any mode. */
enum { IPOIB_HEADER_BYTES = 24, IPOIB_MAX_MTU = 65520 };
/* Pushes the encapsulation and the destination; returns their length, negative when there is no destination. */
int ipoib_header_create(struct sk_buff *skb, uint16_t ethertype, const void *destination);
/* The same where there is no packet, in IPOIB_HEADER_BYTES; and a new destination in such a header. */
void ipoib_header_write(void *header, uint16_t ethertype, const void *destination);
void ipoib_header_set_destination(void *header, const void *destination);

SHIM_END
