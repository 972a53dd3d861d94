// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a NAPI holds for GRO is in a node of its own. */
#include <linux/netdevice.h>

unsigned long probe(const struct napi_struct *napi);
unsigned long probe(const struct napi_struct *napi) { return napi->gro.bitmask | napi->gro.rx_count; }
