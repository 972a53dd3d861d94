// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The core says in process context that the lists of addresses have changed. */
#include <linux/netdevice.h>

struct net_device_ops probe(int (*set)(struct net_device *, struct netdev_hw_addr_list *,
				       struct netdev_hw_addr_list *));
struct net_device_ops probe(int (*set)(struct net_device *, struct netdev_hw_addr_list *, struct netdev_hw_addr_list *))
{
	return (struct net_device_ops){ .ndo_set_rx_mode_async = set };
}
