// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The netdev operation that selects a transmit queue calls the core's own selection by name. */
#include <linux/netdevice.h>

u16 probe(struct net_device *dev, struct sk_buff *skb);
u16 probe(struct net_device *dev, struct sk_buff *skb)
{
	return dev->netdev_ops->ndo_select_queue(dev, skb, dev) + netdev_pick_tx(dev, skb, NULL);
}
