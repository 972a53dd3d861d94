/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Differences between kernels, found by the probes in probes/. */
#pragma once
#include <generated/probes.h>
#ifdef SHIM_HAVE_HEX_HEADER
#include <linux/hex.h>
#endif
#ifdef SHIM_HAVE_NETDEV_OPS_LOCK
#include <net/netdev_lock.h>
#endif
#include <linux/hrtimer.h>
#include <linux/netdevice.h>
#include <linux/vmalloc.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

/* Memory that is charged to the process that requests it, or the kernel's own. */
static inline gfp_t soft_charged(bool user) { return user ? GFP_KERNEL_ACCOUNT : GFP_KERNEL; }

/* Zeroed; freed by vfree(). Logs nothing on failure: tests make allocations fail. */
static inline void *soft_vzalloc(size_t bytes, bool user)
{
	const gfp_t how = soft_charged(user) | __GFP_ZERO | __GFP_NOWARN;
#ifdef SHIM_HAVE_VMALLOC_WITHOUT_PROT
	return __vmalloc(bytes, how);
#else
	return __vmalloc(bytes, how, PAGE_KERNEL);
#endif
}

#ifdef SHIM_HAVE_ETH_IOCTL
#define SOFT_NDO_IOCTL ndo_eth_ioctl
#else
#define SOFT_NDO_IOCTL ndo_do_ioctl
#endif

/* The number of an HCA's port. */
#ifdef SHIM_HAVE_PORT_U32
typedef u32 soft_port_number;
#else
typedef u8 soft_port_number;
#endif

/* The flags of what an HCA can do for the kernel alone, which were among those that programs see. */
#ifdef SHIM_HAVE_KERNEL_CAP_FLAGS
#define SOFT_KERNEL_CAP_FLAGS(attr) ((attr)->kernel_cap_flags)
#else
#define SOFT_KERNEL_CAP_FLAGS(attr) ((attr)->device_cap_flags)
#define IBK_LOCAL_DMA_LKEY IB_DEVICE_LOCAL_DMA_LKEY
#define IBK_UD_TSO IB_DEVICE_UD_TSO
#define IBK_VIRTUAL_FUNCTION IB_DEVICE_VIRTUAL_FUNCTION
#define IBK_RDMA_NETDEV_OPA IB_DEVICE_RDMA_NETDEV_OPA
#endif

#ifdef SHIM_HAVE_CREATE_CQ_BUNDLE
#define SOFT_CREATE_CQ_LAST struct uverbs_attr_bundle *attrs
#define SOFT_CQ_USER (attrs != NULL)
#else
#define SOFT_CREATE_CQ_LAST struct ib_udata *udata
#define SOFT_CQ_USER (udata != NULL)
#endif

/* The operation that resizes completion queues, which newer kernels have for programs only; a number of entries. */
#ifdef SHIM_HAVE_RESIZE_CQ
#define SOFT_RESIZE_CQ resize_cq
typedef int soft_cqe_count;
#else
#define SOFT_RESIZE_CQ resize_user_cq
typedef unsigned int soft_cqe_count;
#endif

#ifdef SHIM_HAVE_REG_USER_MR_DMAH
#define SOFT_REG_USER_MR_ARGS                                                                                          \
	struct ib_pd *pd, u64 start, u64 length, u64 address, int access, struct ib_dmah *dmah, struct ib_udata *udata
#else
#define SOFT_REG_USER_MR_ARGS struct ib_pd *pd, u64 start, u64 length, u64 address, int access, struct ib_udata *udata
#endif

/* Pins memory of the process that makes the request. */
static inline struct ib_umem *soft_umem_get(struct ib_device *ib, struct ib_udata *udata, u64 start, u64 length,
					    int access)
{
#if defined(SHIM_HAVE_UMEM_GET_VA)
	return ib_umem_get_va(ib, start, length, access);
#elif defined(SHIM_HAVE_UMEM_GET_DEVICE)
	return ib_umem_get(ib, start, length, access);
#else
	return ib_umem_get(udata, start, length, access);
#endif
}

/* Visits the pages of such memory with a struct sg_page_iter. */
#ifdef SHIM_HAVE_UMEM_SGT_APPEND
#define soft_umem_for_each_page(umem, page) for_each_sgtable_page(&(umem)->sgt_append.sgt, page, 0)
#else
#define soft_umem_for_each_page(umem, page) for_each_sg_page((umem)->sg_head.sgl, page, (umem)->sg_nents, 0)
#endif

/* A timer that runs in softirq context. */
static inline void soft_hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*run)(struct hrtimer *))
{
#ifdef SHIM_HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, run, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	timer->function = run;
#endif
}

/* A NAPI of the usual weight; one that only transmits is not for busy polling. */
#ifdef SHIM_HAVE_NAPI_WITHOUT_WEIGHT
#define SOFT_NAPI_ADD(dev, napi, poll) netif_napi_add(dev, napi, poll)
#define SOFT_NAPI_ADD_TX(dev, napi, poll) netif_napi_add_tx(dev, napi, poll)
#else
#define SOFT_NAPI_ADD(dev, napi, poll) netif_napi_add(dev, napi, poll, NAPI_POLL_WEIGHT)
#define SOFT_NAPI_ADD_TX(dev, napi, poll)                                                                              \
	(set_bit(NAPI_STATE_NO_BUSY_POLL, &(napi)->state), SOFT_NAPI_ADD(dev, napi, poll))
#endif

/* Writes a part of the netdev's hardware address. */
#ifdef SHIM_HAVE_DEV_ADDR_MOD
#define SOFT_DEV_ADDR_MOD(dev, offset, address, bytes) dev_addr_mod(dev, offset, address, bytes)
#else
#define SOFT_DEV_ADDR_MOD(dev, offset, address, bytes) memcpy((dev)->dev_addr + (offset), address, bytes)
#endif

/* Has transmit timeouts reported to the rdma_netdev, if the kernel does so. */
#ifdef SHIM_HAVE_RDMA_NETDEV_TIMEOUT
#define SOFT_SET_TX_TIMEOUT(rn, report) ((rn)->tx_timeout = (report))
#else
#define SOFT_SET_TX_TIMEOUT(rn, report) ((void)(report))
#endif

/* Parameters of get_ringparam() and set_ringparam() in ethtool_ops. */
#ifdef SHIM_HAVE_RINGPARAM_EXTACK
#define SOFT_RINGPARAM_ARGS                                                                                            \
	struct net_device *dev, struct ethtool_ringparam *ring, struct kernel_ethtool_ringparam *kernel_ring,          \
		struct netlink_ext_ack *extack
#else
#define SOFT_RINGPARAM_ARGS struct net_device *dev, struct ethtool_ringparam *ring
#endif

/*
 * Statistics of a netdev that leaves them to the core, as Omni-Path's driver does. The core keeps counters of each CPU,
 * or it has only those of the netdev, in which two CPUs may lose a count.
 */
#ifdef SHIM_HAVE_PCPU_STAT_TYPE
#define SOFT_USE_CORE_STATS(dev) ((dev)->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS)
#define SOFT_COUNT_TX(dev, bytes) dev_sw_netstats_tx_add(dev, 1, bytes)
#define SOFT_COUNT_RX(dev, bytes) dev_sw_netstats_rx_add(dev, bytes)
#else
#define SOFT_USE_CORE_STATS(dev) ((void)(dev))
#define SOFT_COUNT_TX(dev, bytes) ((dev)->stats.tx_packets++, (dev)->stats.tx_bytes += (bytes))
#define SOFT_COUNT_RX(dev, bytes) ((dev)->stats.rx_packets++, (dev)->stats.rx_bytes += (bytes))
#endif

/*
 * The rdma_netdev's operations run under its netdev's instance lock on kernels that have one, as mlx5's do. Earlier
 * kernels have no NAPI functions for callers that hold the lock.
 */
#ifdef SHIM_HAVE_NETDEV_OPS_LOCK
static inline void soft_request_ops_lock(struct net_device *dev)
{
	dev->request_ops_lock = true;
	netdev_lockdep_set_classes(dev);
}

static inline void soft_check_ops_lock(struct net_device *dev)
{
	WARN_ONCE(!mutex_is_locked(&dev->lock), "%s: called without the instance lock\n", dev->name);
}
#else
#define netif_napi_add_locked(dev, napi, poll) SOFT_NAPI_ADD(dev, napi, poll)
#define netif_napi_del_locked(napi) netif_napi_del(napi)
#define napi_enable_locked(napi) napi_enable(napi)
#define napi_disable_locked(napi) napi_disable(napi)
static inline void soft_request_ops_lock(struct net_device *dev) {}
static inline void soft_check_ops_lock(struct net_device *dev) {}
#endif
