// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ethtool_ops.get_ringparam() and set_ringparam() get the kernel's own parameters and an extack. */
#include <linux/ethtool.h>

int probe(const struct ethtool_ops *ops, struct net_device *dev, struct ethtool_ringparam *ring,
	  struct kernel_ethtool_ringparam *kernel_ring, struct netlink_ext_ack *extack);
int probe(const struct ethtool_ops *ops, struct net_device *dev, struct ethtool_ringparam *ring,
	  struct kernel_ethtool_ringparam *kernel_ring, struct netlink_ext_ack *extack)
{
	ops->get_ringparam(dev, ring, kernel_ring, extack);
	return ops->set_ringparam(dev, ring, kernel_ring, extack);
}
