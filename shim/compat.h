/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Differences between kernels, found by the compile probes in shim/probes/ (see <generated/probes.h>), under one name
 * each. Other files test SHIM_HAVE_* only for whole functions or operations.
 */
#pragma once
#include <generated/probes.h>
#include <linux/netdevice.h>

#ifdef SHIM_HAVE_PAGE_POOL_HELPERS
#include <net/page_pool/helpers.h>
#else
#include <net/page_pool.h>
#endif

/* The netdev's ops lock, and the function that sets the MTU under it. */
#ifdef SHIM_HAVE_NETDEV_OPS_LOCK
#include <net/netdev_lock.h>
#define SHIM_SET_MTU(dev, mtu) netif_set_mtu(dev, mtu)
#else
static inline bool netdev_need_ops_lock(const struct net_device *dev) { return false; }
static inline void netdev_lock_ops(struct net_device *dev) {}
static inline void netdev_unlock_ops(struct net_device *dev) {}
#define SHIM_SET_MTU(dev, mtu) dev_set_mtu(dev, mtu)
#endif

/* The network namespace that an HCA is in. */
#ifdef SHIM_HAVE_RDMA_DEV_NET
#define SHIM_HCA_NET(ca) rdma_dev_net(ca)
#else
#define SHIM_HCA_NET(ca) (&init_net)
#endif

/*
 * Receive buffers come from page pools if packets return them there, and pools give fragments. Otherwise they are
 * pages, or fragments of pages, with a reference each.
 */
#if defined(SHIM_HAVE_SKB_RECYCLE) && defined(SHIM_HAVE_PAGE_POOL_FRAGMENTS)
#define SHIM_HAS_PAGE_POOLS 1
#else
#define SHIM_HAS_PAGE_POOLS 0
#include "plain_pages.h"
#endif

/* Up to 6.6 a page pool needs a flag to give fragments of pages. */
#ifdef SHIM_HAVE_POOL_FRAGMENT_FLAG
#define SHIM_POOL_IN_PIECES PP_FLAG_PAGE_FRAG
#else
#define SHIM_POOL_IN_PIECES 0
#endif

/* A page pool's netdev and NAPI context. */
#ifdef SHIM_HAVE_PAGE_POOL_NETDEV
#define SHIM_POOL_OWNER(dev_, napi_) .netdev = (dev_), .napi = (napi_)
#else
#define SHIM_POOL_OWNER(dev_, napi_) .dev = NULL
#endif

/* The sample that net_dim() takes. */
#ifdef SHIM_HAVE_DIM_SAMPLE_POINTER
#define SHIM_DIM_SAMPLE(sample) (&(sample))
#else
#define SHIM_DIM_SAMPLE(sample) (sample)
#endif

/* The core keeps the netdev's statistics, and sums up those of all CPUs. */
#ifdef SHIM_HAVE_PCPU_STAT_TYPE
#define SHIM_HAS_TSTATS(dev) ((dev)->pcpu_stat_type == NETDEV_PCPU_STAT_TSTATS)
#define SHIM_GET_TSTATS(dev, sums) dev_get_tstats64(dev, sums)
#else
#define SHIM_HAS_TSTATS(dev) false
#define SHIM_GET_TSTATS(dev, sums) ((void)0)
#endif

/* Parameters of the callback of a path record query. */
#if defined(SHIM_HAVE_SA_PATH_COUNT_UNSIGNED)
#define SHIM_PATH_CALLBACK_ARGS int status, struct sa_path_rec *record, unsigned int count, void *context
#elif defined(SHIM_HAVE_SA_PATH_COUNT)
#define SHIM_PATH_CALLBACK_ARGS int status, struct sa_path_rec *record, int count, void *context
#else
#define SHIM_PATH_CALLBACK_ARGS int status, struct sa_path_rec *record, void *context
#endif

/* Listening for one service ID: a mask of 0 stands for all bits. */
#ifdef SHIM_HAVE_CM_LISTEN_UNMASKED
#define SHIM_CM_LISTEN(id, service_id) ib_cm_listen(id, service_id)
#else
#define SHIM_CM_LISTEN(id, service_id) ib_cm_listen(id, service_id, 0)
#endif

/* The flags of what an HCA can do for the kernel alone, which were among those that programs see. */
#ifdef SHIM_HAVE_KERNEL_CAP_FLAGS
#define SHIM_KERNEL_CAP_FLAGS(ca) ((ca)->attrs.kernel_cap_flags)
#else
#define SHIM_KERNEL_CAP_FLAGS(ca) ((ca)->attrs.device_cap_flags)
#define IBK_BLOCK_MULTICAST_LOOPBACK IB_DEVICE_BLOCK_MULTICAST_LOOPBACK
#define IBK_UD_TSO IB_DEVICE_UD_TSO
#define IBK_VIRTUAL_FUNCTION IB_DEVICE_VIRTUAL_FUNCTION
#define IBK_RDMA_NETDEV_OPA IB_DEVICE_RDMA_NETDEV_OPA
#endif

/* Changes of NAPI contexts, under the netdev's own lock. */
#ifdef SHIM_HAVE_NAPI_LOCKED
#define SHIM_NAPI_LOCK(dev) netdev_lock_ops_to_full(dev)
#define SHIM_NAPI_UNLOCK(dev) netdev_unlock_full_to_ops(dev)
#define SHIM_NAPI_ENABLE(napi) napi_enable_locked(napi)
#define SHIM_NAPI_DISABLE(napi) napi_disable_locked(napi)
#define SHIM_NAPI_DEL(napi) netif_napi_del_locked(napi)
#else
#define SHIM_NAPI_LOCK(dev) ((void)(dev))
#define SHIM_NAPI_UNLOCK(dev) ((void)(dev))
#define SHIM_NAPI_ENABLE(napi) napi_enable(napi)
#define SHIM_NAPI_DISABLE(napi) napi_disable(napi)
#define SHIM_NAPI_DEL(napi) netif_napi_del(napi)
#endif

/* A NAPI of the usual weight; one that only transmits is not for busy polling. */
#if defined(SHIM_HAVE_NAPI_LOCKED)
#define SHIM_NAPI_ADD(dev, napi, poll) netif_napi_add_locked(dev, napi, poll)
#elif defined(SHIM_HAVE_NAPI_WITHOUT_WEIGHT)
#define SHIM_NAPI_ADD(dev, napi, poll) netif_napi_add(dev, napi, poll)
#else
#define SHIM_NAPI_ADD(dev, napi, poll) netif_napi_add(dev, napi, poll, NAPI_POLL_WEIGHT)
#endif
#define SHIM_NAPI_ADD_TX(dev, napi, poll)                                                                              \
	(set_bit(NAPI_STATE_NO_BUSY_POLL, &(napi)->state), SHIM_NAPI_ADD(dev, napi, poll))

/* A receive queue's NAPI context. */
#ifdef SHIM_HAVE_NETIF_QUEUE_SET_NAPI
#define SHIM_QUEUE_SET_NAPI(dev, queue, napi) netif_queue_set_napi(dev, queue, NETDEV_QUEUE_TYPE_RX, napi)
#else
#define SHIM_QUEUE_SET_NAPI(dev, queue, napi) ((void)(napi))
#endif

/* Maximum segments of a GSO packet. */
#ifdef SHIM_HAVE_TSO_MAX_SEGS
#define SHIM_LIMIT_SEGMENTS(dev, segments) netif_set_tso_max_segs(dev, segments)
#else
#define SHIM_LIMIT_SEGMENTS(dev, segments) WRITE_ONCE((dev)->gso_max_segs, segments)
#endif

/* Maximum bytes of a GSO packet: more than 64 KiB only where the stack can segment such packets. */
#define SHIM_GSO_LEGACY_MAX_SIZE 65536u
#ifdef SHIM_HAVE_BIG_TCP
#define SHIM_LIMIT_GSO_BYTES(dev, bytes) netif_set_tso_max_size(dev, bytes)
#define SHIM_GSO_BYTES_LIMIT(dev) ((dev)->tso_max_size)
#else
#define SHIM_LIMIT_GSO_BYTES(dev, bytes) ((void)(dev), (void)(bytes))
#define SHIM_GSO_BYTES_LIMIT(dev) ((void)(dev), SHIM_GSO_LEGACY_MAX_SIZE)
#endif

/* Packets that a NAPI holds: those that GRO may add to, and those on their way to the stack. */
#if defined(SHIM_HAVE_NAPI_GRO_NODE)
#define SHIM_NAPI_HOLDS(napi) ((napi)->gro.bitmask || (napi)->gro.rx_count)
#elif !defined(SHIM_HAVE_NAPI_RX_LIST)
#define SHIM_NAPI_HOLDS(napi) ((napi)->gro_count)
#else
#define SHIM_NAPI_HOLDS(napi) ((napi)->gro_bitmask || (napi)->rx_count)
#endif

/* Parameters of get_ringparam() and set_ringparam() in ethtool_ops. */
#ifdef SHIM_HAVE_RINGPARAM_EXTACK
#define SHIM_RINGPARAM_ARGS                                                                                            \
	struct net_device *dev, struct ethtool_ringparam *ring, struct kernel_ethtool_ringparam *kernel_ring,          \
		struct netlink_ext_ack *extack
#else
#define SHIM_RINGPARAM_ARGS struct net_device *dev, struct ethtool_ringparam *ring
#endif

/* Parameters of get_coalesce() and set_coalesce() in ethtool_ops. */
#ifdef SHIM_HAVE_COALESCE_EXTACK
#define SHIM_COALESCE_ARGS                                                                                             \
	struct net_device *dev, struct ethtool_coalesce *coalesce, struct kernel_ethtool_coalesce *kernel_coalesce,    \
		struct netlink_ext_ack *extack
#else
#define SHIM_COALESCE_ARGS struct net_device *dev, struct ethtool_coalesce *coalesce
#endif

/* The netdev operation for ioctls of drivers. */
#ifdef SHIM_HAVE_ETH_IOCTL
#define SHIM_NDO_IOCTL ndo_eth_ioctl
#else
#define SHIM_NDO_IOCTL ndo_do_ioctl
#endif

/* Parameters of the netdev operation for transmit timeouts. */
#ifdef SHIM_HAVE_TX_TIMEOUT_QUEUE
#define SHIM_TX_TIMEOUT_ARGS struct net_device *dev, unsigned int queue
#define SHIM_TX_TIMEOUT_QUEUE queue
#else
#define SHIM_TX_TIMEOUT_ARGS struct net_device *dev
#define SHIM_TX_TIMEOUT_QUEUE 0
#endif

/* Tells peers of an address, under RTNL: gratuitous ARP, unsolicited NA, IGMP reports. */
#ifdef SHIM_HAVE_NOTIFY_PEERS_RTNL
#define SHIM_NOTIFY_PEERS(dev) __netdev_notify_peers(dev)
#else
#define SHIM_NOTIFY_PEERS(dev)                                                                                         \
	(call_netdevice_notifiers(NETDEV_NOTIFY_PEERS, dev), call_netdevice_notifiers(NETDEV_RESEND_IGMP, dev))
#endif

/* The minimum limit of byte queue limits. */
#if defined(SHIM_HAVE_DQL_MIN_LIMIT)
#define SHIM_SET_DQL_MIN_LIMIT(queue, bytes) netdev_queue_set_dql_min_limit(queue, bytes)
#elif defined(CONFIG_BQL)
#define SHIM_SET_DQL_MIN_LIMIT(queue, bytes) ((queue)->dql.min_limit = (bytes))
#else
#define SHIM_SET_DQL_MIN_LIMIT(queue, bytes) ((void)(queue))
#endif

/* The number of an HCA's port. */
#ifdef SHIM_HAVE_PORT_U32
typedef u32 shim_port_number;
#else
typedef u8 shim_port_number;
#endif

/* A packet around a buffer. */
#ifdef SHIM_HAVE_NAPI_BUILD_SKB
#define SHIM_BUILD_SKB(buffer, bytes) napi_build_skb(buffer, bytes)
#else
#define SHIM_BUILD_SKB(buffer, bytes) build_skb(buffer, bytes)
#endif

/* Writes a part of the netdev's hardware address. */
#ifdef SHIM_HAVE_DEV_ADDR_MOD
#define SHIM_DEV_ADDR_MOD(dev, offset, address, bytes) dev_addr_mod(dev, offset, address, bytes)
#else
#define SHIM_DEV_ADDR_MOD(dev, offset, address, bytes) memcpy((dev)->dev_addr + (offset), address, bytes)
#endif
