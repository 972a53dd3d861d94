// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Helpers for HCAs, address handles, queue pairs and work requests: functions of the C boundary that need control flow
 * or several kernel calls. The comment above each gives the reason.
 */
#include "../compat.h"
#include "../objects.h"
#include <linux/err.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>
#include <shim/ah.h>
#include <shim/device.h>
#include <shim/qp.h>
#include <shim/rc_qp.h>
#include <shim/wr.h>

/* struct ib_port_attr is larger than IPoIB needs and differs between kernels; MTU codes become bytes. */
SHIM int shim_helper_ib_query_port(struct ib_device *ca, uint32_t port, struct shim_port *attributes)
{
	struct ib_port_attr attr;
	int ret = ib_query_port(ca, port, &attr);

	if (ret)
		return ret;
	attributes->active = attr.state == IB_PORT_ACTIVE;
	attributes->lid = attr.lid;
	attributes->max_mtu = rdma_mtu_from_attr(ca, port, &attr);
	attributes->speed = attr.active_speed;
	attributes->width = attr.active_width;
	attributes->active_mtu = ib_mtu_enum_to_int(attr.active_mtu);
	attributes->omni_path = rdma_core_cap_opa_port(ca, port);
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

static void on_event(struct ib_event_handler *native, struct ib_event *event)
{
	struct shim_event_handler *handler = container_of(native, struct shim_event_handler, handler);

	handler->on_event(handler->context, event->event, event->element.port_num);
}

/* INIT_IB_EVENT_HANDLER() is a macro; the handler calls back into C++. */
SHIM void shim_helper_register_event_handler(struct ib_device *ca, struct shim_event_handler *handler,
					     void (*callback)(void *context, unsigned int event, uint32_t port),
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

/*
 * ib_cm computes attributes and mask from the messages; both belong to kernel structures. It has none if the identifier
 * left the state in which they were exchanged.
 */
SHIM int shim_helper_rc_qp_to_rtr(struct ib_qp *qp, struct ib_cm_id *id, uint32_t psn, uint8_t rnr_timer)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };
	int mask;

	if (ib_cm_init_qp_attr(id, &attr, &mask))
		return -ECONNRESET;
	attr.rq_psn = psn;
	attr.min_rnr_timer = rnr_timer;
	return ib_modify_qp(qp, &attr, mask | IB_QP_MIN_RNR_TIMER);
}

/* ib_cm computes attributes and mask, which belong to kernel structures; it may have none, as above. */
SHIM int shim_helper_rc_qp_to_rts(struct ib_qp *qp, struct ib_cm_id *id, uint8_t max_timeout, uint8_t max_rnr_retries)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS };
	int mask;

	if (ib_cm_init_qp_attr(id, &attr, &mask))
		return -ECONNRESET;
	attr.timeout = min(attr.timeout, max_timeout);
	attr.rnr_retry = min(attr.rnr_retry, max_rnr_retries);
	return ib_modify_qp(qp, &attr, mask);
}

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

/* bad_wr points to the first member of a slot, whose type is the kernel's. */
SHIM int shim_helper_post_recv(struct ib_qp *qp, struct shim_recv_wr *first, struct shim_recv_wr **refused)
{
	const struct ib_recv_wr *bad = &first->wr;
	const int error = ib_post_recv(qp, &first->wr, &bad);

	*refused = error ? (struct shim_recv_wr *)bad : NULL;
	return error;
}

/* bad_wr points to the first member of a slot, whose type is the kernel's. */
SHIM int shim_helper_post_srq_recv(struct ib_srq *srq, struct shim_recv_wr *first, struct shim_recv_wr **refused)
{
	const struct ib_recv_wr *bad = &first->wr;
	const int error = ib_post_srq_recv(srq, &first->wr, &bad);

	*refused = error ? (struct shim_recv_wr *)bad : NULL;
	return error;
}
