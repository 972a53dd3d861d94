// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ethtool_ops.get_coalesce() and set_coalesce() get the kernel's own parameters and an extack. */
#include <linux/ethtool.h>

int probe(const struct ethtool_ops *ops, struct net_device *dev, struct ethtool_coalesce *coalesce,
	  struct kernel_ethtool_coalesce *kernel_coalesce, struct netlink_ext_ack *extack);
int probe(const struct ethtool_ops *ops, struct net_device *dev, struct ethtool_coalesce *coalesce,
	  struct kernel_ethtool_coalesce *kernel_coalesce, struct netlink_ext_ack *extack)
{
	int ret = ops->get_coalesce(dev, coalesce, kernel_coalesce, extack);

	return ret ? ret : ops->set_coalesce(dev, coalesce, kernel_coalesce, extack);
}
