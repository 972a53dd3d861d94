// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rdma_netdev that filters the client's own datapath, as Omni-Path's does. It keeps the net_device_ops that it finds on
 * the netdev, and its own init, open, stop and uninit call those, which create the client's UD queue pair and put it
 * into service. It finds that queue pair by the number in the hardware address, attaches groups to it, and takes the
 * unicast datagrams without a GRH that arrive for it; the client's queue pair receives the others. It sends by itself,
 * from the queue pair's number, by two transmit queues. A client that misuses it gets a warning.
 */
#include "compat.h"
#include "engine.h"
#include <linux/module.h>
#include <linux/netdevice.h>

enum { QUEUES = 2, SENDS = 256, MAX_RECEIVED = 1024 };

struct filter_send {
	struct fabric_headers headers;
	struct sk_buff *skb;
};

struct filter_queue {
	struct soft_filter *filter;
	struct napi_struct napi;
	unsigned int index;
	/* head is changed under the transmit lock, tail by NAPI. */
	u32 head, tail;
	struct filter_send sends[SENDS];
};

struct soft_filter {
	struct net_device *dev;
	struct soft_slot *slot;
	/* Operations of the client's own datapath. */
	const struct net_device_ops *client;
	bool calling_client;
	/* QPN of the client's queue pair since init; 0: none. */
	u32 qpn;
	/* Set while open. */
	struct soft_qp *qp;
	u32 qkey;
	u16 pkey_index;
	atomic_t psn;
	struct filter_queue queues[QUEUES];
	struct sk_buff_head received;
	struct napi_struct napi;
};

/* Layout of netdev_priv(). */
struct filter_netdev {
	struct rdma_netdev rn;
	struct soft_filter *filter;
};

static struct soft_filter *filter_of(const struct net_device *dev)
{
	return ((struct filter_netdev *)netdev_priv(dev))->filter;
}

static struct soft_hca *hca_of(const struct net_device *dev)
{
	return to_hca(((struct filter_netdev *)netdev_priv(dev))->rn.hca);
}

static const struct fabric_port *port_of(const struct soft_filter *filter)
{
	return fabric_hca_port(soft_fabric, filter->slot->index);
}

static u32 qpn_in_address(const struct net_device *dev)
{
	return dev->dev_addr[1] << 16 | dev->dev_addr[2] << 8 | dev->dev_addr[3];
}

/* Warns and returns false if the netdev's address has another queue pair. */
static bool check_address(struct net_device *dev)
{
	u32 qpn = qpn_in_address(dev), expected = filter_of(dev)->qpn;

	return !WARN(qpn != expected, "soft_ib: the address of %s has queue pair 0x%06x, not 0x%06x\n", dev->name, qpn,
		     expected);
}

/* The client's UD queue pair. CONTEXT: RTNL, or a client that does not destroy it meanwhile. */
static struct soft_qp *find_qp(struct net_device *dev)
{
	return check_address(dev) ? xa_load(&hca_of(dev)->qps, qpn_in_address(dev)) : NULL;
}

/* Sending */

static void describe(struct soft_filter *filter, const struct sk_buff *skb, struct ib_ah *ah, u32 qpn,
		     struct fabric_headers *h)
{
	const struct fabric_port *port = port_of(filter);

	memset(h, 0, sizeof(*h));
	soft_set_route(h, &container_of(ah, struct soft_ah, ib)->attr, port);
	h->opcode = FABRIC_UD_SEND_ONLY;
	h->pkey = port->pkeys[filter->pkey_index % FABRIC_PKEYS];
	h->destination_qpn = qpn;
	h->source_qpn = qpn_in_address(filter->dev);
	h->qkey = filter->qkey;
	h->psn = atomic_inc_return(&filter->psn) & FABRIC_PSN_MASK;
	h->payload_bytes = skb->len;
}

static bool is_full(const struct filter_queue *queue) { return queue->head - READ_ONCE(queue->tail) == SENDS; }

/* Reads the address handle before it returns, and never again. CONTEXT: under the transmit lock. */
static int send(struct net_device *dev, struct sk_buff *skb, struct ib_ah *ah, u32 qpn)
{
	struct soft_filter *filter = filter_of(dev);
	struct rdma_netdev *rn = netdev_priv(dev);
	u16 index = skb_get_queue_mapping(skb);
	struct filter_queue *queue;

	if (WARN_ONCE(index >= QUEUES, "soft_ib: a packet is sent by queue %u\n", index) ||
	    WARN_ONCE(!filter->qp, "soft_ib: a packet is sent while the lower half is closed\n") ||
	    WARN_ONCE(skb->ip_summed == CHECKSUM_PARTIAL || skb_is_gso(skb), "soft_ib: a packet wants offloads\n") ||
	    skb->len > rn->mtu + SOFT_ENCAPSULATION_BYTES || skb_linearize(skb)) {
		dev->stats.tx_dropped++;
		dev->stats.tx_errors++;
		goto drop;
	}
	queue = &filter->queues[index];
	if (is_full(queue)) {
		dev->stats.tx_dropped++;
		goto drop;
	}
	skb_orphan(skb);
	skb_dst_drop(skb);
	describe(filter, skb, ah, qpn, &queue->sends[queue->head % SENDS].headers);
	queue->sends[queue->head % SENDS].skb = skb;
	/* Pairs with send_all()'s. */
	smp_store_release(&queue->head, queue->head + 1);
	COUNT(filter->slot, accelerated_sends);
	if (is_full(queue)) {
		netif_stop_subqueue(dev, index);
		/* Pairs with poll_sends()'s: either that sees the stopped queue, or this sees the freed slots. */
		smp_mb();
		if (!is_full(queue))
			netif_start_subqueue(dev, index);
	}
	napi_schedule(&queue->napi);
	return 0;
drop:
	dev_kfree_skb_any(skb);
	return 0;
}

static int send_all(struct filter_queue *queue, struct burst *burst, int budget)
{
	struct soft_filter *filter = queue->filter;
	u32 head = smp_load_acquire(&queue->head);
	int done = 0;

	for (; queue->tail != head && done < budget; done++) {
		struct filter_send *send = &queue->sends[queue->tail % SENDS];
		struct ib_sge sge = { .addr = (uintptr_t)send->skb->data, .length = send->skb->len };
		struct frame frame = { .headers = &send->headers, .sge = &sge, .sges = 1 };

		soft_carry(filter->slot, &frame, burst);
		SOFT_COUNT_TX(filter->dev, send->skb->len);
		napi_consume_skb(send->skb, budget);
		WRITE_ONCE(queue->tail, queue->tail + 1);
	}
	return done;
}

static int poll_sends(struct napi_struct *napi, int budget)
{
	struct filter_queue *queue = container_of(napi, struct filter_queue, napi);
	struct net_device *dev = queue->filter->dev;
	struct burst burst;
	int done;

	soft_burst_start(&burst);
	done = send_all(queue, &burst, budget);
	soft_burst_end(&burst);
	smp_mb();
	if (__netif_subqueue_stopped(dev, queue->index) && READ_ONCE(queue->head) - queue->tail < SENDS / 2)
		netif_wake_subqueue(dev, queue->index);
	if (done < budget)
		napi_complete_done(napi, done);
	return done;
}

/* Receiving */

/* CONTEXT: softirq, under RCU. */
bool soft_filter_receive(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame)
{
	struct soft_filter *filter = rcu_dereference(qp->filter);
	const struct fabric_headers *h = frame->headers;
	struct sk_buff *skb;

	/* Other queue pairs, and datagrams with a GRH, receive by themselves. */
	if (!filter || h->grh || qp->ib.qp_num < SOFT_FIRST_NETDEV_QPN)
		return false;
	if (!fabric_pkeys_match(port_of(filter)->pkeys[filter->pkey_index % FABRIC_PKEYS], h->pkey)) {
		COUNT(slot, drop_pkey);
		return true;
	}
	if (READ_ONCE(qp->qkey) != h->qkey) {
		COUNT(slot, drop_qkey);
		return true;
	}
	if (soft_every(READ_ONCE(slot->drop_every), &slot->dropped_of)) {
		COUNT(slot, drop_fault);
		return true;
	}
	skb = h->payload_bytes > SOFT_ENCAPSULATION_BYTES && skb_queue_len(&filter->received) < MAX_RECEIVED ?
		      netdev_alloc_skb(filter->dev, SOFT_PSEUDO_HEADER_BYTES + h->payload_bytes) :
		      NULL;
	if (!skb) {
		COUNT(slot, drop_no_receive);
		return true;
	}
	skb_reserve(skb, SOFT_PSEUDO_HEADER_BYTES);
	soft_gather(frame, skb_put(skb, h->payload_bytes));
	COUNT(slot, accelerated_receives);
	skb_queue_tail(&filter->received, skb);
	napi_schedule(&filter->napi);
	return true;
}

static int poll_received(struct napi_struct *napi, int budget)
{
	struct soft_filter *filter = container_of(napi, struct soft_filter, napi);
	struct sk_buff *skb;
	int done = 0;

	while (done < budget && (skb = skb_dequeue(&filter->received))) {
		soft_netdev_set_headers(skb);
		skb->pkt_type = PACKET_HOST;
		SOFT_COUNT_RX(filter->dev, skb->len);
		netif_receive_skb(skb);
		done++;
	}
	if (done < budget && napi_complete_done(napi, done) && !skb_queue_empty(&filter->received))
		napi_schedule(napi);
	return done;
}

/* Groups and keys */

/* The queue pair's Q_Key is set too, unless the knob says to leave that to the client, as Omni-Path's driver does. */
static int join(struct net_device *dev, struct ib_device *ib, union ib_gid *mgid, u16 mlid, int set_qkey, u32 qkey)
{
	struct soft_filter *filter = filter_of(dev);
	struct soft_qp *qp = find_qp(dev);
	struct ib_qp_attr attr = { .qkey = qkey };
	int ret = 0;

	if (!qp)
		return -EINVAL;
	if (set_qkey) {
		filter->qkey = qkey;
		if (!READ_ONCE(filter->slot->leave_qkey))
			ret = ib_modify_qp(&qp->ib, &attr, IB_QP_QKEY);
	}
	return ret ?: ib_attach_mcast(&qp->ib, mgid, mlid);
}

static int leave(struct net_device *dev, struct ib_device *ib, union ib_gid *mgid, u16 mlid)
{
	struct soft_qp *qp = find_qp(dev);

	return qp ? ib_detach_mcast(&qp->ib, mgid, mlid) : -EINVAL;
}

static void set_id(struct net_device *dev, int id) { filter_of(dev)->pkey_index = id; }

static void tx_timeout(struct net_device *dev, unsigned int index)
{
	const struct filter_queue *queue = &filter_of(dev)->queues[index];

	netdev_warn(dev, "sends of queue %u are stuck: %u of %u\n", index, queue->head - queue->tail, SENDS);
}

/* The client's operations, and the actions around them */

/* -ELOOP: the client left operations on the netdev that call this rdma_netdev again. */
static int call_client(struct net_device *dev, int (*operation)(struct net_device *dev))
{
	struct soft_filter *filter = filter_of(dev);
	int ret;

	if (WARN(filter->calling_client, "soft_ib: the client's datapath calls its lower half\n"))
		return -ELOOP;
	filter->calling_client = true;
	ret = operation(dev);
	filter->calling_client = false;
	return ret;
}

static int filter_init(struct net_device *dev)
{
	struct soft_filter *filter = filter_of(dev);
	int ret = call_client(dev, filter->client->ndo_init);

	if (ret)
		return ret;
	filter->qpn = qpn_in_address(dev);
	if (!find_qp(dev)) {
		netdev_warn(dev, "there is no queue pair 0x%06x\n", filter->qpn);
		filter->client->ndo_uninit(dev);
		return -EINVAL;
	}
	return 0;
}

static void filter_uninit(struct net_device *dev)
{
	struct soft_filter *filter = filter_of(dev);

	check_address(dev);
	filter->qpn = 0;
	filter->client->ndo_uninit(dev);
}

static int filter_open(struct net_device *dev)
{
	struct soft_filter *filter = filter_of(dev);
	int ret = call_client(dev, filter->client->ndo_open);
	unsigned int i;

	if (ret)
		return ret;
	filter->qp = find_qp(dev);
	if (!filter->qp) {
		filter->client->ndo_stop(dev);
		return -EINVAL;
	}
	napi_enable(&filter->napi);
	for (i = 0; i < QUEUES; i++)
		napi_enable(&filter->queues[i].napi);
	rcu_assign_pointer(filter->qp->filter, filter);
	return 0;
}

static int filter_stop(struct net_device *dev)
{
	struct soft_filter *filter = filter_of(dev);
	unsigned int i;

	if (!filter->qp)
		return 0;
	RCU_INIT_POINTER(filter->qp->filter, NULL);
	synchronize_net();
	filter->qp = NULL;
	napi_disable(&filter->napi);
	skb_queue_purge(&filter->received);
	for (i = 0; i < QUEUES; i++) {
		struct filter_queue *queue = &filter->queues[i];

		napi_disable(&queue->napi);
		for (; queue->tail != queue->head; queue->tail++)
			dev_kfree_skb(queue->sends[queue->tail % SENDS].skb);
	}
	return filter->client->ndo_stop(dev);
}

/* Statistics are the core's, as in Omni-Path's driver; there is no operation then. */
static const struct net_device_ops filter_ops = {
	.ndo_init = filter_init,
	.ndo_uninit = filter_uninit,
	.ndo_open = filter_open,
	.ndo_stop = filter_stop,
};

/* Creation and destruction */

static void destroy(struct net_device *dev)
{
	struct soft_filter *filter = filter_of(dev);
	unsigned int i;

	netif_napi_del(&filter->napi);
	for (i = 0; i < QUEUES; i++)
		netif_napi_del(&filter->queues[i].napi);
	atomic64_dec(&filter->slot->counters.accelerated_devices);
	vfree(filter);
}

static bool is_whole(const struct net_device_ops *client)
{
	return client && client != &filter_ops && client->ndo_init && client->ndo_uninit && client->ndo_open &&
	       client->ndo_stop;
}

static int initialize(struct ib_device *ib, soft_port_number port, struct net_device *dev, void *param)
{
	struct filter_netdev *nd = netdev_priv(dev);
	struct soft_filter *filter;
	unsigned int i;

	if (WARN(!is_whole(dev->netdev_ops), "soft_ib: the client's datapath lacks operations\n") ||
	    WARN(dev->num_tx_queues < QUEUES, "soft_ib: the netdev was not allocated for its lower half\n"))
		return -EINVAL;
	filter = soft_vzalloc(sizeof(*filter), false);
	if (!filter)
		return -ENOMEM;
	SOFT_USE_CORE_STATS(dev);
	filter->dev = dev;
	filter->slot = to_hca(ib)->slot;
	filter->client = dev->netdev_ops;
	skb_queue_head_init(&filter->received);
	SOFT_NAPI_ADD(dev, &filter->napi, poll_received);
	for (i = 0; i < QUEUES; i++) {
		filter->queues[i].filter = filter;
		filter->queues[i].index = i;
		SOFT_NAPI_ADD_TX(dev, &filter->queues[i].napi, poll_sends);
	}
	COUNT(filter->slot, accelerated_devices);
	nd->filter = filter;
	nd->rn.hca = ib;
	nd->rn.port_num = port;
	nd->rn.mtu = dev->mtu;
	nd->rn.send = send;
	nd->rn.attach_mcast = join;
	nd->rn.detach_mcast = leave;
	nd->rn.set_id = set_id;
	SOFT_SET_TX_TIMEOUT(&nd->rn, tx_timeout);
	dev->netdev_ops = &filter_ops;
	dev->priv_destructor = destroy;
	dev->needs_free_netdev = true;
	return 0;
}

static int get_params(struct ib_device *ib, soft_port_number port, enum rdma_netdev_t type,
		      struct rdma_netdev_alloc_params *params)
{
	int ret = soft_netdev_may(ib, type);

	if (ret)
		return ret;
	*params = (struct rdma_netdev_alloc_params){
		.sizeof_priv = sizeof(struct filter_netdev),
		.txqs = QUEUES,
		.rxqs = 1,
		.initialize_rdma_netdev = initialize,
	};
	return 0;
}

const struct ib_device_ops soft_filter_ops = { .rdma_netdev_get_params = get_params };
