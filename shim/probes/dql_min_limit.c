// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The minimum limit of byte queue limits has a function that sets it. */
#include <linux/netdevice.h>

void probe(struct netdev_queue *queue);
void probe(struct netdev_queue *queue) { netdev_queue_set_dql_min_limit(queue, 0); }
