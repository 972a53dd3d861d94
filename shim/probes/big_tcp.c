// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The stack segments TCP packets beyond 64 KiB of IPv4, too. Kernels that do so for IPv6 alone assume an Ethernet
 * header, and overwrite the addresses of a packet with another.
 */
#include <linux/netdevice.h>

void probe(struct net_device *dev);
void probe(struct net_device *dev)
{
	dev->gso_ipv4_max_size = dev->tso_max_size;
	netif_set_tso_max_size(dev, GSO_MAX_SIZE);
}
