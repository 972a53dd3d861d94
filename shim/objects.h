/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Structures in the storage that C++ objects embed, for shims and layout.c; and declarations that C files share. */
#pragma once
#include <linux/completion.h>
#include <linux/dim.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/rhashtable.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/tso.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>
#include <shim/device.h>

struct shim_work {
	struct delayed_work work;
	void (*run)(void *context);
	void *context;
};

struct shim_hash_node {
	struct rhash_head head;
};

struct shim_napi {
	struct napi_struct napi;
	int (*poll)(void *context, int budget);
	void *context;
};

struct shim_dim {
	struct dim dim;
	void (*apply)(void *context, unsigned int usecs, unsigned int frames);
	void *context;
};

struct shim_tso {
	struct tso_t tso;
};

struct shim_rdma_netdev {
	const struct net_device_ops *ops;
	void (*destructor)(struct net_device *dev);
};

struct shim_send_wr {
	struct ib_ud_wr wr;
};

struct shim_recv_wr {
	struct ib_recv_wr wr;
};

struct shim_event_handler {
	struct ib_event_handler handler;
	void (*on_event)(void *context, unsigned int event, uint32_t port);
	void *context;
};

/* Returns true if this driver created the netdev. */
bool shim_is_ours(const struct net_device *dev);
/* Sets up a netdev, as the callback of all functions that allocate one. */
void shim_netdev_setup(struct net_device *dev);
/*
 * Makes dev a netdev of the rtnetlink kind, and the space and queues that the kind allocates as large as those of the
 * HCA's rdma_netdev. A negative errno: the HCA does not report its size.
 */
int shim_link_use(struct net_device *dev, struct ib_device *ca, u32 port);
void shim_set_ethtool_ops(struct net_device *dev);
void shim_set_stat_ops(struct net_device *dev);
/* Operations of netdevs, and of netdevs of a virtual function; of hard headers; sysfs attributes. */
extern const struct net_device_ops shim_netdev_ops, shim_function_netdev_ops;
extern const struct header_ops shim_header_ops;
extern const struct attribute_group shim_parent_group, shim_child_group;
/* Replaces the core's attribute dev_id by one that calls shim_note_dev_id(). */
void shim_replace_dev_id(struct net_device *dev);

/* Names and operations of the debugfs files, by enum ipoib_debug_file; the directory; and what renames the files. */
struct shim_debugfs_file {
	const char *name;
	const struct file_operations *operations;
};
extern const struct shim_debugfs_file shim_debugfs_files[];
extern struct dentry *shim_debugfs_directory;
extern struct notifier_block shim_netdev_notifier;

extern struct ib_sa_client shim_sa_client;

/* Adds the statistics that struct shim_stats and struct rtnl_link_stats64 share, from one to the other. */
#define SHIM_ADD_STATS(to, from)                                                                                       \
	do {                                                                                                           \
		(to)->rx_packets += (from)->rx_packets;                                                                \
		(to)->rx_bytes += (from)->rx_bytes;                                                                    \
		(to)->rx_errors += (from)->rx_errors;                                                                  \
		(to)->rx_dropped += (from)->rx_dropped;                                                                \
		(to)->multicast += (from)->multicast;                                                                  \
		(to)->tx_packets += (from)->tx_packets;                                                                \
		(to)->tx_bytes += (from)->tx_bytes;                                                                    \
		(to)->tx_errors += (from)->tx_errors;                                                                  \
		(to)->tx_dropped += (from)->tx_dropped;                                                                \
	} while (0)

static inline struct rdma_netdev *shim_rdma_netdev(const struct net_device *dev) { return netdev_priv(dev); }

/* Logs that a program reads the netdev's dev_id. */
void shim_note_dev_id(const struct net_device *dev);

/* Operations of `ip link` for virtual functions. */
struct ifla_vf_info;
struct ifla_vf_stats;
struct ifla_vf_guid;
int shim_set_vf_link_state(struct net_device *dev, int vf, int state);
int shim_get_vf_config(struct net_device *dev, int vf, struct ifla_vf_info *info);
int shim_get_vf_stats(struct net_device *dev, int vf, struct ifla_vf_stats *stats);
int shim_get_vf_guid(struct net_device *dev, int vf, struct ifla_vf_guid *node, struct ifla_vf_guid *port);
int shim_set_vf_guid(struct net_device *dev, int vf, u64 guid, int type);
