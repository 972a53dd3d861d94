// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A netdev may leave its statistics to the core, which allocates them, sums them up and frees them. */
#include <linux/netdevice.h>

void probe(struct net_device *dev);
void probe(struct net_device *dev) { dev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS; }
