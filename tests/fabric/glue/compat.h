/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Differences between kernels, found by the probes in probes/. */
#pragma once
#include <generated/probes.h>
#ifdef HAVE_HEX_HEADER
#include <linux/hex.h>
#endif
#ifdef HAVE_NETDEV_OPS_LOCK
#include <net/netdev_lock.h>
#endif
#include <linux/hrtimer.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#ifdef HAVE_CREATE_CQ_BUNDLE
#define SOFT_CREATE_CQ_LAST struct uverbs_attr_bundle *attrs
#else
#define SOFT_CREATE_CQ_LAST struct ib_udata *udata
#endif

#ifdef HAVE_REG_USER_MR_DMAH
#define SOFT_REG_USER_MR_ARGS                                                                                          \
	struct ib_pd *pd, u64 start, u64 length, u64 address, int access, struct ib_dmah *dmah, struct ib_udata *udata
#else
#define SOFT_REG_USER_MR_ARGS struct ib_pd *pd, u64 start, u64 length, u64 address, int access, struct ib_udata *udata
#endif

static inline struct ib_umem *soft_umem_get(struct ib_device *ib, u64 start, u64 length, int access)
{
#ifdef HAVE_UMEM_GET_VA
	return ib_umem_get_va(ib, start, length, access);
#else
	return ib_umem_get(ib, start, length, access);
#endif
}

/* A timer that runs in softirq context. */
static inline void soft_hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*run)(struct hrtimer *))
{
#ifdef HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, run, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	timer->function = run;
#endif
}

/*
 * The rdma_netdev's operations run under its netdev's instance lock on kernels that have one, as mlx5's do. Earlier
 * kernels have no NAPI functions for callers that hold the lock.
 */
#ifdef HAVE_NETDEV_OPS_LOCK
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
#define netif_napi_add_locked(dev, napi, poll) netif_napi_add(dev, napi, poll)
#define netif_napi_del_locked(napi) netif_napi_del(napi)
#define napi_enable_locked(napi) napi_enable(napi)
#define napi_disable_locked(napi) napi_disable(napi)
static inline void soft_request_ops_lock(struct net_device *dev) {}
static inline void soft_check_ops_lock(struct net_device *dev) {}
#endif
