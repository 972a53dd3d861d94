/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The module's start and stop, its parameters, the HCAs that come and go, and the kernel log. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_device;
struct net_device;
struct shim_gid;
struct sockaddr;

/* Module parameters, as given; ipoib_start() writes the values in force back. */
struct shim_parameters {
	int send_queue_size, recv_queue_size, max_nonsrq_conn_qp;
	int debug_level, mcast_debug_level, data_debug_level, cm_data_debug_level;
	/* HCAs' own datapaths are used; the names of HCAs, divided by commas, for which it is the other way round. */
	int ipoib_enhanced;
	char *ipoib_enhanced_except;
};
extern struct shim_parameters shim_parameters ENTRY;

enum shim_level { SHIM_LOG_WARNING, SHIM_LOG_INFO, SHIM_LOG_DEBUG };
/* "ib0: ..." in the kernel log; without dev "ib_ipoib: ...". */
void shim_log(const struct net_device *dev, enum shim_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

int shim_client_register(void);
/* Takes every HCA away first. */
void shim_client_unregister(void);
uint32_t shim_ib_ports(const struct ib_device *ca);
/* The port's link layer is InfiniBand. */
bool shim_ib_port_is_ib(const struct ib_device *ca, uint32_t port);

/* kernel -> C++. CONTEXT: process. */
ENTRY int ipoib_start(void);
ENTRY void ipoib_stop(void);
/* What remove gets as state. */
int ipoib_add_device(struct ib_device *ca, void **state);
void ipoib_remove_device(struct ib_device *ca, void *state);
/* The netdev for which a request came in, held for the caller; gid and address may be NULL. CONTEXT: process. */
struct net_device *ipoib_find_netdev(void *state, uint32_t port, uint16_t pkey, const struct shim_gid *gid,
				     const struct sockaddr *address);

SHIM_END
