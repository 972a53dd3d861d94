// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Transmit timeouts are reported to an HCA's rdma_netdev. */
#include <rdma/ib_verbs.h>

void probe(const struct rdma_netdev *rdma, struct net_device *dev);
void probe(const struct rdma_netdev *rdma, struct net_device *dev) { rdma->tx_timeout(dev, 0); }
