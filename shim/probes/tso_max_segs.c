// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A driver says how many segments a packet may become. */
#include <linux/netdevice.h>

void probe(struct net_device *dev);
void probe(struct net_device *dev) { netif_set_tso_max_segs(dev, 1); }
