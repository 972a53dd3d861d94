// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Compiled to assembler only: sizes and alignments of the kernel objects that C++ objects embed; numbers of the kernel.
 */
#include "objects.h"
#include <linux/errno.h>
#include <linux/kbuild.h>
#include <linux/skbuff.h>

#define OBJECT(name, type)                                                                                             \
	DEFINE(SHIM_SIZEOF_##name, sizeof(type));                                                                      \
	DEFINE(SHIM_ALIGNOF_##name, __alignof__(type))

#define ERRNO(name) DEFINE(SHIM_##name, name)

void shim_layout(void);
void shim_layout(void)
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
	DEFINE(SHIM_NET_IP_ALIGN, NET_IP_ALIGN);
	ERRNO(EPERM);
	ERRNO(ENOENT);
	ERRNO(ENODEV);
	ERRNO(ENOMEM);
	ERRNO(EBUSY);
	ERRNO(EINVAL);
	ERRNO(ENOTUNIQ);
	ERRNO(EOPNOTSUPP);
	ERRNO(ETIMEDOUT);
	ERRNO(EINTR);
	ERRNO(ENETRESET);
	ERRNO(EAGAIN);
	ERRNO(ENETDOWN);
}
