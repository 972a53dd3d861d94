// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rdma_netdev for IPoIB, as some HCAs' drivers have one (RDMA_NETDEV_IPOIB): with a UD queue pair, rings and NAPI of
 * its own. Its client, ib_ipoib, does joins, paths, neighbours and the interface's life, and calls here to send, to
 * attach groups and for the net_device_ops that this replaces. Datagrams only, without offloads.
 */
#include "netdev.h"
#include "compat.h"
#include "glue.h"
#include <linux/module.h>
#include <linux/netdevice.h>

static const struct fabric_port *port_of(const struct soft_netdev *nd)
{
	return fabric_hca_port(soft_fabric, nd->slot->index);
}

/* Sending */

static int send_datagram(struct soft_netdev *nd, struct sk_buff *skb, struct ib_ah *ah, u32 qpn)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)skb->data,
		.length = skb->len,
		.lkey = nd->pd->local_dma_lkey,
	};
	struct ib_ud_wr ud = {
		.wr = { .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED },
		.ah = ah,
		.remote_qpn = qpn,
		.remote_qkey = nd->qkey,
	};

	return ib_post_send(nd->qp, &ud.wr, NULL);
}

/*
 * Returns the ring position that the client expects: 0 lets it free the address handle at any time, since that is not
 * accessed any more. CONTEXT: under the transmit lock.
 */
static int send(struct net_device *dev, struct sk_buff *skb, struct ib_ah *ah, u32 qpn)
{
	struct soft_netdev *nd = netdev_priv(dev);

	if (!nd->open || soft_netdev_is_full(nd) || skb->len > nd->rn.mtu + SOFT_ENCAPSULATION_BYTES ||
	    skb_linearize(skb)) {
		nd->tx_dropped++;
		dev_kfree_skb_any(skb);
		return 0;
	}
	skb_orphan(skb);
	skb_dst_drop(skb);
	if (send_datagram(nd, skb, ah, qpn)) {
		nd->tx_errors++;
		dev_kfree_skb_any(skb);
		return 0;
	}
	COUNT(nd->slot, accelerated_sends);
	nd->tx_packets++;
	nd->tx_bytes += skb->len;
	nd->sends[nd->send_head++ % SOFT_SENDS] = skb;
	soft_netdev_stop_if_full(nd);
	return 0;
}

static void reap_sends(struct soft_netdev *nd)
{
	struct ib_wc wc;

	netif_tx_lock(nd->dev);
	while (ib_poll_cq(nd->send_cq, 1, &wc) > 0) {
		if (wc.status != IB_WC_SUCCESS)
			nd->tx_errors++;
		dev_kfree_skb_any(nd->sends[nd->send_tail++ % SOFT_SENDS]);
	}
	if (nd->send_head - nd->send_tail < nd->ring / 2 && netif_queue_stopped(nd->dev))
		netif_wake_queue(nd->dev);
	netif_tx_unlock(nd->dev);
}

/* Receiving */

static u32 receive_bytes(const struct soft_netdev *nd)
{
	return sizeof(struct ib_grh) + ib_mtu_enum_to_int(port_of(nd)->mtu);
}

static struct sk_buff *new_buffer(struct soft_netdev *nd)
{
	struct sk_buff *skb = netdev_alloc_skb(nd->dev, SOFT_PSEUDO_HEADER_BYTES + receive_bytes(nd));

	/* Aligns the IP header. */
	if (skb)
		skb_reserve(skb, SOFT_PSEUDO_HEADER_BYTES);
	return skb;
}

static int post_receive(struct soft_netdev *nd, u32 index)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)nd->receives[index]->data,
		.length = receive_bytes(nd),
		.lkey = nd->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_id = index, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(nd->qp, &wr, NULL);
}

static u8 packet_type(const struct net_device *dev, const struct ib_wc *wc, const struct ib_grh *grh)
{
	if (!(wc->wc_flags & IB_WC_GRH) || grh->dgid.raw[0] != 0xff)
		return PACKET_HOST;
	return memcmp(&grh->dgid, dev->broadcast + 4, sizeof(grh->dgid)) ? PACKET_MULTICAST : PACKET_BROADCAST;
}

static void hand_up(struct soft_netdev *nd, struct sk_buff *skb, const struct ib_wc *wc)
{
	skb_put(skb, wc->byte_len);
	skb->pkt_type = packet_type(nd->dev, wc, (struct ib_grh *)skb->data);
	skb_pull(skb, sizeof(struct ib_grh));
	soft_netdev_set_headers(skb);
	COUNT(nd->slot, accelerated_receives);
	nd->rx_packets++;
	nd->rx_bytes += skb->len;
	if (skb->pkt_type == PACKET_MULTICAST)
		nd->rx_multicast++;
	napi_gro_receive(&nd->napi, skb);
}

/* Own packet to a group. */
static bool is_echo(const struct soft_netdev *nd, const struct ib_wc *wc)
{
	return wc->slid == port_of(nd)->lid && wc->src_qp == nd->qp->qp_num;
}

static void receive(struct soft_netdev *nd, const struct ib_wc *wc)
{
	struct sk_buff **slot = &nd->receives[wc->wr_id], *skb = *slot, *fresh = NULL;

	if (wc->status != IB_WC_SUCCESS || wc->byte_len < sizeof(struct ib_grh) + SOFT_ENCAPSULATION_BYTES)
		nd->rx_errors++;
	else if (!is_echo(nd, wc)) {
		fresh = new_buffer(nd);
		if (!fresh)
			nd->rx_dropped++;
	}
	if (fresh) {
		*slot = fresh;
		hand_up(nd, skb, wc);
	}
	if (wc->status != IB_WC_WR_FLUSH_ERR && post_receive(nd, wc->wr_id))
		netdev_warn_once(nd->dev, "a receive cannot be posted\n");
}

static int poll(struct napi_struct *napi, int budget)
{
	struct soft_netdev *nd = container_of(napi, struct soft_netdev, napi);
	enum ib_cq_notify_flags notify = IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS;
	struct ib_wc wc;
	int done = 0;

	reap_sends(nd);
	while (done < budget && ib_poll_cq(nd->recv_cq, 1, &wc) > 0) {
		receive(nd, &wc);
		done++;
	}
	if (done < budget && napi_complete_done(napi, done)) {
		int missed = ib_req_notify_cq(nd->recv_cq, notify);

		if (ib_req_notify_cq(nd->send_cq, notify) > 0 || missed > 0)
			napi_schedule(napi);
	}
	return done;
}

static void completion(struct ib_cq *cq, void *context)
{
	struct soft_netdev *nd = context;

	napi_schedule(&nd->napi);
}

/* Groups and keys */

static int join(struct net_device *dev, struct ib_device *ib, union ib_gid *mgid, u16 mlid, int set_qkey, u32 qkey)
{
	struct soft_netdev *nd = netdev_priv(dev);
	struct ib_qp_attr attr = { .qkey = qkey };
	int ret = 0;

	if (set_qkey) {
		nd->qkey = qkey;
		ret = ib_modify_qp(nd->qp, &attr, IB_QP_QKEY);
	}
	return ret ?: ib_attach_mcast(nd->qp, mgid, mlid);
}

static int leave(struct net_device *dev, struct ib_device *ib, union ib_gid *mgid, u16 mlid)
{
	struct soft_netdev *nd = netdev_priv(dev);

	return ib_detach_mcast(nd->qp, mgid, mlid);
}

/* Index of the interface's P_Key: used from the next open on. */
static void set_id(struct net_device *dev, int id)
{
	struct soft_netdev *nd = netdev_priv(dev);

	nd->pkey_index = id;
}

static void tx_timeout(struct net_device *dev, unsigned int queue)
{
	struct soft_netdev *nd = netdev_priv(dev);

	netdev_warn(dev, "the rdma_netdev's sends are stuck: %u of %u\n", nd->send_head - nd->send_tail, nd->ring);
}

/* Open and closed */

static int start_qp(struct soft_netdev *nd)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.qkey = nd->qkey,
		.pkey_index = nd->pkey_index,
		.port_num = 1,
	};
	int ret = ib_modify_qp(nd->qp, &attr, IB_QP_STATE | IB_QP_QKEY | IB_QP_PKEY_INDEX | IB_QP_PORT);

	attr.qp_state = IB_QPS_RTR;
	ret = ret ?: ib_modify_qp(nd->qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	return ret ?: ib_modify_qp(nd->qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
}

/* Posted work requests do not complete afterwards; their buffers are free. */
static void reset_qp(struct soft_netdev *nd)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	unsigned int i;

	if (ib_modify_qp(nd->qp, &attr, IB_QP_STATE))
		netdev_warn(nd->dev, "the queue pair cannot be reset\n");
	for (i = 0; i < SOFT_RECEIVES; i++) {
		dev_kfree_skb(nd->receives[i]);
		nd->receives[i] = NULL;
	}
	for (; nd->send_tail != nd->send_head; nd->send_tail++)
		dev_kfree_skb(nd->sends[nd->send_tail % SOFT_SENDS]);
}

static int fill_receives(struct soft_netdev *nd)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < SOFT_RECEIVES && !ret; i++) {
		nd->receives[i] = new_buffer(nd);
		ret = nd->receives[i] ? post_receive(nd, i) : -ENOMEM;
	}
	return ret;
}

static void set_open(struct soft_netdev *nd, bool open)
{
	netif_tx_lock_bh(nd->dev);
	nd->open = open;
	netif_tx_unlock_bh(nd->dev);
}

static int lower_open(struct net_device *dev)
{
	struct soft_netdev *nd = netdev_priv(dev);
	int ret;

	soft_check_ops_lock(dev);
	if (nd->open)
		return 0;
	ret = start_qp(nd) ?: fill_receives(nd);
	if (ret) {
		reset_qp(nd);
		return ret;
	}
	netif_napi_add_locked(dev, &nd->napi, poll);
	napi_enable_locked(&nd->napi);
	set_open(nd, true);
	/* The first poll arms the completion queues. */
	local_bh_disable();
	napi_schedule(&nd->napi);
	local_bh_enable();
	return 0;
}

/* Called by the client also if it could not open for lack of a P_Key. */
static int lower_stop(struct net_device *dev)
{
	struct soft_netdev *nd = netdev_priv(dev);

	soft_check_ops_lock(dev);
	if (!nd->open)
		return 0;
	set_open(nd, false);
	napi_disable_locked(&nd->napi);
	netif_napi_del_locked(&nd->napi);
	reset_qp(nd);
	return 0;
}

static int lower_change_mtu(struct net_device *dev, int mtu)
{
	soft_check_ops_lock(dev);
	WRITE_ONCE(dev->mtu, mtu);
	return 0;
}

static void lower_get_stats64(struct net_device *dev, struct rtnl_link_stats64 *stats)
{
	const struct soft_netdev *nd = netdev_priv(dev);

	/* Packets that the client dropped itself. */
	netdev_stats_to_stats64(stats, &dev->stats);
	stats->rx_packets += nd->rx_packets;
	stats->rx_bytes += nd->rx_bytes;
	stats->multicast += nd->rx_multicast;
	stats->rx_dropped += nd->rx_dropped;
	stats->rx_errors += nd->rx_errors;
	stats->tx_packets += nd->tx_packets;
	stats->tx_bytes += nd->tx_bytes;
	stats->tx_dropped += nd->tx_dropped;
	stats->tx_errors += nd->tx_errors;
}

/* Creation and destruction */

static struct ib_cq *make_cq(struct soft_netdev *nd, int entries)
{
	struct ib_cq_init_attr attr = { .cqe = entries };

	return ib_create_cq(nd->rn.hca, completion, NULL, nd, &attr);
}

static int make_qp(struct soft_netdev *nd)
{
	struct ib_qp_init_attr attr = {
		.send_cq = nd->send_cq,
		.recv_cq = nd->recv_cq,
		.cap = { .max_send_wr = SOFT_SENDS,
			 .max_recv_wr = SOFT_RECEIVES,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_UD,
	};

	nd->qp = ib_create_qp(nd->pd, &attr);
	return PTR_ERR_OR_ZERO(nd->qp);
}

/* No connected-mode flag, and the queue pair's number. */
static void set_address(struct soft_netdev *nd)
{
	__be32 first = cpu_to_be32(nd->qp->qp_num);

	SOFT_DEV_ADDR_MOD(nd->dev, 0, (u8 *)&first, sizeof(first));
}

static int lower_init(struct net_device *dev)
{
	const netdev_features_t offloads = NETIF_F_CSUM_MASK | NETIF_F_RXCSUM | NETIF_F_ALL_TSO | NETIF_F_SG;
	struct soft_netdev *nd = netdev_priv(dev);
	int ret;

	nd->pd = ib_alloc_pd(nd->rn.hca, 0);
	if (IS_ERR(nd->pd))
		return PTR_ERR(nd->pd);
	nd->send_cq = make_cq(nd, SOFT_SENDS);
	ret = PTR_ERR_OR_ZERO(nd->send_cq);
	if (ret)
		goto no_send_cq;
	nd->recv_cq = make_cq(nd, SOFT_RECEIVES);
	ret = PTR_ERR_OR_ZERO(nd->recv_cq);
	if (ret)
		goto no_recv_cq;
	ret = make_qp(nd);
	if (ret)
		goto no_qp;
	set_address(nd);
	/* The client has set the features that the HCA offers to other interfaces. */
	dev->features &= ~offloads;
	dev->hw_features &= ~offloads;
	return 0;
no_qp:
	ib_destroy_cq(nd->recv_cq);
no_recv_cq:
	ib_destroy_cq(nd->send_cq);
no_send_cq:
	ib_dealloc_pd(nd->pd);
	return ret;
}

static void lower_uninit(struct net_device *dev)
{
	struct soft_netdev *nd = netdev_priv(dev);

	ib_destroy_qp(nd->qp);
	ib_destroy_cq(nd->recv_cq);
	ib_destroy_cq(nd->send_cq);
	ib_dealloc_pd(nd->pd);
}

static const struct net_device_ops lower_ops = {
	.ndo_init = lower_init,
	.ndo_uninit = lower_uninit,
	.ndo_open = lower_open,
	.ndo_stop = lower_stop,
	.ndo_change_mtu = lower_change_mtu,
	.ndo_get_stats64 = lower_get_stats64,
	.SOFT_NDO_IOCTL = soft_netdev_ioctl,
};

static void destroy(struct net_device *dev)
{
	struct soft_netdev *nd = netdev_priv(dev);

	kfree(nd->sends);
	kfree(nd->receives);
	atomic64_dec(&nd->slot->counters.accelerated_devices);
}

/* The client replaces the net_device_ops by its own, and keeps them; likewise the destructor. */
static int initialize(struct ib_device *ib, soft_port_number port, struct net_device *dev, void *param)
{
	struct soft_netdev *nd = netdev_priv(dev);

	nd->dev = dev;
	nd->slot = to_hca(ib)->slot;
	nd->ring = SOFT_SENDS;
	nd->sends = kcalloc(SOFT_SENDS, sizeof(*nd->sends), GFP_KERNEL);
	nd->receives = kcalloc(SOFT_RECEIVES, sizeof(*nd->receives), GFP_KERNEL);
	if (!nd->sends || !nd->receives) {
		kfree(nd->sends);
		kfree(nd->receives);
		return -ENOMEM;
	}
	COUNT(nd->slot, accelerated_devices);
	nd->rn.hca = ib;
	nd->rn.port_num = port;
	nd->rn.send = send;
	nd->rn.attach_mcast = join;
	nd->rn.detach_mcast = leave;
	nd->rn.set_id = set_id;
	SOFT_SET_TX_TIMEOUT(&nd->rn, tx_timeout);
	dev->netdev_ops = &lower_ops;
	soft_netdev_set_ethtool_ops(nd);
	dev->priv_destructor = destroy;
	soft_request_ops_lock(dev);
	return 0;
}

static int get_params(struct ib_device *ib, soft_port_number port, enum rdma_netdev_t type,
		      struct rdma_netdev_alloc_params *params)
{
	int ret = soft_netdev_may(ib, type);

	if (ret)
		return ret;
	*params = (struct rdma_netdev_alloc_params){
		.sizeof_priv = sizeof(struct soft_netdev),
		.txqs = 1,
		.rxqs = 1,
		.initialize_rdma_netdev = initialize,
	};
	return 0;
}

const struct ib_device_ops soft_netdev_ops = { .rdma_netdev_get_params = get_params };
