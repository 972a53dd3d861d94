// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Calls of an HCA's rdma_netdev that need no check; the others are in helpers/rdma_netdev.c. */
#include "objects.h"
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>
#include <shim/rdma_netdev.h>

SHIM void shim_rdma_netdev_set_mtu(struct net_device *dev, unsigned int mtu) { shim_rdma_netdev(dev)->mtu = mtu; }

SHIM void shim_rdma_netdev_send(struct net_device *dev, struct sk_buff *skb, struct ib_ah *ah, uint32_t qpn)
{
	shim_rdma_netdev(dev)->send(dev, skb, ah, qpn);
}

SHIM int shim_rdma_netdev_attach(struct net_device *dev, struct ib_device *ca, const struct shim_gid *mgid,
				 uint16_t mlid, bool set_qkey, uint32_t qkey)
{
	return shim_rdma_netdev(dev)->attach_mcast(dev, ca, (union ib_gid *)mgid, mlid, set_qkey, qkey);
}

SHIM void shim_rdma_netdev_detach(struct net_device *dev, struct ib_device *ca, const struct shim_gid *mgid,
				  uint16_t mlid)
{
	shim_rdma_netdev(dev)->detach_mcast(dev, ca, (union ib_gid *)mgid, mlid);
}
