/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The rdma_netdev that replaces the client's datapath. */
#pragma once
#include "glue.h"
#include <linux/netdevice.h>

enum { SOFT_SENDS = 128, SOFT_RECEIVES = 256 };

/* Layout of netdev_priv(). The client knows the first member only; its own memory is at clnt_priv. */
struct soft_netdev {
	struct rdma_netdev rn;
	struct net_device *dev;
	struct soft_slot *slot;
	struct ib_pd *pd;
	struct ib_cq *send_cq, *recv_cq;
	struct ib_qp *qp;
	struct napi_struct napi;
	u32 qkey;
	u16 pkey_index;
	/* Under the transmit lock. */
	bool open;
	struct sk_buff **sends;
	u32 send_head, send_tail;
	/* Sends that may be in flight: up to SOFT_SENDS. */
	u32 ring;
	u64 tx_packets, tx_bytes, tx_dropped, tx_errors, tx_queue_stopped;
	/* Used by NAPI while open. */
	struct sk_buff **receives;
	u64 rx_packets, rx_bytes, rx_multicast, rx_dropped, rx_errors;
};

/* CONTEXT: under the transmit lock. */
static inline bool soft_netdev_is_full(const struct soft_netdev *nd)
{
	return nd->send_head - nd->send_tail >= nd->ring;
}

/* Stops the queue, and counts that, if it has no space and runs. CONTEXT: under the transmit lock. */
static inline void soft_netdev_stop_if_full(struct soft_netdev *nd)
{
	if (soft_netdev_is_full(nd) && !netif_queue_stopped(nd->dev)) {
		nd->tx_queue_stopped++;
		netif_stop_queue(nd->dev);
	}
}

/* netdev_ethtool.c: operations that replace the client's; an HCA's first netdev is the parent, which has more. */
void soft_netdev_set_ethtool_ops(struct soft_netdev *nd);
