// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "compat.h"
#include "objects.h"
#include <linux/err.h>
#include <linux/skbuff.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>
#include <shim/verbs.h>

static_assert(sizeof(struct shim_sge) == sizeof(struct ib_sge));
static_assert(offsetof(struct shim_sge, length) == offsetof(struct ib_sge, length));
static_assert(offsetof(struct shim_sge, lkey) == offsetof(struct ib_sge, lkey));
static_assert(sizeof(struct shim_gid) == sizeof(union ib_gid));

static __always_inline const struct ib_wc *completion(const struct shim_wc *wc) { return (const struct ib_wc *)wc; }

SHIM const char *shim_ib_device_name(const struct ib_device *ca) { return dev_name(&ca->dev); }
SHIM unsigned int shim_ib_max_send_sge(const struct ib_device *ca) { return ca->attrs.max_send_sge; }
SHIM unsigned int shim_ib_abilities(const struct ib_device *ca)
{
	return (ca->attrs.max_send_sge > 1 ? SHIM_CAN_GATHER : 0) |
	       (ca->attrs.device_cap_flags & IB_DEVICE_UD_IP_CSUM ? SHIM_CAN_CHECKSUM : 0) |
	       (SHIM_KERNEL_CAP_FLAGS(ca) & IBK_UD_TSO ? SHIM_CAN_SEGMENT : 0) |
	       (SHIM_KERNEL_CAP_FLAGS(ca) & IBK_VIRTUAL_FUNCTION ? SHIM_IS_FUNCTION : 0);
}

SHIM unsigned int shim_ib_comp_vectors(const struct ib_device *ca) { return ca->num_comp_vectors; }

SHIM int shim_ib_query_port(struct ib_device *ca, uint32_t port, struct shim_port *attributes)
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

SHIM int shim_ib_query_gid(struct ib_device *ca, uint32_t port, int index, struct shim_gid *gid)
{
	return rdma_query_gid(ca, port, index, (union ib_gid *)gid);
}

SHIM int shim_ib_query_port_gid(struct ib_device *ca, uint32_t port, int index, struct shim_gid *gid)
{
	return ca->ops.query_gid(ca, port, index, (union ib_gid *)gid);
}

SHIM void shim_ib_report_gid_change(struct ib_device *ca, uint32_t port)
{
	struct ib_event event = { .device = ca, .event = IB_EVENT_GID_CHANGE, .element.port_num = port };

	ib_dispatch_event(&event);
}

SHIM int shim_ib_find_gid(struct ib_device *ca, uint32_t port, const struct shim_gid *gid, uint16_t *index)
{
	const struct ib_gid_attr *attr =
		rdma_find_gid_by_port(ca, (const union ib_gid *)gid, IB_GID_TYPE_IB, port, NULL);

	if (IS_ERR(attr))
		return PTR_ERR(attr);
	*index = attr->index;
	rdma_put_gid_attr(attr);
	return 0;
}

SHIM int shim_ib_query_pkey(struct ib_device *ca, uint32_t port, uint16_t index, uint16_t *pkey)
{
	return ib_query_pkey(ca, port, index, pkey);
}

SHIM int shim_ib_find_pkey(struct ib_device *ca, uint32_t port, uint16_t pkey, uint16_t *index)
{
	return ib_find_pkey(ca, port, pkey, index);
}

SHIM int shim_ib_find_cached_pkey(struct ib_device *ca, uint32_t port, uint16_t pkey, uint16_t *index)
{
	return ib_find_cached_pkey(ca, port, pkey, index);
}

SHIM int shim_pointer_error(const void *pointer) { return PTR_ERR_OR_ZERO(pointer); }

SHIM struct ib_pd *shim_pd_create(struct ib_device *ca) { return ib_alloc_pd(ca, 0); }
SHIM void shim_pd_destroy(struct ib_pd *pd) { ib_dealloc_pd(pd); }
SHIM uint32_t shim_pd_lkey(const struct ib_pd *pd) { return pd->local_dma_lkey; }

SHIM struct ib_cq *shim_cq_create(struct ib_device *ca, unsigned int entries, unsigned int vector,
				  void (*completed)(struct ib_cq *cq, void *context), void *context)
{
	struct ib_cq_init_attr attr = { .cqe = entries, .comp_vector = vector };

	return ib_create_cq(ca, completed, NULL, context, &attr);
}

SHIM void shim_cq_destroy(struct ib_cq *cq) { ib_destroy_cq(cq); }

SHIM int shim_cq_poll(struct ib_cq *cq, int entries, struct shim_wc *wc)
{
	return ib_poll_cq(cq, entries, (struct ib_wc *)wc);
}

SHIM bool shim_cq_arm(struct ib_cq *cq)
{
	return ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) != 0;
}

SHIM int shim_cq_moderate(struct ib_cq *cq, unsigned int entries, unsigned int usecs)
{
	return rdma_set_cq_moderation(cq, entries, usecs);
}

SHIM struct shim_wc *shim_wc_at(struct shim_wc *wc, int index)
{
	return (struct shim_wc *)((struct ib_wc *)wc + index);
}

SHIM uint64_t shim_wc_id(const struct shim_wc *wc) { return completion(wc)->wr_id; }
SHIM bool shim_wc_ok(const struct shim_wc *wc) { return completion(wc)->status == IB_WC_SUCCESS; }
SHIM bool shim_wc_flushed(const struct shim_wc *wc) { return completion(wc)->status == IB_WC_WR_FLUSH_ERR; }
SHIM int shim_wc_status(const struct shim_wc *wc) { return completion(wc)->status; }
SHIM unsigned int shim_wc_vendor_error(const struct shim_wc *wc) { return completion(wc)->vendor_err; }
SHIM void *shim_wc_qp_context(const struct shim_wc *wc) { return completion(wc)->qp->qp_context; }
SHIM unsigned int shim_wc_bytes(const struct shim_wc *wc) { return completion(wc)->byte_len; }
SHIM bool shim_wc_has_grh(const struct shim_wc *wc) { return completion(wc)->wc_flags & IB_WC_GRH; }
SHIM bool shim_wc_checksum_ok(const struct shim_wc *wc) { return completion(wc)->wc_flags & IB_WC_IP_CSUM_OK; }
SHIM uint32_t shim_wc_source_qpn(const struct shim_wc *wc) { return completion(wc)->src_qp; }
SHIM uint16_t shim_wc_slid(const struct shim_wc *wc) { return completion(wc)->slid; }

SHIM struct ib_qp *shim_qp_create(struct ib_pd *pd, struct ib_cq *send_cq, struct ib_cq *recv_cq, unsigned int send_wrs,
				  unsigned int recv_wrs, unsigned int send_sges)
{
	struct ib_qp_init_attr attr = {
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.cap = {
			.max_send_wr = send_wrs,
			.max_recv_wr = recv_wrs,
			.max_send_sge = send_sges,
			.max_recv_sge = 1,
		},
		/* The driver says which sends report their completion. */
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_UD,
	};

	if (SHIM_KERNEL_CAP_FLAGS(pd->device) & IBK_UD_TSO)
		attr.create_flags |= IB_QP_CREATE_IPOIB_UD_LSO;
	if (SHIM_KERNEL_CAP_FLAGS(pd->device) & IBK_BLOCK_MULTICAST_LOOPBACK)
		attr.create_flags |= IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	if (pd->device->attrs.device_cap_flags & IB_DEVICE_MANAGED_FLOW_STEERING)
		attr.create_flags |= IB_QP_CREATE_NETIF_QP;
	if (SHIM_KERNEL_CAP_FLAGS(pd->device) & IBK_RDMA_NETDEV_OPA)
		attr.create_flags |= IB_QP_CREATE_NETDEV_USE;
	return ib_create_qp(pd, &attr);
}

SHIM void shim_qp_destroy(struct ib_qp *qp) { ib_destroy_qp(qp); }
SHIM uint32_t shim_qp_number(const struct ib_qp *qp) { return qp->qp_num; }

SHIM int shim_qp_to_init(struct ib_qp *qp, uint32_t port, uint16_t pkey_index, uint32_t qkey)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = port,
		.pkey_index = pkey_index,
		.qkey = qkey,
	};

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX | IB_QP_QKEY);
}

SHIM int shim_qp_to_rtr(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };

	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}

SHIM int shim_qp_to_rts(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS, .sq_psn = 0 };

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
}

SHIM int shim_qp_to_error(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}

SHIM int shim_qp_to_reset(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}

SHIM int shim_qp_recover_send(struct ib_qp *qp)
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

SHIM int shim_qp_set_qkey(struct ib_qp *qp, uint32_t qkey)
{
	struct ib_qp_attr attr = { .qkey = qkey };

	return ib_modify_qp(qp, &attr, IB_QP_QKEY);
}

SHIM int shim_qp_attach(struct ib_qp *qp, const struct shim_gid *mgid, uint16_t mlid)
{
	return ib_attach_mcast(qp, (union ib_gid *)mgid, mlid);
}

SHIM void shim_qp_detach(struct ib_qp *qp, const struct shim_gid *mgid, uint16_t mlid)
{
	ib_detach_mcast(qp, (union ib_gid *)mgid, mlid);
}

SHIM void shim_send_wr_init(struct shim_send_wr *wr, uint64_t id, struct shim_sge *sges)
{
	wr->wr.wr.wr_id = id;
	wr->wr.wr.sg_list = (struct ib_sge *)sges;
}

SHIM void shim_send_wr_set_datagram(struct shim_send_wr *wr, unsigned int sges, struct ib_ah *ah, uint32_t qpn,
				    uint32_t qkey)
{
	wr->wr.wr.opcode = IB_WR_SEND;
	wr->wr.wr.num_sge = sges;
	wr->wr.ah = ah;
	wr->wr.remote_qpn = qpn;
	wr->wr.remote_qkey = qkey;
}

SHIM void shim_send_wr_set_segments(struct shim_send_wr *wr, void *headers, unsigned int header_bytes,
				    unsigned int segment_bytes)
{
	wr->wr.wr.opcode = IB_WR_LSO;
	wr->wr.header = headers;
	wr->wr.hlen = header_bytes;
	wr->wr.mss = segment_bytes;
}

SHIM void shim_send_wr_set_message(struct shim_send_wr *wr, unsigned int sges)
{
	wr->wr.wr.opcode = IB_WR_SEND;
	wr->wr.wr.num_sge = sges;
}

SHIM void shim_send_wr_set_flags(struct shim_send_wr *wr, bool signaled, bool checksum)
{
	wr->wr.wr.send_flags = (signaled ? IB_SEND_SIGNALED : 0) | (checksum ? IB_SEND_IP_CSUM : 0);
}

SHIM void shim_send_wr_signal(struct shim_send_wr *wr) { wr->wr.wr.send_flags |= IB_SEND_SIGNALED; }

SHIM void shim_send_wr_set_next(struct shim_send_wr *wr, struct shim_send_wr *next)
{
	wr->wr.wr.next = next ? &next->wr.wr : NULL;
}

SHIM int shim_post_send(struct ib_qp *qp, struct shim_send_wr *first, struct shim_send_wr **refused)
{
	/* Who says nothing of it took none. */
	const struct ib_send_wr *bad = &first->wr.wr;
	const int error = ib_post_send(qp, &first->wr.wr, &bad);

	if (refused)
		*refused = error ? container_of(bad, struct shim_send_wr, wr.wr) : NULL;
	return error;
}

SHIM void shim_recv_wr_init(struct shim_recv_wr *wr, uint64_t id, struct shim_sge *sges, unsigned int count)
{
	wr->wr.wr_id = id;
	wr->wr.sg_list = (struct ib_sge *)sges;
	wr->wr.num_sge = count;
}

SHIM void shim_recv_wr_set_next(struct shim_recv_wr *wr, struct shim_recv_wr *next)
{
	wr->wr.next = next ? &next->wr : NULL;
}

SHIM struct shim_recv_wr *shim_recv_wr_next(const struct shim_recv_wr *wr)
{
	return (struct shim_recv_wr *)wr->wr.next;
}

SHIM int shim_post_recv(struct ib_qp *qp, struct shim_recv_wr *first, struct shim_recv_wr **refused)
{
	/* Who says nothing of it took none. */
	const struct ib_recv_wr *bad = &first->wr;
	const int error = ib_post_recv(qp, &first->wr, &bad);

	*refused = error ? (struct shim_recv_wr *)bad : NULL;
	return error;
}

SHIM uint64_t shim_dma_map_to_device(struct ib_device *ca, void *address, size_t bytes)
{
	return ib_dma_map_single(ca, address, bytes, DMA_TO_DEVICE);
}

SHIM void shim_dma_unmap_to_device(struct ib_device *ca, uint64_t address, size_t bytes)
{
	ib_dma_unmap_single(ca, address, bytes, DMA_TO_DEVICE);
}

SHIM uint64_t shim_dma_map_frag(struct ib_device *ca, const struct sk_buff *skb, unsigned int frag)
{
	const skb_frag_t *f = &skb_shinfo(skb)->frags[frag];

	return ib_dma_map_page(ca, skb_frag_page(f), skb_frag_off(f), skb_frag_size(f), DMA_TO_DEVICE);
}

SHIM void shim_dma_unmap_frag(struct ib_device *ca, uint64_t address, size_t bytes)
{
	ib_dma_unmap_page(ca, address, bytes, DMA_TO_DEVICE);
}

SHIM uint64_t shim_dma_map_from_device(struct ib_device *ca, void *address, size_t bytes)
{
	return ib_dma_map_single(ca, address, bytes, DMA_FROM_DEVICE);
}

SHIM void shim_dma_unmap_from_device(struct ib_device *ca, uint64_t address, size_t bytes)
{
	ib_dma_unmap_single(ca, address, bytes, DMA_FROM_DEVICE);
}

SHIM void shim_dma_sync_for_cpu(struct ib_device *ca, uint64_t address, size_t bytes)
{
	ib_dma_sync_single_for_cpu(ca, address, bytes, DMA_FROM_DEVICE);
}

SHIM void shim_dma_sync_for_device(struct ib_device *ca, uint64_t address, size_t bytes)
{
	ib_dma_sync_single_for_device(ca, address, bytes, DMA_FROM_DEVICE);
}

SHIM bool shim_dma_failed(struct ib_device *ca, uint64_t address) { return ib_dma_mapping_error(ca, address); }

SHIM struct ib_ah *shim_ah_create(struct ib_pd *pd, const struct shim_ah_attributes *attributes)
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

SHIM struct ib_ah *shim_ah_create_from_path(struct ib_pd *pd, uint32_t port, struct sa_path_rec *record)
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

SHIM void shim_ah_destroy(struct ib_ah *ah) { rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE); }

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

SHIM void shim_events_start(struct ib_device *ca, struct shim_event_handler *handler,
			    void (*callback)(void *context, enum shim_event event, uint32_t port), void *context)
{
	INIT_IB_EVENT_HANDLER(&handler->handler, ca, on_event);
	handler->on_event = callback;
	handler->context = context;
	ib_register_event_handler(&handler->handler);
}

SHIM void shim_events_stop(struct shim_event_handler *handler) { ib_unregister_event_handler(&handler->handler); }
