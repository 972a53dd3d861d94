// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The hardware address of a netdev is written by a function. */
#include <linux/netdevice.h>

void probe(struct net_device *dev, const void *address);
void probe(struct net_device *dev, const void *address) { dev_addr_mod(dev, 0, address, 1); }
