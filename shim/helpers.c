// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Helpers: the functions of the boundary that are more than one kernel call. The comment above each gives the reason
 * why it is not C++, and not one call: a macro or an inline function of the kernel, the layout of a kernel structure,
 * an RCU read section, or the cost of a call on the hot path. Contracts are in include/shim/.
 */
#include "compat.h"
#include "objects.h"
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/icmpv6.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/addrconf.h>
#include <net/arp.h>
#include <net/checksum.h>
#include <net/dst.h>
#include <net/icmp.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/tcp.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>
#include <shim/ah.h>
#include <shim/debugfs.h>
#include <shim/device.h>
#include <shim/dim.h>
#include <shim/lib.h>
#include <shim/ndo.h>
#include <shim/netdevice.h>
#include <shim/netlink.h>
#include <shim/page_pool.h>
#include <shim/qp.h>
#include <shim/rc_qp.h>
#include <shim/rdma_netdev.h>
#include <shim/sa.h>
#include <shim/skbuff.h>
#include <shim/sync.h>
#include <shim/tso.h>
#include <shim/work.h>
#include <shim/wr.h>

/* The netdev */

/*
 * Every netdev of this driver has the private area that rdma_netdevs begin with. One of an HCA that has an rdma_netdev
 * has space for all of it: that may be started whenever it was not refused with -EOPNOTSUPP.
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

/* alloc_netdev() takes a C callback; the namespace and the parent are set by macros, before anything sees the netdev.
 */
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

/* As above; the namespace is the parent's. */
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
SHIM void shim_helper_netdev_add_features(struct net_device *dev, unsigned int abilities)
{
	if (abilities & SHIM_IS_FUNCTION)
		dev->netdev_ops = &shim_function_netdev_ops;
	if (abilities & SHIM_CAN_GATHER)
		dev->features |= NETIF_F_SG;
	if (abilities & SHIM_CAN_CHECKSUM)
		dev->hw_features |= NETIF_F_IP_CSUM | NETIF_F_RXCSUM;
	if (abilities & SHIM_CAN_SEGMENT)
		dev->hw_features |= NETIF_F_TSO;
	/* The core allows TSO only with checksum offload; no HCA is known to have that for IPv6. */
	if (abilities & SHIM_CUT_BY_DRIVER)
		dev->hw_features |=
			abilities & SHIM_CAN_CHECKSUM ? NETIF_F_TSO : NETIF_F_HW_CSUM | NETIF_F_TSO | NETIF_F_TSO6;
	dev->features |= dev->hw_features;
	/* LRO is off until the user enables it. */
	if (abilities & SHIM_CAN_CHECKSUM)
		dev->hw_features |= NETIF_F_LRO;
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

#ifdef HAVE_EXTACK_BUFFER
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

/* Debugfs */

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

/* The rdma_netdev: operations that it may lack are function pointers in kernel structures */

/* The netdev operations during rdma_init_netdev(), which the rdma_netdev calls from its own or replaces. */
static const struct net_device_ops queue_ops = {
	.ndo_init = ipoib_queues_init,
	.ndo_uninit = ipoib_queues_uninit,
	.ndo_open = ipoib_queues_open,
	.ndo_stop = ipoib_queues_stop,
};

/*
 * rdma_init_netdev() reads the netdev operations that it finds and replaces them; the driver's are restored
 * afterwards.
 */
SHIM int shim_helper_rdma_netdev_start(struct shim_rdma_netdev *state, struct net_device *dev, struct ib_device *ca,
				       uint32_t port)
{
	const struct net_device_ops *ours = dev->netdev_ops;
	int ret;

	dev->netdev_ops = &queue_ops;
	ret = rdma_init_netdev(ca, port, RDMA_NETDEV_IPOIB, dev->name, NET_NAME_UNKNOWN, shim_netdev_setup, dev);
	if (!ret) {
		state->ops = dev->netdev_ops;
		state->destructor = dev->priv_destructor;
		dev->priv_destructor = NULL;
	}
	dev->netdev_ops = ours;
	return ret;
}

/* Calls the destructor once, if there is one. */
SHIM void shim_helper_rdma_netdev_end(struct shim_rdma_netdev *state, struct net_device *dev)
{
	if (state->destructor)
		state->destructor(dev);
	state->destructor = NULL;
}

/* The operation may be missing. */
SHIM int shim_helper_rdma_netdev_init(const struct shim_rdma_netdev *state, struct net_device *dev)
{
	return state->ops->ndo_init ? state->ops->ndo_init(dev) : 0;
}

/* The operation may be missing. */
SHIM void shim_helper_rdma_netdev_uninit(const struct shim_rdma_netdev *state, struct net_device *dev)
{
	if (state->ops->ndo_uninit)
		state->ops->ndo_uninit(dev);
}

/* Both operations may be missing. The stack has kept packets meanwhile, and nothing else wakes the queues. */
SHIM int shim_helper_rdma_netdev_open(const struct shim_rdma_netdev *state, struct net_device *dev, uint16_t pkey_index)
{
	int ret;

	if (shim_rdma_netdev(dev)->set_id)
		shim_rdma_netdev(dev)->set_id(dev, pkey_index);
	ret = state->ops->ndo_open ? state->ops->ndo_open(dev) : 0;
	if (!ret)
		netif_tx_wake_all_queues(dev);
	return ret;
}

/* The operation may be missing; no transmit call runs during it. */
SHIM void shim_helper_rdma_netdev_stop(const struct shim_rdma_netdev *state, struct net_device *dev)
{
	netif_tx_disable(dev);
	if (state->ops->ndo_stop)
		state->ops->ndo_stop(dev);
}

/* The operation may be missing; the field is written then, as dev_set_mtu() does. */
SHIM int shim_helper_rdma_netdev_change_mtu(const struct shim_rdma_netdev *state, struct net_device *dev,
					    unsigned int mtu)
{
	if (state->ops->ndo_change_mtu)
		return state->ops->ndo_change_mtu(dev, mtu);
	WRITE_ONCE(dev->mtu, mtu);
	return 0;
}

/* The operation may be missing. */
SHIM void shim_helper_rdma_netdev_tx_timeout(struct net_device *dev)
{
	if (shim_rdma_netdev(dev)->tx_timeout)
		shim_rdma_netdev(dev)->tx_timeout(dev, 0);
}

/* dev_get_stats() would call the driver's operations. */
static void get_stats(const struct shim_rdma_netdev *state, struct net_device *dev, struct rtnl_link_stats64 *sums)
{
	if (state->ops->ndo_get_stats64)
		state->ops->ndo_get_stats64(dev, sums);
	else if (SHIM_HAS_TSTATS(dev))
		dev_get_tstats64(dev, sums);
	else
		netdev_stats_to_stats64(sums, &dev->stats);
}

/*
 * Reads statistics as dev_get_stats() does, from the first source that the netdev has; struct rtnl_link_stats64 is
 * the kernel's.
 */
SHIM void shim_helper_rdma_netdev_get_stats(const struct shim_rdma_netdev *state, struct net_device *dev,
					    struct shim_stats *stats)
{
	struct rtnl_link_stats64 sums = {};

	get_stats(state, dev, &sums);
	stats->rx_packets += sums.rx_packets;
	stats->rx_bytes += sums.rx_bytes;
	stats->rx_errors += sums.rx_errors;
	stats->rx_dropped += sums.rx_dropped;
	stats->multicast += sums.multicast;
	stats->tx_packets += sums.tx_packets;
	stats->tx_bytes += sums.tx_bytes;
	stats->tx_errors += sums.tx_errors;
	stats->tx_dropped += sums.tx_dropped;
}

/* The HCA */

/* struct ib_port_attr is larger than IPoIB needs and differs between kernels; MTU codes become bytes. */
SHIM int shim_helper_ib_query_port(struct ib_device *ca, uint32_t port, struct shim_port *attributes)
{
	struct ib_port_attr attr;
	int ret = ib_query_port(ca, port, &attr);

	if (ret)
		return ret;
	attributes->active = attr.state == IB_PORT_ACTIVE;
	attributes->lid = attr.lid;
	attributes->lmc = attr.lmc;
	attributes->max_mtu = rdma_mtu_from_attr(ca, port, &attr);
	attributes->speed = attr.active_speed;
	attributes->width = attr.active_width;
	attributes->active_mtu = rdma_mtu_enum_to_int(ca, port, attr.active_mtu);
	return 0;
}

/* Takes and puts a reference to the entry, to read its index. */
SHIM int shim_helper_rdma_find_gid(struct ib_device *ca, uint32_t port, const struct shim_gid *gid, uint16_t *index)
{
	const struct ib_gid_attr *attr =
		rdma_find_gid_by_port(ca, (const union ib_gid *)gid, IB_GID_TYPE_IB, port, NULL);

	if (IS_ERR(attr))
		return PTR_ERR(attr);
	*index = attr->index;
	rdma_put_gid_attr(attr);
	return 0;
}

static enum shim_event event_of(enum ib_event_type type)
{
	switch (type) {
	case IB_EVENT_CLIENT_REREGISTER:
		return SHIM_EVENT_CLIENT_REREGISTER;
	case IB_EVENT_PORT_ERR:
		return SHIM_EVENT_PORT_ERROR;
	case IB_EVENT_PORT_ACTIVE:
		return SHIM_EVENT_PORT_ACTIVE;
	case IB_EVENT_LID_CHANGE:
		return SHIM_EVENT_LID_CHANGE;
	case IB_EVENT_PKEY_CHANGE:
		return SHIM_EVENT_PKEY_CHANGE;
	case IB_EVENT_GID_CHANGE:
		return SHIM_EVENT_GID_CHANGE;
	default:
		return SHIM_EVENT_OTHER;
	}
}

static void on_event(struct ib_event_handler *native, struct ib_event *event)
{
	struct shim_event_handler *handler = container_of(native, struct shim_event_handler, handler);

	handler->on_event(handler->context, event_of(event->event), event->element.port_num);
}

/* INIT_IB_EVENT_HANDLER() is a macro; the handler calls back into C++. */
SHIM void shim_helper_register_event_handler(struct ib_device *ca, struct shim_event_handler *handler,
					     void (*callback)(void *context, enum shim_event event, uint32_t port),
					     void *context)
{
	INIT_IB_EVENT_HANDLER(&handler->handler, ca, on_event);
	handler->on_event = callback;
	handler->context = context;
	ib_register_event_handler(&handler->handler);
}

/* struct rdma_ah_attr is filled through the kernel's accessors. */
SHIM struct ib_ah *shim_helper_create_ah(struct ib_pd *pd, const struct shim_ah_attributes *attributes)
{
	struct rdma_ah_attr attr = { .type = rdma_ah_find_type(pd->device, attributes->port) };
	union ib_gid dgid;

	memcpy(&dgid, &attributes->dgid, sizeof(dgid));
	rdma_ah_set_port_num(&attr, attributes->port);
	rdma_ah_set_dlid(&attr, attributes->dlid);
	rdma_ah_set_sl(&attr, attributes->sl);
	rdma_ah_set_static_rate(&attr, attributes->rate);
	rdma_ah_set_grh(&attr, &dgid, attributes->flow_label, attributes->sgid_index, attributes->hop_limit,
			attributes->traffic_class);
	return rdma_create_ah(pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
}

/* The attributes hold a reference to the GID until they are destroyed. */
SHIM struct ib_ah *shim_helper_create_ah_from_path(struct ib_pd *pd, uint32_t port, struct sa_path_rec *record)
{
	struct rdma_ah_attr attr = {};
	struct ib_ah *ah;
	int ret = ib_init_ah_attr_from_path(pd->device, port, record, &attr, NULL);

	if (ret)
		return ERR_PTR(ret);
	ah = rdma_create_ah(pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	rdma_destroy_ah_attr(&attr);
	return ah;
}

/* Queue pairs */

/* struct ib_qp_attr is the kernel's: the state is read, and set only if it is SQE. */
SHIM int shim_helper_qp_recover_send(struct ib_qp *qp)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	int ret = ib_query_qp(qp, &attr, IB_QP_STATE, &init);

	if (ret)
		return ret;
	if (attr.qp_state != IB_QPS_SQE)
		return -EINVAL;
	attr.qp_state = IB_QPS_RTS;
	attr.cur_qp_state = IB_QPS_SQE;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE);
}

/* ib_cm computes attributes and mask from the messages; both belong to kernel structures. */
SHIM int shim_helper_rc_qp_to_rtr(struct ib_qp *qp, struct ib_cm_id *id, uint32_t psn, uint8_t rnr_timer)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };
	int mask, ret = ib_cm_init_qp_attr(id, &attr, &mask);

	if (ret)
		return ret;
	attr.rq_psn = psn;
	attr.min_rnr_timer = rnr_timer;
	return ib_modify_qp(qp, &attr, mask | IB_QP_MIN_RNR_TIMER);
}

/* As above. */
SHIM int shim_helper_rc_qp_to_rts(struct ib_qp *qp, struct ib_cm_id *id)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS };
	int mask, ret = ib_cm_init_qp_attr(id, &attr, &mask);

	return ret ?: ib_modify_qp(qp, &attr, mask);
}

/* Work requests: on the hot path */

/*
 * bad_wr points into the chain, at the member of a structure: container_of() gives the slot. A provider that fails
 * without setting it is taken to have accepted no work request.
 */
SHIM int shim_helper_post_send(struct ib_qp *qp, struct shim_send_wr *first, struct shim_send_wr **refused)
{
	const struct ib_send_wr *bad = &first->wr.wr;
	const int error = ib_post_send(qp, &first->wr.wr, &bad);

	if (refused)
		*refused = error ? container_of(bad, struct shim_send_wr, wr.wr) : NULL;
	return error;
}

/* As above. */
SHIM int shim_helper_post_recv(struct ib_qp *qp, struct shim_recv_wr *first, struct shim_recv_wr **refused)
{
	const struct ib_recv_wr *bad = &first->wr;
	const int error = ib_post_recv(qp, &first->wr, &bad);

	*refused = error ? (struct shim_recv_wr *)bad : NULL;
	return error;
}

/* As above. */
SHIM int shim_helper_post_srq_recv(struct ib_srq *srq, struct shim_recv_wr *first, struct shim_recv_wr **refused)
{
	const struct ib_recv_wr *bad = &first->wr;
	const int error = ib_post_srq_recv(srq, &first->wr, &bad);

	*refused = error ? (struct shim_recv_wr *)bad : NULL;
	return error;
}

/* The subnet administrator */

/* The callback of a query; freed with the response. */
struct path_question {
	void (*answered)(int status, struct sa_path_rec *record, void *context);
	void *context;
};

static void path_answered(SHIM_PATH_ANSWER)
{
	struct path_question *question = context;

	question->answered(status, status ? NULL : record, question->context);
	kfree(question);
}

/*
 * Fills a kernel structure, and keeps the callback in memory that lives until the response: ib_sa holds one context
 * pointer.
 */
SHIM int shim_helper_sa_path_query(struct ib_device *ca, uint32_t port, const struct shim_path_query *asked,
				   unsigned int timeout_ms,
				   void (*answered)(int status, struct sa_path_rec *record, void *context),
				   void *context, struct ib_sa_query **query)
{
	struct path_question *question = kmalloc(sizeof(*question), GFP_ATOMIC);
	struct sa_path_rec record = {
		.rec_type = rdma_cap_opa_ah(ca, port) ? SA_PATH_REC_TYPE_OPA : SA_PATH_REC_TYPE_IB,
		.pkey = cpu_to_be16(asked->pkey),
		.numb_path = 1,
		.traffic_class = asked->traffic_class,
	};
	int id;

	if (!question)
		return -ENOMEM;
	question->answered = answered;
	question->context = context;
	memcpy(&record.dgid, &asked->dgid, sizeof(record.dgid));
	memcpy(&record.sgid, &asked->sgid, sizeof(record.sgid));
	id = ib_sa_path_rec_get(&shim_sa_client, ca, port, &record,
				IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_NUMB_PATH |
					IB_SA_PATH_REC_TRAFFIC_CLASS | IB_SA_PATH_REC_PKEY,
				timeout_ms, GFP_ATOMIC, path_answered, question, query);
	if (id < 0)
		kfree(question);
	return id;
}

/* The context of the membership, which has space for one pointer. */
struct join {
	int (*answered)(int status, const struct shim_mcmember *member, void *context);
	void *context;
};

static int join_answered(int status, struct ib_sa_multicast *membership)
{
	struct join *join = membership->context;
	const struct ib_sa_mcmember_rec *record = &membership->rec;
	struct shim_mcmember member = {
		.qkey = be32_to_cpu(record->qkey),
		.mlid = be16_to_cpu(record->mlid),
		.pkey = be16_to_cpu(record->pkey),
		.mtu = record->mtu,
		.traffic_class = record->traffic_class,
		.rate = record->rate,
		.sl = record->sl,
		.hop_limit = record->hop_limit,
		.flow_label = be32_to_cpu(record->flow_label),
		.join_state = record->join_state,
	};
	int ret;

	memcpy(&member.mgid, &record->mgid, sizeof(member.mgid));
	memcpy(&member.port_gid, &record->port_gid, sizeof(member.port_gid));
	ret = join->answered(status, &member, join->context);
	if (ret)
		kfree(join);
	return ret;
}

/* As above; the memory lives as long as the membership. */
SHIM struct ib_sa_multicast *
shim_helper_sa_join(struct ib_device *ca, uint32_t port, const struct shim_mcmember *member, bool with_parameters,
		    int (*answered)(int status, const struct shim_mcmember *member, void *context), void *context)
{
	struct join *join = kmalloc(sizeof(*join), GFP_KERNEL);
	struct ib_sa_mcmember_rec record = {
		.pkey = cpu_to_be16(member->pkey),
		.join_state = member->join_state,
	};
	ib_sa_comp_mask mask = IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID | IB_SA_MCMEMBER_REC_PKEY |
			       IB_SA_MCMEMBER_REC_JOIN_STATE;
	struct ib_sa_multicast *membership;

	if (!join)
		return ERR_PTR(-ENOMEM);
	join->answered = answered;
	join->context = context;
	memcpy(&record.mgid, &member->mgid, sizeof(record.mgid));
	memcpy(&record.port_gid, &member->port_gid, sizeof(record.port_gid));
	if (with_parameters) {
		mask |= IB_SA_MCMEMBER_REC_QKEY | IB_SA_MCMEMBER_REC_MTU_SELECTOR | IB_SA_MCMEMBER_REC_MTU |
			IB_SA_MCMEMBER_REC_TRAFFIC_CLASS | IB_SA_MCMEMBER_REC_RATE_SELECTOR | IB_SA_MCMEMBER_REC_RATE |
			IB_SA_MCMEMBER_REC_SL | IB_SA_MCMEMBER_REC_FLOW_LABEL | IB_SA_MCMEMBER_REC_HOP_LIMIT;
		record.qkey = cpu_to_be32(member->qkey);
		record.mtu_selector = IB_SA_EQ;
		record.mtu = member->mtu;
		record.traffic_class = member->traffic_class;
		record.rate_selector = IB_SA_EQ;
		record.rate = member->rate;
		record.sl = member->sl;
		record.flow_label = cpu_to_be32(member->flow_label);
		record.hop_limit = member->hop_limit;
	}
	membership = ib_sa_join_multicast(&shim_sa_client, ca, port, &record, mask, GFP_KERNEL, join_answered, join);
	if (IS_ERR(membership))
		kfree(join);
	return membership;
}

/* As above. */
SHIM void shim_helper_sa_leave(struct ib_sa_multicast *membership)
{
	struct join *join = membership->context;

	ib_sa_free_multicast(membership);
	kfree(join);
}

/* Packets: on the hot path */

/* Both calls work on offsets that only the kernel's inline functions know. */
SHIM void shim_helper_skb_pull_mac_header(struct sk_buff *skb, unsigned int bytes)
{
	skb_reset_mac_header(skb);
	__skb_pull(skb, bytes);
}

/* On the hot path: skb_checksum_help(), for any packet, takes twice the time that a small one needs. */
SHIM int shim_helper_skb_checksum(struct sk_buff *skb)
{
	const unsigned int start = skb_checksum_start_offset(skb), end = start + skb->csum_offset + sizeof(__sum16);
	__sum16 sum;

	if (skb_is_nonlinear(skb) || (skb_cloned(skb) && !skb_clone_writable(skb, end)))
		return skb_checksum_help(skb);
	sum = csum_fold(csum_partial(skb->data + start, skb->len - start, 0));
	*(__sum16 *)(skb->data + end - sizeof(sum)) = sum ?: CSUM_MANGLED_0;
	skb->ip_summed = CHECKSUM_NONE;
	return 0;
}

/* Sets the fields that GRO would set; struct skb_shared_info and struct tcphdr are the kernel's. */
SHIM void shim_helper_skb_set_merged(struct sk_buff *skb, unsigned int segments, unsigned int segment_bytes)
{
	const struct iphdr *ip = (const struct iphdr *)skb->data;
	struct tcphdr *tcp = (struct tcphdr *)(ip + 1);

	skb_reset_network_header(skb);
	skb_set_transport_header(skb, sizeof(*ip));
	skb_shinfo(skb)->gso_size = segment_bytes;
	skb_shinfo(skb)->gso_segs = segments;
	skb_shinfo(skb)->gso_type = SKB_GSO_TCPV4;
	tcp->check = ~tcp_v4_check(skb->len - sizeof(*ip), ip->saddr, ip->daddr, 0);
	skb->csum_start = (unsigned char *)tcp - skb->head;
	skb->csum_offset = offsetof(struct tcphdr, check);
	skb->ip_summed = CHECKSUM_PARTIAL;
}

/* On the hot path: skb_tx_timestamp() calls a function for each packet, to see that there is no PHY. */
SHIM void shim_helper_skb_tx_timestamp(struct sk_buff *skb)
{
	if (unlikely(skb_shinfo(skb)->tx_flags))
		skb_tx_timestamp(skb);
}

/* icmp_send() reads the packet's control block as IP's; bottom halves are off for both calls. */
SHIM void shim_helper_icmp_too_big(struct sk_buff *skb, struct net_device *dev, unsigned int mtu)
{
	skb->dev = dev;
	memset(skb->cb, 0, sizeof(skb->cb));
	local_bh_disable();
	if (skb->protocol == htons(ETH_P_IP))
		icmp_send(skb, ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED, htonl(mtu));
	else if (skb->protocol == htons(ETH_P_IPV6))
		icmpv6_send(skb, ICMPV6_PKT_TOOBIG, 0, mtu);
	local_bh_enable();
	shim_kfree_skb_reason(skb, SHIM_DROP_TOO_LONG);
}

/* Buffers of a page pool return to it only if the packet is marked. */
SHIM struct sk_buff *shim_helper_napi_build_skb(void *buffer, unsigned int bytes)
{
	struct sk_buff *skb = napi_build_skb(buffer, bytes);

	if (skb)
		skb_mark_for_recycle(skb);
	return skb;
}

/* A buffer is an address in C++; skb_add_rx_frag() takes page and offset. */
SHIM void shim_helper_skb_add_rx_frag(struct sk_buff *skb, void *data, unsigned int bytes, unsigned int buffer_bytes)
{
	struct page *page = virt_to_head_page(data);

	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, data - page_address(page), bytes, buffer_bytes);
}

/* As above: page_address() of what was allocated, or NULL. */
SHIM void *shim_helper_page_pool_alloc(struct page_pool *pool)
{
	struct page *page = page_pool_dev_alloc_pages(pool);

	return page ? page_address(page) : NULL;
}

/* As above. */
SHIM void *shim_helper_page_pool_alloc_frag(struct page_pool *pool, unsigned int bytes)
{
	unsigned int offset;
	struct page *page = page_pool_dev_alloc_frag(pool, &offset, bytes);

	return page ? page_address(page) + offset : NULL;
}

/* tso_build_hdr() does not count extension headers in the IPv6 payload length. */
SHIM void shim_helper_tso_build_hdr(struct shim_tso *tso, const struct sk_buff *skb, void *headers,
				    unsigned int data_bytes, bool last)
{
	struct ipv6hdr *ip = headers + skb_network_offset(skb);

	tso_build_hdr(skb, headers, &tso->tso, data_bytes, last);
	if (tso->tso.ipv6)
		ip->payload_len = htons(skb_network_header_len(skb) - sizeof(*ip) + tso->tso.tlen + data_bytes);
}

/* Pseudo-headers and checksums by the kernel's inline functions; one pass over the headers, on the hot path. */
SHIM void shim_helper_tso_checksums(const struct shim_tso *tso, const struct sk_buff *skb, void *headers,
				    unsigned int data_bytes, uint32_t sum)
{
	struct iphdr *ip4 = headers + skb_network_offset(skb);
	struct ipv6hdr *ip6 = (void *)ip4;
	struct tcphdr *tcp = headers + skb_transport_offset(skb);
	unsigned int bytes = tso->tso.tlen + data_bytes;
	__wsum all;

	tcp->check = 0;
	all = csum_partial(tcp, tso->tso.tlen, (__force __wsum)sum);
	if (tso->tso.ipv6) {
		tcp->check = tcp_v6_check(bytes, &ip6->saddr, &ip6->daddr, all);
	} else {
		ip_send_check(ip4);
		tcp->check = tcp_v4_check(bytes, ip4->saddr, ip4->daddr, all);
	}
}

/* Locks, work, hash tables, moderation: initialisers are macros */

/* spin_lock_init() is a macro; lockdep gets the class of the C++ object. */
SHIM void shim_helper_spinlock_init(struct shim_spinlock *lock, struct shim_lock_class *lock_class, const char *name)
{
	spin_lock_init((spinlock_t *)lock);
	lockdep_set_class_and_name((spinlock_t *)lock, (struct lock_class_key *)lock_class, name);
}

static void work_run(struct work_struct *item)
{
	struct shim_work *work = container_of(item, struct shim_work, work.work);

	work->run(work->context);
}

/* INIT_DELAYED_WORK() is a macro; the item calls back into C++. */
SHIM void shim_helper_work_init(struct shim_work *work, void (*run)(void *context), void *context,
				struct shim_lock_class *lock_class, const char *name)
{
	INIT_DELAYED_WORK(&work->work, work_run);
	lockdep_init_map(&work->work.work.lockdep_map, name, (struct lock_class_key *)lock_class, 0);
	work->run = run;
	work->context = context;
}

/* Two calls: the library takes its sample in a structure, by value or by pointer. */
SHIM void shim_helper_net_dim(struct shim_dim *dim, uint16_t events, uint64_t packets, uint64_t bytes)
{
	struct dim_sample sample = {};

	dim_update_sample(events, packets, bytes, &sample);
	net_dim(&dim->dim, SHIM_DIM_SAMPLE(sample));
}
