// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The netdev: allocation, registration, and its fields. */
#include "compat.h"
#include "objects.h"
#include <linux/if_arp.h>
#include <linux/if_infiniband.h>
#include <linux/netdevice.h>
#include <net/arp.h>
#include <rdma/ib_verbs.h>
#include <shim/header_ops.h>
#include <shim/module.h>
#include <shim/ndo.h>
#include <shim/netdevice.h>

void shim_netdev_setup(struct net_device *dev)
{
	dev->netdev_ops = &shim_netdev_ops;
	dev->header_ops = &shim_header_ops;
	shim_set_ethtool_ops(dev);
	shim_set_stat_ops(dev);
	dev->type = ARPHRD_INFINIBAND;
	dev->addr_len = INFINIBAND_ALEN;
	dev->hard_header_len = IPOIB_HEADER_BYTES;
	dev->flags |= IFF_BROADCAST | IFF_MULTICAST;
	/* The rdma_netdev allocates rings of this size. */
	dev->tx_queue_len = 2 * shim_parameters.send_queue_size;
	dev->watchdog_timeo = IPOIB_WATCHDOG_S * HZ;
	dev->features = NETIF_F_VLAN_CHALLENGED | NETIF_F_HIGHDMA;
	/* The maximum of connected mode; ndo_change_mtu checks the limit of the current mode. */
	dev->max_mtu = IPOIB_MAX_MTU;
	dev->sysfs_groups[0] = &shim_parent_group;
	/* Keeps the route: path MTU updates and ICMP errors need it. */
	netif_keep_dst(dev);
}

SHIM unsigned int shim_netdev_real_num_tx_queues(const struct net_device *dev) { return dev->real_num_tx_queues; }
SHIM unsigned int shim_netdev_num_tx_queues(const struct net_device *dev) { return dev->num_tx_queues; }
SHIM unsigned int shim_netdev_num_rx_queues(const struct net_device *dev) { return dev->num_rx_queues; }

SHIM int shim_netif_set_real_num_rx_queues(struct net_device *dev, unsigned int count)
{
	return netif_set_real_num_rx_queues(dev, count);
}

SHIM int shim_netif_set_real_num_tx_queues(struct net_device *dev, unsigned int count)
{
	return netif_set_real_num_tx_queues(dev, count);
}

SHIM void shim_netdev_set_child(struct net_device *dev) { dev->sysfs_groups[0] = &shim_child_group; }

SHIM void shim_netif_set_tso_max_segs(struct net_device *dev, unsigned int segments)
{
	SHIM_LIMIT_SEGMENTS(dev, segments);
}

SHIM void shim_netif_set_tso_max_size(struct net_device *dev, unsigned int bytes) { SHIM_LIMIT_GSO_BYTES(dev, bytes); }

SHIM unsigned int shim_netdev_tso_max_size(const struct net_device *dev) { return SHIM_GSO_BYTES_LIMIT(dev); }

SHIM unsigned int shim_netdev_gso_max_segs(const struct net_device *dev) { return dev->gso_max_segs; }

SHIM void shim_netdev_set_gso_max_segs(struct net_device *dev, unsigned int segments)
{
	/* Sockets read it without a lock. */
	WRITE_ONCE(dev->gso_max_segs, segments);
}

SHIM void *shim_rdma_netdev_clnt_priv(const struct net_device *dev)
{
	return ((const struct rdma_netdev *)netdev_priv(dev))->clnt_priv;
}

SHIM void shim_rdma_netdev_set_clnt_priv(struct net_device *dev, void *owner)
{
	((struct rdma_netdev *)netdev_priv(dev))->clnt_priv = owner;
}

SHIM void shim_unregister_netdevice_queue(struct net_device *dev, void *batch)
{
	unregister_netdevice_queue(dev, batch);
}
SHIM void shim_init_list_head(void *batch) { INIT_LIST_HEAD((struct list_head *)batch); }
SHIM void shim_unregister_netdevice_many(void *batch) { unregister_netdevice_many(batch); }
SHIM void shim_dev_hold(struct net_device *dev) { dev_hold(dev); }
SHIM void shim_dev_put(struct net_device *dev) { dev_put(dev); }
SHIM void shim_free_netdev(struct net_device *dev) { free_netdev(dev); }
SHIM bool shim_netdev_is_ours(const struct net_device *dev) { return shim_is_ours(dev); }
SHIM bool shim_netif_is_bond_slave(const struct net_device *dev) { return netif_is_bond_slave(dev); }
SHIM bool shim_netdev_iff_up(const struct net_device *dev) { return dev->flags & IFF_UP; }

SHIM void shim_dev_change_flags(struct net_device *dev, bool up)
{
	dev_change_flags(dev, up ? dev->flags | IFF_UP : dev->flags & ~IFF_UP, NULL);
}

SHIM bool shim_netdev_need_ops_lock(const struct net_device *dev) { return netdev_need_ops_lock(dev); }
SHIM void shim_netdev_lock_ops(struct net_device *dev) { netdev_lock_ops(dev); }
SHIM void shim_netdev_unlock_ops(struct net_device *dev) { netdev_unlock_ops(dev); }

SHIM bool shim_ns_capable(const struct net_device *dev) { return ns_capable(dev_net(dev)->user_ns, CAP_NET_ADMIN); }

SHIM const char *shim_netdev_name(const struct net_device *dev) { return dev->name; }

SHIM const uint8_t *shim_netdev_dev_addr(const struct net_device *dev) { return dev->dev_addr; }
SHIM bool shim_netdev_addr_set_by_user(const struct net_device *dev) { return dev->addr_assign_type == NET_ADDR_SET; }

SHIM void shim_dev_addr_mod(struct net_device *dev, unsigned int offset, const void *address, unsigned int bytes)
{
	SHIM_DEV_ADDR_MOD(dev, offset, address, bytes);
}

SHIM void shim_netdev_notify_peers(struct net_device *dev) { SHIM_NOTIFY_PEERS(dev); }

SHIM uint8_t *shim_netdev_broadcast(struct net_device *dev) { return dev->broadcast; }
SHIM unsigned int shim_netdev_mtu(const struct net_device *dev) { return READ_ONCE(dev->mtu); }
SHIM void shim_netdev_set_mtu(struct net_device *dev, unsigned int mtu) { WRITE_ONCE(dev->mtu, mtu); }
SHIM int shim_dev_set_mtu(struct net_device *dev, unsigned int mtu) { return SHIM_SET_MTU(dev, mtu); }
SHIM bool shim_netdev_has_rxcsum(const struct net_device *dev) { return dev->features & NETIF_F_RXCSUM; }
SHIM bool shim_netdev_has_gro_hw(const struct net_device *dev) { return dev->features & NETIF_F_GRO_HW; }
SHIM void shim_netdev_update_features(struct net_device *dev) { netdev_update_features(dev); }

SHIM void shim_netif_carrier_on(struct net_device *dev) { netif_carrier_on(dev); }
SHIM void shim_netif_carrier_off(struct net_device *dev) { netif_carrier_off(dev); }

SHIM unsigned long shim_arp_tbl_gc_interval(void) { return READ_ONCE(arp_tbl.gc_interval); }
