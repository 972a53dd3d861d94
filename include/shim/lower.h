/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An HCA's own datapath for IPoIB (RDMA_NETDEV_IPOIB), where it has one: the lower half of an interface, which sends
 * and receives; the driver is the upper half then, with groups, paths and neighbours. The driver has no queues of its
 * own, unless the lower half filters those: calls ipoib_queues_*() from within its own operations.
 */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_ah;
struct ib_device;
struct net_device;
struct shim_gid;
struct shim_lower;
struct shim_stats;
struct sk_buff;

/*
 * Makes the netdev an upper half, with what there is to remember of the lower in *lower. -EOPNOTSUPP: the HCA has none,
 * and the netdev is as before. CONTEXT: process, before registration.
 */
int shim_lower_start(struct shim_lower *lower, struct net_device *dev, struct ib_device *ca, uint32_t port);
/* The lower half's end, when the netdev is no longer, or never was, registered. */
void shim_lower_end(struct shim_lower *lower, struct net_device *dev);

/* From within the netdev's operations of the same name. CONTEXT: RTNL. */
int shim_lower_init(const struct shim_lower *lower, struct net_device *dev);
void shim_lower_uninit(const struct shim_lower *lower, struct net_device *dev);
int shim_lower_open(const struct shim_lower *lower, struct net_device *dev, uint16_t pkey_index);
void shim_lower_stop(const struct shim_lower *lower, struct net_device *dev);
int shim_lower_change_mtu(const struct shim_lower *lower, struct net_device *dev, unsigned int mtu);
void shim_lower_tx_timeout(struct net_device *dev);
/* Adds to what is there. CONTEXT: any. */
void shim_lower_get_stats(const struct shim_lower *lower, struct net_device *dev, struct shim_stats *stats);
/* The largest IP packet of the link. */
void shim_lower_set_mtu(struct net_device *dev, unsigned int mtu);
/* Sends the packet, which begins with its encapsulation, and takes it in every case. CONTEXT: under the transmit lock.
 */
void shim_lower_send(struct net_device *dev, struct sk_buff *skb, struct ib_ah *ah, uint32_t qpn);
/* The broadcast group brings the link's Q_Key. CONTEXT: process. */
int shim_lower_attach(struct net_device *dev, struct ib_device *ca, const struct shim_gid *mgid, uint16_t mlid,
		      bool set_qkey, uint32_t qkey);
void shim_lower_detach(struct net_device *dev, struct ib_device *ca, const struct shim_gid *mgid, uint16_t mlid);

/* lower half -> C++: the operations of the driver's own queues. CONTEXT: RTNL. */
int ipoib_queues_init(struct net_device *dev);
void ipoib_queues_uninit(struct net_device *dev);
int ipoib_queues_open(struct net_device *dev);
int ipoib_queues_stop(struct net_device *dev);
/* The netdev's lower half; NULL: it has none. CONTEXT: any. */
const struct shim_lower *ipoib_lower_half(const struct net_device *dev);

SHIM_END
