// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The netdev operations: calls of the core that go to ipoib_ndo_*(), or to the HCA's rdma_netdev. */
#include "compat.h"
#include "objects.h"
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>
#include <shim/ndo.h>
#include <shim/netlink.h>
#include <shim/rdma_netdev.h>
#include <shim/tso.h>

static netdev_tx_t start_xmit(struct sk_buff *skb, struct net_device *dev)
{
	ipoib_ndo_start_xmit(skb, dev);
	return NETDEV_TX_OK;
}

#ifdef SHIM_HAVE_SELECT_QUEUE
static u16 select_queue(struct net_device *dev, struct sk_buff *skb, struct net_device *sb_dev)
{
	int queue = ipoib_ndo_select_queue(skb, dev);

	return queue >= 0 ? (u16)queue : netdev_pick_tx(dev, skb, sb_dev);
}
#define SELECT_QUEUE .ndo_select_queue = select_queue,
#else
#define SELECT_QUEUE
#endif

static void tx_timeout(SHIM_TX_TIMEOUT_ARGS) { ipoib_ndo_tx_timeout(dev, SHIM_TX_TIMEOUT_QUEUE); }

/* The core passes *stats as zeros. */
static void get_stats64(struct net_device *dev, struct rtnl_link_stats64 *stats)
{
	struct shim_stats sums = {};

	ipoib_ndo_get_stats(dev, &sums);
	SHIM_ADD_STATS(stats, &sums);
}

static netdev_features_t fix_features(struct net_device *dev, netdev_features_t features)
{
	if (!ipoib_offloads_sends(dev))
		features &= ~NETIF_F_ALL_TSO;
	/* A user who turns GRO off expects packets as they came off the wire. */
	if (!(features & NETIF_F_GRO))
		features &= ~NETIF_F_GRO_HW;
	return ipoib_offers_checksums(dev) ? features : features & ~NETIF_F_CSUM_MASK;
}

static bool is_left_to_the_stack(const struct sk_buff *skb, const struct net_device *dev)
{
	const struct skb_shared_info *info = skb_shinfo(skb);

	/* Long IPv6 extension headers; more than 64 KiB, by a socket that was opened in connected mode. */
	if (skb_network_header_len(skb) > SHIM_TSO_NETWORK_HEADERS || skb->len > SHIM_GSO_LEGACY_MAX_SIZE)
		return true;
	/* The network header of a packet socket's packet may lie in the hardware address. */
	if (skb_network_offset(skb) != dev->hard_header_len)
		return true;
	/* Kernels before 6.19 compare the number with the limit before they count a virtual machine's segments. */
	return !info->gso_segs && DIV_ROUND_UP(skb->len, info->gso_size) > dev->gso_max_segs;
}

/* Leaves the segmentation of some packets to the stack. */
static netdev_features_t features_check(struct sk_buff *skb, struct net_device *dev, netdev_features_t features)
{
	if (skb_is_gso(skb) && unlikely(is_left_to_the_stack(skb, dev)))
		features &= ~NETIF_F_GSO_MASK;
	return features;
}

/* Time stamps, if the rdma_netdev supports them: by ioctl, or by the operations that replace it from 6.6 on. */
static int driver_ioctl(struct net_device *dev, struct ifreq *request, int command)
{
	const struct shim_rdma_netdev *state = ipoib_rdma_netdev(dev);

	if (!state || !state->ops->SHIM_NDO_IOCTL)
		return -EOPNOTSUPP;
	return state->ops->SHIM_NDO_IOCTL(dev, request, command);
}

#ifdef SHIM_HAVE_HWTSTAMP_OPERATIONS
/*
 * The core tries the ioctl only of netdevs without the operations, which an rdma_netdev may lack (mlx5 in 6.6 to 6.14).
 * A request by netlink has no ifreq.
 */
static int hwtstamp_by_ioctl(struct net_device *dev, struct kernel_hwtstamp_config *config, int command)
{
	int ret = config->ifr ? driver_ioctl(dev, config->ifr, command) : -EOPNOTSUPP;

	if (!ret)
		config->copied_to_user = true;
	return ret;
}

static int hwtstamp_get(struct net_device *dev, struct kernel_hwtstamp_config *config)
{
	const struct shim_rdma_netdev *state = ipoib_rdma_netdev(dev);

	if (!state || !state->ops->ndo_hwtstamp_get)
		return hwtstamp_by_ioctl(dev, config, SIOCGHWTSTAMP);
	return state->ops->ndo_hwtstamp_get(dev, config);
}

static int hwtstamp_set(struct net_device *dev, struct kernel_hwtstamp_config *config, struct netlink_ext_ack *extack)
{
	const struct shim_rdma_netdev *state = ipoib_rdma_netdev(dev);

	if (!state || !state->ops->ndo_hwtstamp_set)
		return hwtstamp_by_ioctl(dev, config, SIOCSHWTSTAMP);
	return state->ops->ndo_hwtstamp_set(dev, config, extack);
}
#define TIME_STAMPS .SHIM_NDO_IOCTL = driver_ioctl, .ndo_hwtstamp_get = hwtstamp_get, .ndo_hwtstamp_set = hwtstamp_set
#else
#define TIME_STAMPS .SHIM_NDO_IOCTL = driver_ioctl
#endif

static int get_iflink(const struct net_device *dev) { return READ_ONCE(ipoib_link_parent(dev)->ifindex); }

static int set_mac_address(struct net_device *dev, void *address)
{
	return ipoib_ndo_set_address(dev, (const u8 *)((struct sockaddr_storage *)address)->__data);
}

#ifdef SHIM_HAVE_SET_RX_MODE_ASYNC
static int set_rx_mode(struct net_device *dev, struct netdev_hw_addr_list *unicast,
		       struct netdev_hw_addr_list *multicast)
{
	ipoib_ndo_set_rx_mode(dev);
	return 0;
}
#define SET_RX_MODE .ndo_set_rx_mode_async = set_rx_mode
#else
#define SET_RX_MODE .ndo_set_rx_mode = ipoib_ndo_set_rx_mode
#endif

/* Operations of both kinds of netdev. */
#define OPERATIONS                                                                                                     \
	.ndo_init = ipoib_ndo_init, .ndo_uninit = ipoib_ndo_uninit, .ndo_open = ipoib_ndo_open,                        \
	.ndo_stop = ipoib_ndo_stop, SELECT_QUEUE.ndo_start_xmit = start_xmit, .ndo_change_mtu = ipoib_ndo_change_mtu,  \
	.ndo_fix_features = fix_features, .ndo_features_check = features_check, .ndo_tx_timeout = tx_timeout,          \
	.ndo_get_stats64 = get_stats64, .ndo_get_iflink = get_iflink, SET_RX_MODE, TIME_STAMPS

const struct net_device_ops shim_netdev_ops = {
	OPERATIONS,
	.ndo_set_mac_address = set_mac_address,
	.ndo_set_vf_link_state = shim_set_vf_link_state,
	.ndo_get_vf_config = shim_get_vf_config,
	.ndo_get_vf_stats = shim_get_vf_stats,
	.ndo_get_vf_guid = shim_get_vf_guid,
	.ndo_set_vf_guid = shim_set_vf_guid,
};

/* A virtual function has no virtual functions, and its host sets its GUID. */
const struct net_device_ops shim_function_netdev_ops = { OPERATIONS };

bool shim_is_ours(const struct net_device *dev)
{
	return dev->netdev_ops == &shim_netdev_ops || dev->netdev_ops == &shim_function_netdev_ops;
}
