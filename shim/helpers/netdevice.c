// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Helpers for netdevs and their debugfs files: functions of the C boundary that need control flow or several kernel
 * calls. The comment above each gives the reason.
 */
#include "../compat.h"
#include "../objects.h"
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>
#include <net/sch_generic.h>
#include <rdma/ib_verbs.h>
#include <shim/debugfs.h>
#include <shim/ndo.h>
#include <shim/netdevice.h>
#include <shim/netlink.h>
#include <shim/tx_queue.h>

/*
 * Allocates a netdev whose private area begins with struct rdma_netdev. If the HCA has an rdma_netdev,
 * rdma_alloc_netdev() allocates the space for all of it; otherwise it returns -EOPNOTSUPP.
 */
static struct net_device *alloc_dev(struct ib_device *ca, u32 port, const char *name, unsigned char name_type)
{
	struct net_device *dev = rdma_alloc_netdev(ca, port, RDMA_NETDEV_IPOIB, name, name_type, shim_netdev_setup);
	int ret;

	if (PTR_ERR(dev) == -EOPNOTSUPP)
		dev = alloc_netdev_mqs(sizeof(struct rdma_netdev), name, name_type, shim_netdev_setup,
				       SHIM_MAX_TX_QUEUES, SHIM_MAX_RX_QUEUES);
	if (IS_ERR_OR_NULL(dev))
		return NULL;
	ret = shim_link_use(dev, ca, port);
	if (!ret)
		return dev;
	dev_warn(&ca->dev, "port %u: the size of the HCA's rdma_netdev is not known, error %d\n", port, ret);
	free_netdev(dev);
	return NULL;
}

/* Allocation takes a C callback; the namespace and the parent are set by macros, before anything sees the netdev. */
SHIM struct net_device *shim_helper_alloc_netdev(struct ib_device *ca, uint32_t port)
{
	struct net_device *dev = alloc_dev(ca, port, "ib%d", NET_NAME_UNKNOWN);

	if (!dev)
		return NULL;
	dev_net_set(dev, SHIM_HCA_NET(ca));
	SET_NETDEV_DEV(dev, ca->dev.parent);
	dev->dev_port = dev->dev_id = port - 1;
	return dev;
}

/* Allocation takes a C callback; the namespace is set by a function that is inline in C. */
SHIM struct net_device *shim_helper_alloc_child_netdev(struct ib_device *ca, uint32_t port, struct net_device *parent,
						       const char *name)
{
	struct net_device *dev = alloc_dev(ca, port, name, NET_NAME_USER);

	if (!dev)
		return NULL;
	dev_net_set(dev, dev_net(parent));
	return dev;
}

/* The bits of netdev_features_t differ between kernels; features depend on what the rdma_netdev has set. */
SHIM void shim_helper_netdev_add_features(struct net_device *dev, unsigned int features)
{
	if (features & SHIM_FEATURE_VF)
		dev->netdev_ops = &shim_function_netdev_ops;
	if (features & SHIM_FEATURE_SG)
		dev->features |= NETIF_F_SG;
	if (features & SHIM_FEATURE_IP_CSUM)
		dev->hw_features |= NETIF_F_IP_CSUM | NETIF_F_RXCSUM;
	if (features & SHIM_FEATURE_TSO)
		dev->hw_features |= NETIF_F_TSO;
	/* The core allows TSO only with checksum offload; no HCA is known to have that for IPv6. */
	if (features & SHIM_FEATURE_DRIVER_TSO)
		dev->hw_features |=
			features & SHIM_FEATURE_IP_CSUM ? NETIF_F_TSO : NETIF_F_HW_CSUM | NETIF_F_TSO | NETIF_F_TSO6;
	/* The driver merges, and verifies the checksums of what it merges. */
	if (features & SHIM_FEATURE_GRO_HW)
		dev->hw_features |= NETIF_F_RXCSUM | NETIF_F_GRO_HW;
	dev->features |= dev->hw_features;
}

/* The destructor is set after registration, whose failure would call it; the attribute is made by a macro. */
SHIM int shim_helper_register_netdevice(struct net_device *dev)
{
	int ret = register_netdevice(dev);

	if (ret)
		return ret;
	dev->needs_free_netdev = true;
	dev->priv_destructor = ipoib_netdev_gone;
	if (dev->dev.parent)
		shim_replace_dev_id(dev);
	return 0;
}

/* Callback of netdev_walk_all_upper_dev_rcu(), which stops at the first true. */
static int has_address(struct net_device *dev, struct netdev_nested_priv *wanted)
{
	const struct sockaddr *address = wanted->data;
	struct in_device *in_dev;

	switch (address->sa_family) {
	case AF_INET:
		in_dev = __in_dev_get_rcu(dev);
		return in_dev &&
		       inet_confirm_addr(dev_net(dev), in_dev, 0,
					 ((const struct sockaddr_in *)address)->sin_addr.s_addr, RT_SCOPE_HOST);
	case AF_INET6:
		return IS_ENABLED(CONFIG_IPV6) &&
		       ipv6_chk_addr(dev_net(dev), &((const struct sockaddr_in6 *)address)->sin6_addr, dev, 1);
	default:
		return 0;
	}
}

/* Walks the upper devices under RCU; the kernel's iterator takes a C callback. */
SHIM bool shim_helper_netdev_has_address(struct net_device *dev, const struct sockaddr *address)
{
	struct netdev_nested_priv wanted = { .data = (void *)address };
	bool found;

	rcu_read_lock();
	found = has_address(dev, &wanted) || netdev_walk_all_upper_dev_rcu(dev, has_address, &wanted);
	rcu_read_unlock();
	return found;
}

/* Takes the reference in the RCU read section that found the device. */
SHIM struct net_device *shim_helper_netdev_hold_master(struct net_device *dev)
{
	struct net_device *master;

	rcu_read_lock();
	master = netdev_master_upper_dev_get_rcu(dev);
	/* A VRF is no layer 2 master. */
	if (master && !netif_is_l3_master(master))
		dev = master;
	dev_hold(dev);
	rcu_read_unlock();
	return dev;
}

/* Notifiers know only registered netdevs; the check and the call are one step of every change of address. */
SHIM void shim_helper_notify_changeaddr(struct net_device *dev)
{
	if (dev->reg_state == NETREG_REGISTERED)
		call_netdevice_notifiers(NETDEV_CHANGEADDR, dev);
}

/* netdev_for_each_mc_addr() is a macro, and the list is walked under its lock. */
SHIM void shim_helper_netdev_for_each_mc_addr(struct net_device *dev,
					      void (*visit)(void *context, const uint8_t *address), void *context)
{
	struct netdev_hw_addr *entry;

	netif_addr_lock_bh(dev);
	netdev_for_each_mc_addr(entry, dev)
		visit(context, entry->addr);
	netif_addr_unlock_bh(dev);
}

/* The core may replace the qdisc, and some count on each processor. */
SHIM unsigned int shim_helper_netif_tx_backlog(const struct net_device *dev, unsigned int queue)
{
	__u32 packets, bytes = 0;
	struct Qdisc *qdisc;

	rcu_read_lock();
	qdisc = rcu_dereference(netdev_get_tx_queue(dev, queue)->qdisc);
	if (qdisc->flags & TCQ_F_ONETXQUEUE)
		qdisc_qstats_qlen_backlog(qdisc, &packets, &bytes);
	rcu_read_unlock();
	return bytes;
}

#ifdef SHIM_HAVE_EXTACK_BUFFER
static_assert(SHIM_EXTACK_BYTES == sizeof_field(struct netlink_ext_ack, _msg_buf));

static char *message_buffer(struct netlink_ext_ack *extack) { return extack->_msg_buf; }
#else
/* The kernel keeps a pointer until the message is sent: buffers in turn, many more than simultaneous requests. */
static char *message_buffer(struct netlink_ext_ack *extack)
{
	static char buffers[16][SHIM_EXTACK_BYTES];
	static atomic_t next;

	return buffers[(unsigned int)atomic_inc_return(&next) % ARRAY_SIZE(buffers)];
}
#endif

/* Formats into a buffer whose place depends on the kernel; the variable arguments need C. */
void shim_helper_extack(struct netlink_ext_ack *extack, const char *format, ...)
{
	va_list arguments;
	char *buffer;

	if (!extack)
		return;
	buffer = message_buffer(extack);
	va_start(arguments, format);
	vsnprintf(buffer, SHIM_EXTACK_BYTES, format, arguments);
	va_end(arguments);
	extack->_msg = buffer;
}

/*
 * Looks the name up first: another network namespace may have an interface of the same name. The file operations are
 * made by a macro.
 */
SHIM struct dentry *shim_helper_debugfs_create_file(struct net_device *dev, enum ipoib_debug_file which)
{
	char name[IFNAMSIZ + 8];
	struct dentry *taken;

	snprintf(name, sizeof(name), "%s_%s", dev->name, shim_debugfs_files[which].name);
	taken = debugfs_lookup(name, shim_debugfs_directory);
	if (!IS_ERR_OR_NULL(taken)) {
		dput(taken);
		return NULL;
	}
	return debugfs_create_file(name, 0444, shim_debugfs_directory, dev, shim_debugfs_files[which].operations);
}

/*
 * Creates the directory only if the notifier is registered, which renames the files. Without debugfs there are no
 * files, and that is no error.
 */
SHIM int shim_helper_debugfs_start(void)
{
	int ret = register_netdevice_notifier(&shim_netdev_notifier);

	if (!ret)
		shim_debugfs_directory = debugfs_create_dir("ipoib", NULL);
	return ret;
}

/* The counterpart of shim_helper_debugfs_start(). */
SHIM void shim_helper_debugfs_stop(void)
{
	unregister_netdevice_notifier(&shim_netdev_notifier);
	debugfs_remove_recursive(shim_debugfs_directory);
}
