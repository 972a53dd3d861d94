// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Ioctls of network drivers, such as those for time stamps, have an operation of their own. */
#include <linux/netdevice.h>

int probe(struct net_device *dev, struct ifreq *request, int command);
int probe(struct net_device *dev, struct ifreq *request, int command)
{
	return dev->netdev_ops->ndo_eth_ioctl(dev, request, command);
}
