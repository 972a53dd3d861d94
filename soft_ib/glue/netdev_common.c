// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Functions of both kinds of rdma_netdev. */
#include "compat.h"
#include "glue.h"
#include <linux/net_tstamp.h>
#include <linux/skbuff.h>
#include <linux/sockios.h>
#include <linux/uaccess.h>

void soft_netdev_set_headers(struct sk_buff *skb)
{
	skb->protocol = *(__be16 *)skb->data;
	memset(skb_push(skb, SOFT_PSEUDO_HEADER_BYTES), 0, SOFT_PSEUDO_HEADER_BYTES);
	skb_reset_mac_header(skb);
	skb_pull(skb, SOFT_PSEUDO_HEADER_BYTES + SOFT_ENCAPSULATION_BYTES);
}

int soft_netdev_may(struct ib_device *ib, enum rdma_netdev_t type)
{
	struct soft_slot *slot = to_hca(ib)->slot;
	u32 fails;

	if (type != RDMA_NETDEV_IPOIB)
		return -EOPNOTSUPP;
	fails = READ_ONCE(slot->fail_rdma_netdev);
	WRITE_ONCE(slot->fail_rdma_netdev, fails >> 1);
	return fails & 1 ? -ENOMEM : 0;
}

int soft_netdev_ioctl(struct net_device *dev, struct ifreq *request, int command)
{
	struct hwtstamp_config config = {};

	if (command != SIOCSHWTSTAMP && command != SIOCGHWTSTAMP)
		return -EOPNOTSUPP;
	if (command == SIOCSHWTSTAMP && copy_from_user(&config, request->ifr_data, sizeof(config)))
		return -EFAULT;
	if (config.tx_type != HWTSTAMP_TX_OFF || config.rx_filter != HWTSTAMP_FILTER_NONE)
		return -ERANGE;
	return copy_to_user(request->ifr_data, &config, sizeof(config)) ? -EFAULT : 0;
}
