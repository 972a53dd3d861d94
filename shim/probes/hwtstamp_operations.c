// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Hardware time stamps are set by operations of their own, and not by an ioctl. */
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>

int probe(struct net_device *dev, struct kernel_hwtstamp_config *config, struct netlink_ext_ack *extack);
int probe(struct net_device *dev, struct kernel_hwtstamp_config *config, struct netlink_ext_ack *extack)
{
	int ret = dev->netdev_ops->ndo_hwtstamp_get(dev, config);

	return ret ? ret : dev->netdev_ops->ndo_hwtstamp_set(dev, config, extack);
}
