// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The part of the module that modpost and the kernel's loader read: parameters, entry points, MODULE_*. Compiled
 * without link-time optimisation, which moves objects out of their sections.
 */
#include "objects.h"
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/rtnetlink.h>
#include <shim/module.h>

struct shim_parameters shim_parameters = {
	.send_queue_size = 128,
	.recv_queue_size = 256,
	.max_nonsrq_conn_qp = 128,
	.ipoib_enhanced = 1,
	.ipoib_enhanced_except = "",
};

#define PARAMETER(name, mode, text)                                                                                    \
	module_param_named(name, shim_parameters.name, int, mode);                                                     \
	MODULE_PARM_DESC(name, text)

PARAMETER(send_queue_size, 0444, "Descriptors in the send ring: a power of two from 128 to 8192 (default 128)");
PARAMETER(recv_queue_size, 0444, "Descriptors in the receive ring: a power of two from 2 to 8192 (default 256)");
PARAMETER(max_nonsrq_conn_qp, 0444, "Connections per interface when the HCA has no shared receive queue (default 128)");
PARAMETER(ipoib_enhanced, 0444,
	  "Use an HCA's rdma_netdev where it has one; with mlx5's there is no connected mode (default 1)");
module_param_named(ipoib_enhanced_except, shim_parameters.ipoib_enhanced_except, charp, 0444);
MODULE_PARM_DESC(ipoib_enhanced_except, "HCAs for which the opposite of ipoib_enhanced holds: mlx5_0,mlx5_2");
PARAMETER(debug_level, 0644, "Trace to the kernel log if > 0");
PARAMETER(mcast_debug_level, 0644, "Trace multicast to the kernel log if > 0");
PARAMETER(data_debug_level, 0644, "Trace every datagram to the kernel log if > 0");
PARAMETER(cm_data_debug_level, 0644, "Trace every packet of connected mode to the kernel log if > 0");

/* Logs the in-tree driver's line for programs that distinguish ports by dev_id. */
void shim_note_dev_id(const struct net_device *dev)
{
	if (dev->dev_port && dev->dev_id == dev->dev_port)
		netdev_info_once(dev,
				 "\"%s\" wants to know my dev_id. Should it look at dev_port instead? See "
				 "Documentation/ABI/testing/sysfs-class-net for more info.\n",
				 current->comm);
}

static int __init start(void) { return ipoib_start(); }
static void __exit stop(void) { ipoib_stop(); }

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("IP over InfiniBand (RFC 4391, 4392, 4755)");
MODULE_AUTHOR("The ib_ipoib developers");
MODULE_VERSION(IPOIB_VERSION);
MODULE_ALIAS_RTNL_LINK("ipoib");
MODULE_LICENSE("Dual BSD/GPL");
