/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Statistics of the netdev's queues, as netdev-genl shows them (qstats-get). */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;

/* stops: of a transmit queue. */
struct shim_queue_stats {
	uint64_t packets, bytes, stops;
};
enum shim_queue_direction { SHIM_QUEUE_RX, SHIM_QUEUE_TX };

/*
 * Sums up what the queues from first to before end have counted. Returns false if they are the HCA's rdma_netdev's.
 * CONTEXT: RTNL, or the ops lock.
 */
bool ipoib_queue_stats(const struct net_device *dev, enum shim_queue_direction direction, unsigned int first,
		       unsigned int end, struct shim_queue_stats *stats);

SHIM_END
