// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Peers of a netdev are notified by a function that does not take RTNL. */
#include <linux/netdevice.h>

void probe(struct net_device *dev);
void probe(struct net_device *dev) { __netdev_notify_peers(dev); }
