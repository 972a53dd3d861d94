// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The netdev operation for a transmit timeout is given the queue. */
#include <linux/netdevice.h>

void probe(struct net_device *dev);
void probe(struct net_device *dev) { dev->netdev_ops->ndo_tx_timeout(dev, 0); }
