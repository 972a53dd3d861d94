// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Compiled to assembler only: sizes and alignments of the kernel objects that C++ objects embed; numbers of the kernel.
 */
#include "compat.h"
#include "objects.h"
#include <linux/errno.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/kbuild.h>
#include <linux/skbuff.h>
#include <rdma/ib_cm.h>
#include <shim/cm.h>
#include <shim/ethtool.h>
#include <shim/skbuff.h>
#include <shim/wr.h>

#define OBJECT(name, type)                                                                                             \
	DEFINE(SHIM_SIZEOF_##name, sizeof(type));                                                                      \
	DEFINE(SHIM_ALIGNOF_##name, __alignof__(type))

#define NUMBER(name) DEFINE(SHIM_##name, name)

/* Numbers and structures of include/shim/ that are the kernel's, or the standard's. */
static_assert(SHIM_CM_REQ_PRIVATE_BYTES == (int)IB_CM_REQ_PRIVATE_DATA_SIZE);
static_assert(SHIM_CM_REP_PRIVATE_BYTES == (int)IB_CM_REP_PRIVATE_DATA_SIZE);
static_assert(SHIM_CM_REJ_NO_QP == (int)IB_CM_REJ_NO_QP);
static_assert(SHIM_CM_REJ_NO_RESOURCES == (int)IB_CM_REJ_NO_RESOURCES);
static_assert(SHIM_CM_REJ_INVALID_TRANSPORT_TYPE == (int)IB_CM_REJ_INVALID_TRANSPORT_TYPE);
static_assert(SHIM_CM_REJ_STALE_CONN == (int)IB_CM_REJ_STALE_CONN);
static_assert(SHIM_CM_REJ_CONSUMER_DEFINED == (int)IB_CM_REJ_CONSUMER_DEFINED);
static_assert(sizeof(struct shim_gid) == sizeof(union ib_gid));
static_assert(sizeof(struct shim_sge) == sizeof(struct ib_sge));
static_assert(offsetof(struct shim_sge, length) == offsetof(struct ib_sge, length));
static_assert(offsetof(struct shim_sge, lkey) == offsetof(struct ib_sge, lkey));
static_assert(SHIM_ETHTOOL_NAME_BYTES == ETH_GSTRING_LEN);
static_assert(SHIM_PACKET_HOST == PACKET_HOST);
static_assert(SHIM_PACKET_BROADCAST == PACKET_BROADCAST);
static_assert(SHIM_PACKET_MULTICAST == PACKET_MULTICAST);

void shim_layout_objects(void);
void shim_layout_objects(void)
{
	OBJECT(SPINLOCK, spinlock_t);
	OBJECT(MUTEX, struct mutex);
	OBJECT(LOCK_CLASS, struct lock_class_key);
	OBJECT(COMPLETION, struct completion);
	OBJECT(WORK, struct shim_work);
	OBJECT(HASH, struct rhashtable);
	OBJECT(HASH_NODE, struct shim_hash_node);
	OBJECT(NETDEV_BATCH, struct list_head);
	OBJECT(NAPI, struct shim_napi);
	OBJECT(DIM, struct shim_dim);
	OBJECT(TSO, struct shim_tso);
	OBJECT(RDMA_NETDEV, struct shim_rdma_netdev);
	OBJECT(SEND_WR, struct shim_send_wr);
	OBJECT(RECV_WR, struct shim_recv_wr);
	OBJECT(WC, struct ib_wc);
	OBJECT(PATH_RECORD, struct sa_path_rec);
	OBJECT(EVENT_HANDLER, struct shim_event_handler);
}

void shim_layout_features(void);
void shim_layout_features(void)
{
	/* The kernel has a library that segments TCP packets. */
#ifdef SHIM_HAVE_TSO_HEADER_LENGTH
	DEFINE(SHIM_HAS_TSO, 1);
#else
	DEFINE(SHIM_HAS_TSO, 0);
#endif
	/* The netdev can select the transmit queue of a packet. */
#ifdef SHIM_HAVE_SELECT_QUEUE
	DEFINE(SHIM_HAS_SELECT_QUEUE, 1);
#else
	DEFINE(SHIM_HAS_SELECT_QUEUE, 0);
#endif
}

void shim_layout_numbers(void);
void shim_layout_numbers(void)
{
	NUMBER(NET_IP_ALIGN);
	NUMBER(EPERM);
	NUMBER(ENOENT);
	NUMBER(ENODEV);
	NUMBER(ENOMEM);
	NUMBER(EBUSY);
	NUMBER(EINVAL);
	NUMBER(ENOTUNIQ);
	NUMBER(EOPNOTSUPP);
	NUMBER(ETIMEDOUT);
	NUMBER(EINTR);
	NUMBER(ENETRESET);
	NUMBER(ECONNRESET);
	NUMBER(EAGAIN);
	NUMBER(GSO_MAX_SIZE);
	NUMBER(IB_CM_REQ_ERROR);
	NUMBER(IB_CM_REQ_RECEIVED);
	NUMBER(IB_CM_REP_ERROR);
	NUMBER(IB_CM_REP_RECEIVED);
	NUMBER(IB_CM_DREQ_ERROR);
	NUMBER(IB_CM_DREQ_RECEIVED);
	NUMBER(IB_CM_DREP_RECEIVED);
	NUMBER(IB_CM_TIMEWAIT_EXIT);
	NUMBER(IB_CM_REJ_RECEIVED);
	NUMBER(IB_EVENT_PORT_ACTIVE);
	NUMBER(IB_EVENT_PORT_ERR);
	NUMBER(IB_EVENT_LID_CHANGE);
	NUMBER(IB_EVENT_PKEY_CHANGE);
	NUMBER(IB_EVENT_CLIENT_REREGISTER);
	NUMBER(IB_EVENT_GID_CHANGE);
	NUMBER(IB_DEVICE_UD_IP_CSUM);
	NUMBER(IB_DEVICE_MANAGED_FLOW_STEERING);
	NUMBER(IBK_UD_TSO);
	NUMBER(IBK_VIRTUAL_FUNCTION);
	NUMBER(IBK_BLOCK_MULTICAST_LOOPBACK);
	NUMBER(IBK_RDMA_NETDEV_OPA);
	NUMBER(IB_QP_CREATE_IPOIB_UD_LSO);
	NUMBER(IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK);
	NUMBER(IB_QP_CREATE_NETIF_QP);
	NUMBER(IB_QP_CREATE_NETDEV_USE);
}
