// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Packets that GRO holds are in a structure, struct gro_node. */
#include <linux/netdevice.h>

unsigned long probe(const struct napi_struct *napi);
unsigned long probe(const struct napi_struct *napi) { return napi->gro.bitmask | napi->gro.rx_count; }
