// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A NAPI has a list of packets on their way to the stack. */
#include <linux/netdevice.h>

unsigned long probe(const struct napi_struct *napi);
unsigned long probe(const struct napi_struct *napi) { return napi->gro_bitmask | napi->rx_count; }
