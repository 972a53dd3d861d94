/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An HCA's own datapath for IPoIB (RDMA_NETDEV_IPOIB), for HCAs that have one. The driver adds groups, paths and
 * neighbours to it. Most leave the driver no queues; one that filters the driver's queues calls ipoib_queues_*() from
 * its own netdev operations.
 */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_ah;
struct ib_device;
struct net_device;
struct shim_gid;
struct shim_rdma_netdev;
struct shim_stats;
struct sk_buff;

/*
 * Initialises dev as an rdma_netdev of the HCA and saves the HCA's netdev operations in *state. -EOPNOTSUPP: the HCA
 * has none; dev is unchanged. CONTEXT: process, before registration.
 */
int shim_helper_rdma_netdev_start(struct shim_rdma_netdev *state, struct net_device *dev, struct ib_device *ca,
				  uint32_t port);
/* Calls the HCA's destructor. The netdev is not registered. CONTEXT: process. */
void shim_helper_rdma_netdev_end(struct shim_rdma_netdev *state, struct net_device *dev);

/* Called by the netdev operations of the same names. CONTEXT: RTNL. */
int shim_helper_rdma_netdev_init(const struct shim_rdma_netdev *state, struct net_device *dev);
void shim_helper_rdma_netdev_uninit(const struct shim_rdma_netdev *state, struct net_device *dev);
int shim_helper_rdma_netdev_open(const struct shim_rdma_netdev *state, struct net_device *dev, uint16_t pkey_index);
void shim_helper_rdma_netdev_stop(const struct shim_rdma_netdev *state, struct net_device *dev);
int shim_helper_rdma_netdev_change_mtu(const struct shim_rdma_netdev *state, struct net_device *dev, unsigned int mtu);
void shim_helper_rdma_netdev_tx_timeout(struct net_device *dev, unsigned int queue);
/* Adds the rdma_netdev's statistics to *stats. CONTEXT: any. */
void shim_helper_rdma_netdev_get_stats(const struct shim_rdma_netdev *state, struct net_device *dev,
				       struct shim_stats *stats);
/* Sets the largest IP packet of the link, in bytes. */
void shim_rdma_netdev_set_mtu(struct net_device *dev, unsigned int mtu);
/* Sends the packet, which begins with its encapsulation; consumes it. CONTEXT: under the transmit lock. */
void shim_rdma_netdev_send(struct net_device *dev, struct sk_buff *skb, struct ib_ah *ah, uint32_t qpn);
/* Attach a multicast group, which sets the Q_Key if set_qkey, and detach it. CONTEXT: process. */
int shim_rdma_netdev_attach(struct net_device *dev, struct ib_device *ca, const struct shim_gid *mgid, uint16_t mlid,
			    bool set_qkey, uint32_t qkey);
void shim_rdma_netdev_detach(struct net_device *dev, struct ib_device *ca, const struct shim_gid *mgid, uint16_t mlid);

/* rdma_netdev -> C++: the operations of the driver's own queues. CONTEXT: RTNL. */
int ipoib_queues_init(struct net_device *dev);
void ipoib_queues_uninit(struct net_device *dev);
int ipoib_queues_open(struct net_device *dev);
int ipoib_queues_stop(struct net_device *dev);
/* The netdev's rdma_netdev; NULL: it has none. CONTEXT: any. */
const struct shim_rdma_netdev *ipoib_rdma_netdev(const struct net_device *dev);

SHIM_END
