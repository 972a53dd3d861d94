/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The module's parameters, start and stop. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

/* Module parameters; ipoib_start() replaces invalid values. */
struct shim_parameters {
	int send_queue_size, recv_queue_size, max_nonsrq_conn_qp;
	int debug_level, mcast_debug_level, data_debug_level, cm_data_debug_level;
	/* Whether an HCA's rdma_netdev is used; comma-separated HCAs for which the opposite holds. */
	int ipoib_enhanced;
	char *ipoib_enhanced_except;
};
extern struct shim_parameters shim_parameters ENTRY;

/* kernel -> C++. CONTEXT: process. */
ENTRY int ipoib_start(void);
ENTRY void ipoib_stop(void);

SHIM_END
