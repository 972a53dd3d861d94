/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The module's parameters, start and stop. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

/* Module parameters, as given; ipoib_start() writes the values in force back. */
struct shim_parameters {
	int send_queue_size, recv_queue_size, max_nonsrq_conn_qp;
	int debug_level, mcast_debug_level, data_debug_level, cm_data_debug_level;
	/* HCAs' own datapaths are used; the names of HCAs, divided by commas, for which it is the other way round. */
	int ipoib_enhanced;
	char *ipoib_enhanced_except;
};
extern struct shim_parameters shim_parameters ENTRY;

/* kernel -> C++. CONTEXT: process. */
ENTRY int ipoib_start(void);
ENTRY void ipoib_stop(void);

SHIM_END
