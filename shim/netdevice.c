// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "compat.h"
#include "objects.h"
#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_infiniband.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/sysfs.h>
#include <net/addrconf.h>
#include <net/arp.h>
#include <net/busy_poll.h>
#include <net/neighbour.h>
#include <rdma/ib_verbs.h>
#include <shim/module.h>
#include <shim/netdevice.h>
#include <shim/netlink.h>
#include <shim/rdma_netdev.h>
#include <shim/tso.h>
#include <shim/verbs.h>

static netdev_tx_t start_xmit(struct sk_buff *skb, struct net_device *dev)
{
	ipoib_ndo_start_xmit(skb, dev);
	return NETDEV_TX_OK;
}

static void tx_timeout(struct net_device *dev, unsigned int queue) { ipoib_ndo_tx_timeout(dev); }

static void get_stats64(struct net_device *dev, struct rtnl_link_stats64 *stats)
{
	struct shim_stats sums = {};

	ipoib_ndo_get_stats(dev, &sums);
	stats->rx_packets = sums.rx_packets;
	stats->rx_bytes = sums.rx_bytes;
	stats->rx_errors = sums.rx_errors;
	stats->rx_dropped = sums.rx_dropped;
	stats->multicast = sums.multicast;
	stats->tx_packets = sums.tx_packets;
	stats->tx_bytes = sums.tx_bytes;
	stats->tx_errors = sums.tx_errors;
	stats->tx_dropped = sums.tx_dropped;
}

static netdev_features_t fix_features(struct net_device *dev, netdev_features_t features)
{
	if (!ipoib_offloads_sends(dev))
		features &= ~NETIF_F_ALL_TSO;
	return ipoib_leaves_checksums(dev) ? features : features & ~NETIF_F_CSUM_MASK;
}

/* A packet whose extension headers leave no room for those of TCP is for the stack to cut. */
static netdev_features_t features_check(struct sk_buff *skb, struct net_device *dev, netdev_features_t features)
{
	if (skb_is_gso(skb) && unlikely(skb_network_header_len(skb) > SHIM_TSO_NETWORK_HEADERS))
		features &= ~NETIF_F_GSO_MASK;
	return features;
}

/* Time stamps of packets, where the rdma_netdev has them: by ioctl, or by operations of their own. */
static int eth_ioctl(struct net_device *dev, struct ifreq *request, int command)
{
	const struct shim_rdma_netdev *state = ipoib_rdma_netdev(dev);

	if (!state || !state->ops->ndo_eth_ioctl)
		return -EOPNOTSUPP;
	return state->ops->ndo_eth_ioctl(dev, request, command);
}

#ifdef HAVE_HWTSTAMP_OPERATIONS
static int hwtstamp_get(struct net_device *dev, struct kernel_hwtstamp_config *config)
{
	const struct shim_rdma_netdev *state = ipoib_rdma_netdev(dev);

	if (!state || !state->ops->ndo_hwtstamp_get)
		return -EOPNOTSUPP;
	return state->ops->ndo_hwtstamp_get(dev, config);
}

static int hwtstamp_set(struct net_device *dev, struct kernel_hwtstamp_config *config, struct netlink_ext_ack *extack)
{
	const struct shim_rdma_netdev *state = ipoib_rdma_netdev(dev);

	if (!state || !state->ops->ndo_hwtstamp_set)
		return -EOPNOTSUPP;
	return state->ops->ndo_hwtstamp_set(dev, config, extack);
}
#define TIME_STAMPS .ndo_eth_ioctl = eth_ioctl, .ndo_hwtstamp_get = hwtstamp_get, .ndo_hwtstamp_set = hwtstamp_set
#else
#define TIME_STAMPS .ndo_eth_ioctl = eth_ioctl
#endif

static int get_iflink(const struct net_device *dev) { return READ_ONCE(ipoib_link_parent(dev)->ifindex); }

static int set_mac_address(struct net_device *dev, void *address)
{
	return ipoib_ndo_set_address(dev, (const u8 *)((struct sockaddr_storage *)address)->__data);
}

#ifdef HAVE_SET_RX_MODE_ASYNC
static int set_rx_mode(struct net_device *dev, struct netdev_hw_addr_list *unicast,
		       struct netdev_hw_addr_list *multicast)
{
	ipoib_ndo_set_rx_mode(dev);
	return 0;
}
#define SET_RX_MODE .ndo_set_rx_mode_async = set_rx_mode
#else
#define SET_RX_MODE .ndo_set_rx_mode = ipoib_ndo_set_rx_mode
#endif

/* What both kinds of netdev have. */
#define OPERATIONS                                                                                                     \
	.ndo_init = ipoib_ndo_init, .ndo_uninit = ipoib_ndo_uninit, .ndo_open = ipoib_ndo_open,                        \
	.ndo_stop = ipoib_ndo_stop, .ndo_start_xmit = start_xmit, .ndo_change_mtu = ipoib_ndo_change_mtu,              \
	.ndo_fix_features = fix_features, .ndo_features_check = features_check, .ndo_tx_timeout = tx_timeout,          \
	.ndo_get_stats64 = get_stats64, .ndo_get_iflink = get_iflink, SET_RX_MODE, TIME_STAMPS

static const struct net_device_ops netdev_ops = {
	OPERATIONS,
	.ndo_set_mac_address = set_mac_address,
	.ndo_set_vf_link_state = shim_set_vf_link_state,
	.ndo_get_vf_config = shim_get_vf_config,
	.ndo_get_vf_stats = shim_get_vf_stats,
	.ndo_get_vf_guid = shim_get_vf_guid,
	.ndo_set_vf_guid = shim_set_vf_guid,
};

/* A virtual function has none of its own, and its GUID is its host's to choose. */
static const struct net_device_ops function_ops = { OPERATIONS };

bool shim_is_ours(const struct net_device *dev)
{
	return dev->netdev_ops == &netdev_ops || dev->netdev_ops == &function_ops;
}

static int header_create(struct sk_buff *skb, struct net_device *dev, unsigned short type, const void *daddr,
			 const void *saddr, unsigned int len)
{
	return ipoib_header_create(skb, type, daddr);
}

/* The header that all packets to a neighbour begin with is kept with it, for the stack to copy. */
static u8 *cached_header(struct hh_cache *cache) { return (u8 *)cache->hh_data + HH_DATA_OFF(IPOIB_HEADER_BYTES); }

static int header_cache(const struct neighbour *neighbour, struct hh_cache *cache, __be16 type)
{
	ipoib_header_write(cached_header(cache), be16_to_cpu(type), neighbour->ha);
	/* Read without a lock by neigh_output(). */
	smp_store_release(&cache->hh_len, IPOIB_HEADER_BYTES);
	return 0;
}

static void header_cache_update(struct hh_cache *cache, const struct net_device *dev, const unsigned char *address)
{
	ipoib_header_set_destination(cached_header(cache), address);
}

static const struct header_ops header_ops = {
	.create = header_create,
	.cache = header_cache,
	.cache_update = header_cache_update,
};

#define SHOW(name, upper)                                                                                              \
	static ssize_t name##_show(struct device *d, struct device_attribute *attr, char *buf)                         \
	{                                                                                                              \
		return ipoib_attribute_show(to_net_dev(d), IPOIB_ATTRIBUTE_##upper, buf);                              \
	}
/*
 * A netdev's files are removed with RTNL held, which waits for writers whose protection is active: none may take RTNL,
 * nor release it when that has a child wait for it at its end. Instead the netdev's end, without RTNL, waits for the
 * reference.
 */
static ssize_t store(struct device *d, struct device_attribute *attr, enum ipoib_attribute which, const char *buf,
		     size_t count)
{
	struct net_device *dev = to_net_dev(d);
	struct kernfs_node *file;
	ssize_t ret = -ENODEV;

	dev_hold(dev);
	file = sysfs_break_active_protection(&d->kobj, &attr->attr);
	rtnl_lock();
	if (dev->reg_state == NETREG_REGISTERED)
		ret = ipoib_attribute_store(dev, which, buf, count);
	rtnl_unlock();
	if (file)
		sysfs_unbreak_active_protection(file);
	dev_put(dev);
	return ret;
}

#define STORE(name, upper)                                                                                             \
	static ssize_t name##_store(struct device *d, struct device_attribute *attr, const char *buf, size_t count)    \
	{                                                                                                              \
		return store(d, attr, IPOIB_ATTRIBUTE_##upper, buf, count);                                            \
	}

SHOW(mode, MODE)
STORE(mode, MODE)
static DEVICE_ATTR_RW(mode);
SHOW(pkey, PKEY)
static DEVICE_ATTR_RO(pkey);
SHOW(umcast, UMCAST)
STORE(umcast, UMCAST)
static DEVICE_ATTR_RW(umcast);
STORE(create_child, CREATE_CHILD)
static DEVICE_ATTR_WO(create_child);
STORE(delete_child, DELETE_CHILD)
static DEVICE_ATTR_WO(delete_child);
SHOW(parent, PARENT)
static DEVICE_ATTR_RO(parent);

/* In the place of the core's. */
static ssize_t dev_id_show(struct device *d, struct device_attribute *attr, char *buf)
{
	shim_note_dev_id(to_net_dev(d));
	return sysfs_emit(buf, "%#x\n", to_net_dev(d)->dev_id);
}
static DEVICE_ATTR_RO(dev_id);

/*
 * Two groups, and none with files that are there for some only: a netdev that goes to a user's network namespace has
 * the files of its group change their owner, and the kernel warns when one is not there.
 */
static struct attribute *parent_attributes[] = {
	&dev_attr_mode.attr,	     &dev_attr_pkey.attr,	  &dev_attr_umcast.attr,
	&dev_attr_create_child.attr, &dev_attr_delete_child.attr, NULL,
};
static const struct attribute_group parent_group = { .attrs = parent_attributes };

static struct attribute *child_attributes[] = {
	&dev_attr_mode.attr, &dev_attr_pkey.attr, &dev_attr_umcast.attr, &dev_attr_parent.attr, NULL,
};
static const struct attribute_group child_group = { .attrs = child_attributes };

void shim_netdev_setup(struct net_device *dev)
{
	dev->netdev_ops = &netdev_ops;
	dev->header_ops = &header_ops;
	shim_set_ethtool_ops(dev);
	dev->type = ARPHRD_INFINIBAND;
	dev->addr_len = INFINIBAND_ALEN;
	dev->hard_header_len = IPOIB_HEADER_BYTES;
	dev->flags |= IFF_BROADCAST | IFF_MULTICAST;
	/* An rdma_netdev makes its rings as long. */
	dev->tx_queue_len = 2 * shim_parameters.send_queue_size;
	dev->watchdog_timeo = 10 * HZ;
	dev->features = NETIF_F_VLAN_CHALLENGED | NETIF_F_HIGHDMA;
	/* Up to what connected mode carries; the driver checks what the mode in force allows. */
	dev->max_mtu = IPOIB_MAX_MTU;
	dev->sysfs_groups[0] = &parent_group;
	/* The destination's addresses are in the neighbour entry that skb_dst() leads to. */
	netif_keep_dst(dev);
}

/*
 * Every netdev of this driver has the private area that rdma_netdevs begin with. One of an HCA that has an rdma_netdev
 * has room for all of it: that may be started whenever it was not refused with -EOPNOTSUPP.
 */
static struct net_device *alloc_dev(struct ib_device *ca, u32 port, const char *name, unsigned char name_type)
{
	struct net_device *dev = rdma_alloc_netdev(ca, port, RDMA_NETDEV_IPOIB, name, name_type, shim_netdev_setup);
	int ret;

	if (PTR_ERR(dev) == -EOPNOTSUPP)
		dev = alloc_netdev(sizeof(struct rdma_netdev), name, name_type, shim_netdev_setup);
	if (IS_ERR_OR_NULL(dev))
		return NULL;
	ret = shim_link_use(dev, ca, port);
	if (!ret)
		return dev;
	dev_warn(&ca->dev, "port %u: the size of the HCA's rdma_netdev is not known, error %d\n", port, ret);
	free_netdev(dev);
	return NULL;
}

SHIM struct net_device *shim_netdev_create(struct ib_device *ca, uint32_t port)
{
	struct net_device *dev = alloc_dev(ca, port, "ib%d", NET_NAME_UNKNOWN);

	if (!dev)
		return NULL;
	dev_net_set(dev, SHIM_HCA_NET(ca));
	SET_NETDEV_DEV(dev, ca->dev.parent);
	dev->dev_port = dev->dev_id = port - 1;
	return dev;
}

SHIM struct net_device *shim_netdev_create_child(struct ib_device *ca, uint32_t port, struct net_device *parent,
						 const char *name)
{
	struct net_device *dev = alloc_dev(ca, port, name, NET_NAME_USER);

	if (!dev)
		return NULL;
	dev_net_set(dev, dev_net(parent));
	return dev;
}

SHIM void shim_netdev_use_one_queue(struct net_device *dev)
{
	netif_set_real_num_tx_queues(dev, 1);
	netif_set_real_num_rx_queues(dev, 1);
}

SHIM unsigned int shim_netdev_tx_queues(const struct net_device *dev) { return dev->num_tx_queues; }

SHIM int shim_netdev_use_tx_queues(struct net_device *dev, unsigned int count)
{
	return netif_set_real_num_tx_queues(dev, count);
}

SHIM void shim_netdev_add_abilities(struct net_device *dev, unsigned int abilities)
{
	if (abilities & SHIM_IS_FUNCTION)
		dev->netdev_ops = &function_ops;
	if (abilities & SHIM_CAN_GATHER)
		dev->features |= NETIF_F_SG;
	if (abilities & SHIM_CAN_CHECKSUM)
		dev->hw_features |= NETIF_F_IP_CSUM | NETIF_F_RXCSUM;
	if (abilities & SHIM_CAN_SEGMENT)
		dev->hw_features |= NETIF_F_TSO;
	/* The kernel grants segmentation with checksums only; of IPv6 no HCA is known to do these. */
	if (abilities & SHIM_CUT_BY_DRIVER)
		dev->hw_features |=
			abilities & SHIM_CAN_CHECKSUM ? NETIF_F_TSO : NETIF_F_HW_CSUM | NETIF_F_TSO | NETIF_F_TSO6;
	dev->features |= dev->hw_features;
	/* Merging is for the user to switch on. */
	if (abilities & SHIM_CAN_CHECKSUM)
		dev->hw_features |= NETIF_F_LRO;
}

SHIM void shim_netdev_set_child(struct net_device *dev) { dev->sysfs_groups[0] = &child_group; }

SHIM void shim_netdev_limit_segments(struct net_device *dev, unsigned int segments)
{
	SHIM_LIMIT_SEGMENTS(dev, segments);
}

SHIM unsigned int shim_netdev_max_segments(const struct net_device *dev) { return dev->gso_max_segs; }

SHIM void shim_netdev_set_max_segments(struct net_device *dev, unsigned int segments)
{
	/* Sockets read it without a lock. */
	WRITE_ONCE(dev->gso_max_segs, segments);
}

SHIM void *shim_netdev_owner(const struct net_device *dev)
{
	return ((const struct rdma_netdev *)netdev_priv(dev))->clnt_priv;
}

SHIM void shim_netdev_set_owner(struct net_device *dev, void *owner)
{
	((struct rdma_netdev *)netdev_priv(dev))->clnt_priv = owner;
}

SHIM int shim_netdev_register(struct net_device *dev)
{
	int ret = register_netdevice(dev);

	if (ret)
		return ret;
	/* From here on the kernel frees it, when the last reference is gone. */
	dev->needs_free_netdev = true;
	dev->priv_destructor = ipoib_netdev_gone;
	if (!dev->dev.parent)
		return 0;
	device_remove_file(&dev->dev, &dev_attr_dev_id);
	if (device_create_file(&dev->dev, &dev_attr_dev_id))
		netdev_warn(dev, "no memory for the file dev_id\n");
	return 0;
}

SHIM void shim_netdev_unregister(struct net_device *dev, void *batch) { unregister_netdevice_queue(dev, batch); }
SHIM void shim_netdev_batch_init(void *batch) { INIT_LIST_HEAD((struct list_head *)batch); }
SHIM void shim_netdev_batch_unregister(void *batch) { unregister_netdevice_many(batch); }
SHIM void shim_netdev_free(struct net_device *dev) { free_netdev(dev); }
SHIM bool shim_netdev_is_ours(const struct net_device *dev) { return shim_is_ours(dev); }
SHIM bool shim_netdev_bonded(const struct net_device *dev) { return netif_is_bond_slave(dev); }
SHIM bool shim_netdev_up(const struct net_device *dev) { return dev->flags & IFF_UP; }

SHIM void shim_netdev_bring(struct net_device *dev, bool up)
{
	dev_change_flags(dev, up ? dev->flags | IFF_UP : dev->flags & ~IFF_UP, NULL);
}

SHIM bool shim_netdev_has_ops_lock(const struct net_device *dev) { return netdev_need_ops_lock(dev); }
SHIM void shim_netdev_lock_ops(struct net_device *dev) { netdev_lock_ops(dev); }
SHIM void shim_netdev_unlock_ops(struct net_device *dev) { netdev_unlock_ops(dev); }

SHIM bool shim_may_administer(const struct net_device *dev) { return ns_capable(dev_net(dev)->user_ns, CAP_NET_ADMIN); }

SHIM const char *shim_netdev_name(const struct net_device *dev) { return dev->name; }

SHIM const uint8_t *shim_netdev_address(const struct net_device *dev) { return dev->dev_addr; }
SHIM bool shim_netdev_address_given(const struct net_device *dev) { return dev->addr_assign_type == NET_ADDR_SET; }

/* Stops at the first that has it. */
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

SHIM bool shim_netdev_has_address(struct net_device *dev, const struct sockaddr *address)
{
	struct netdev_nested_priv wanted = { .data = (void *)address };
	bool found;

	rcu_read_lock();
	found = has_address(dev, &wanted) || netdev_walk_all_upper_dev_rcu(dev, has_address, &wanted);
	rcu_read_unlock();
	return found;
}

SHIM struct net_device *shim_netdev_hold_outermost(struct net_device *dev)
{
	struct net_device *master;

	rcu_read_lock();
	master = netdev_master_upper_dev_get_rcu(dev);
	/* A VRF is no link of its own. */
	if (master && !netif_is_l3_master(master))
		dev = master;
	dev_hold(dev);
	rcu_read_unlock();
	return dev;
}

SHIM void shim_netdev_set_address(struct net_device *dev, unsigned int offset, const void *address, unsigned int bytes)
{
	dev_addr_mod(dev, offset, address, bytes);
}

SHIM void shim_netdev_address_changed(struct net_device *dev)
{
	if (dev->reg_state == NETREG_REGISTERED)
		call_netdevice_notifiers(NETDEV_CHANGEADDR, dev);
}

SHIM void shim_netdev_notify_peers(struct net_device *dev) { __netdev_notify_peers(dev); }

SHIM uint8_t *shim_netdev_broadcast(struct net_device *dev) { return dev->broadcast; }
SHIM unsigned int shim_netdev_mtu(const struct net_device *dev) { return READ_ONCE(dev->mtu); }
SHIM void shim_netdev_set_initial_mtu(struct net_device *dev, unsigned int mtu) { dev->mtu = mtu; }
SHIM void shim_netdev_store_mtu(struct net_device *dev, unsigned int mtu) { WRITE_ONCE(dev->mtu, mtu); }
SHIM int shim_netdev_change_mtu(struct net_device *dev, unsigned int mtu) { return SHIM_SET_MTU(dev, mtu); }
SHIM bool shim_netdev_rx_checksum(const struct net_device *dev) { return dev->features & NETIF_F_RXCSUM; }
SHIM bool shim_netdev_lro(const struct net_device *dev) { return dev->features & NETIF_F_LRO; }
SHIM void shim_netdev_update_features(struct net_device *dev) { netdev_update_features(dev); }

SHIM void shim_netdev_for_each_multicast(struct net_device *dev, void (*visit)(void *context, const uint8_t *address),
					 void *context)
{
	struct netdev_hw_addr *entry;

	netif_addr_lock_bh(dev);
	netdev_for_each_mc_addr(entry, dev)
		visit(context, entry->addr);
	netif_addr_unlock_bh(dev);
}

SHIM void shim_netdev_carrier_on(struct net_device *dev) { netif_carrier_on(dev); }
SHIM void shim_netdev_carrier_off(struct net_device *dev) { netif_carrier_off(dev); }

static __always_inline struct netdev_queue *tx_queue(const struct net_device *dev)
{
	return netdev_get_tx_queue(dev, 0);
}

SHIM void shim_tx_queue_start(struct net_device *dev) { netif_tx_start_queue(tx_queue(dev)); }
SHIM void shim_tx_queue_stop(struct net_device *dev) { netif_tx_stop_queue(tx_queue(dev)); }
SHIM void shim_tx_queue_wake(struct net_device *dev) { netif_tx_wake_queue(tx_queue(dev)); }
SHIM bool shim_tx_queue_held(const struct net_device *dev) { return netif_xmit_stopped(tx_queue(dev)); }
SHIM bool shim_tx_queue_stopped(const struct net_device *dev) { return netif_tx_queue_stopped(tx_queue(dev)); }
SHIM void shim_tx_queue_disable(struct net_device *dev) { netif_tx_disable(dev); }
SHIM void shim_tx_queues_wake(struct net_device *dev) { netif_tx_wake_all_queues(dev); }

SHIM bool shim_tx_queue_sent(struct net_device *dev, unsigned int bytes, bool more)
{
	return __netdev_tx_sent_queue(tx_queue(dev), bytes, more);
}

SHIM void shim_tx_queue_completed(struct net_device *dev, unsigned int packets, unsigned int bytes)
{
	netdev_tx_completed_queue(tx_queue(dev), packets, bytes);
}

SHIM void shim_tx_queue_reset(struct net_device *dev) { netdev_tx_reset_queue(tx_queue(dev)); }

SHIM void shim_tx_queue_always_allow(struct net_device *dev, unsigned int bytes)
{
	netdev_queue_set_dql_min_limit(tx_queue(dev), bytes);
}

SHIM bool shim_xmit_more(void) { return netdev_xmit_more(); }

SHIM unsigned int shim_tx_queue_idle_ms(const struct net_device *dev)
{
	return jiffies_to_msecs(jiffies - READ_ONCE(tx_queue(dev)->trans_start));
}

static int napi_poll(struct napi_struct *napi, int budget)
{
	struct shim_napi *shim = container_of(napi, struct shim_napi, napi);

	return shim->poll(shim->context, budget);
}

SHIM void shim_napi_add(struct net_device *dev, struct shim_napi *napi, int (*poll)(void *context, int budget),
			void *context, bool transmit)
{
	napi->poll = poll;
	napi->context = context;
	if (transmit)
		SHIM_NAPI_ADD_TX(dev, &napi->napi, napi_poll);
	else
		SHIM_NAPI_ADD(dev, &napi->napi, napi_poll);
}

SHIM void shim_napi_remove(struct shim_napi *napi) { netif_napi_del(&napi->napi); }
SHIM void shim_napi_enable(struct shim_napi *napi) { napi_enable(&napi->napi); }
SHIM void shim_napi_disable(struct shim_napi *napi) { napi_disable(&napi->napi); }
SHIM void shim_napi_schedule(struct shim_napi *napi) { napi_schedule(&napi->napi); }
SHIM bool shim_napi_complete(struct shim_napi *napi, int done) { return napi_complete_done(&napi->napi, done); }
SHIM bool shim_napi_holds_packets(const struct shim_napi *napi) { return SHIM_NAPI_HOLDS(&napi->napi); }
SHIM void shim_napi_receive(struct shim_napi *napi, struct sk_buff *skb) { napi_gro_receive(&napi->napi, skb); }

SHIM void shim_napi_receive_unmerged(struct shim_napi *napi, struct sk_buff *skb)
{
	skb_mark_napi_id(skb, &napi->napi);
	netif_receive_skb(skb);
}

SHIM unsigned long shim_neighbour_gc_interval(void) { return READ_ONCE(arp_tbl.gc_interval); }

SHIM bool shim_parse_int(const char *text, int *value) { return sscanf(text, "%i", value) == 1; }

int shim_format(char *buffer, size_t bytes, const char *format, ...)
{
	va_list arguments;
	int written;

	va_start(arguments, format);
	written = vscnprintf(buffer, bytes, format, arguments);
	va_end(arguments);
	return written;
}
