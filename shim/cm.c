// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "compat.h"
#include "objects.h"
#include <linux/random.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_sa.h>
#include <shim/cm.h>

static_assert(SHIM_CM_REQ_PRIVATE_BYTES == (int)IB_CM_REQ_PRIVATE_DATA_SIZE);
static_assert(SHIM_CM_REP_PRIVATE_BYTES == (int)IB_CM_REP_PRIVATE_DATA_SIZE);
static_assert(SHIM_CM_REJ_NO_QP == (int)IB_CM_REJ_NO_QP);
static_assert(SHIM_CM_REJ_NO_RESOURCES == (int)IB_CM_REJ_NO_RESOURCES);
static_assert(SHIM_CM_REJ_INVALID_TRANSPORT_TYPE == (int)IB_CM_REJ_INVALID_TRANSPORT_TYPE);
static_assert(SHIM_CM_REJ_STALE_CONN == (int)IB_CM_REJ_STALE_CONN);
static_assert(SHIM_CM_REJ_CONSUMER_DEFINED == (int)IB_CM_REJ_CONSUMER_DEFINED);

static enum shim_cm_event event_of(enum ib_cm_event_type type)
{
	switch (type) {
	case IB_CM_REQ_RECEIVED:
		return SHIM_CM_REQ;
	case IB_CM_REP_RECEIVED:
		return SHIM_CM_REP;
	case IB_CM_RTU_RECEIVED:
		return SHIM_CM_RTU;
	case IB_CM_REJ_RECEIVED:
		return SHIM_CM_REJ;
	case IB_CM_DREQ_RECEIVED:
		return SHIM_CM_DREQ;
	case IB_CM_DREP_RECEIVED:
		return SHIM_CM_DREP;
	case IB_CM_REQ_ERROR:
		return SHIM_CM_REQ_ERROR;
	case IB_CM_REP_ERROR:
		return SHIM_CM_REP_ERROR;
	case IB_CM_DREQ_ERROR:
		return SHIM_CM_DREQ_ERROR;
	case IB_CM_TIMEWAIT_EXIT:
		return SHIM_CM_TIMEWAIT_EXIT;
	default:
		return SHIM_CM_OTHER;
	}
}

static int on_cm_event(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct shim_cm_message message = { .event = event_of(event->event) };

	switch (message.event) {
	case SHIM_CM_REQ:
		message.private_data = event->private_data;
		memcpy(&message.peer, &event->param.req_rcvd.primary_path->dgid, sizeof(message.peer));
		message.peer_lid = be32_to_cpu(sa_path_get_dlid(event->param.req_rcvd.primary_path));
		message.reliable = event->param.req_rcvd.qp_type == IB_QPT_RC;
		message.remote_qpn = event->param.req_rcvd.remote_qpn;
		break;
	case SHIM_CM_REP:
		message.private_data = event->private_data;
		message.remote_qpn = event->param.rep_rcvd.remote_qpn;
		break;
	case SHIM_CM_REJ:
		message.reason = event->param.rej_rcvd.reason;
		break;
	default:
		break;
	}
	return ipoib_cm_event(id, &message, id->context);
}

SHIM struct ib_cm_id *shim_cm_create(struct ib_device *ca, void *context)
{
	return ib_create_cm_id(ca, on_cm_event, context);
}

SHIM void shim_cm_set_context(struct ib_cm_id *id, void *context) { id->context = context; }
SHIM void shim_cm_destroy(struct ib_cm_id *id) { ib_destroy_cm_id(id); }

SHIM int shim_cm_listen(struct ib_cm_id *id, uint64_t service_id)
{
	return SHIM_CM_LISTEN(id, cpu_to_be64(service_id));
}

SHIM int shim_cm_send_req(struct ib_cm_id *id, const struct shim_cm_request *request)
{
	struct ib_cm_req_param param = {
		.primary_path = request->path,
		.service_id = cpu_to_be64(request->service_id),
		.qp_num = request->qpn,
		.qp_type = IB_QPT_RC,
		.private_data = request->private_data,
		.private_data_len = request->private_bytes,
		.responder_resources = 4,
		.remote_cm_response_timeout = 20,
		.local_cm_response_timeout = 20,
		.max_cm_retries = 15,
		.srq = request->srq,
	};

	return ib_send_cm_req(id, &param);
}

SHIM int shim_cm_send_rep(struct ib_cm_id *id, const struct shim_cm_reply *reply)
{
	struct ib_cm_rep_param param = {
		.qp_num = reply->qpn,
		.starting_psn = reply->psn,
		.private_data = reply->private_data,
		.private_data_len = reply->private_bytes,
		.rnr_retry_count = reply->rnr_retries,
		.srq = reply->srq,
	};

	return ib_send_cm_rep(id, &param);
}

SHIM int shim_cm_send_rtu(struct ib_cm_id *id) { return ib_send_cm_rtu(id, NULL, 0); }
SHIM int shim_cm_send_drep(struct ib_cm_id *id) { return ib_send_cm_drep(id, NULL, 0); }

SHIM void shim_cm_send_rej(struct ib_cm_id *id, enum shim_cm_reason reason)
{
	ib_send_cm_rej(id, (enum ib_cm_rej_reason)reason, NULL, 0, NULL, 0);
}

static void on_qp_event(struct ib_event *event, void *context)
{
	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		ipoib_last_wqe_reached(context);
}

SHIM struct ib_qp *shim_rc_qp_create(struct ib_pd *pd, const struct shim_rc_qp *wanted)
{
	struct ib_qp_init_attr attr = {
		.event_handler = on_qp_event,
		.qp_context = wanted->context,
		.send_cq = wanted->send_cq,
		.recv_cq = wanted->recv_cq,
		.srq = wanted->srq,
		.cap = {
			.max_send_wr = wanted->send_wrs,
			.max_send_sge = wanted->send_sges,
			.max_recv_wr = wanted->recv_wrs,
			.max_recv_sge = wanted->recv_sges,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};

	return ib_create_qp(pd, &attr);
}

SHIM int shim_rc_qp_to_init(struct ib_qp *qp, uint32_t port, uint16_t pkey_index)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = port,
		.pkey_index = pkey_index,
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE,
	};

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS);
}

SHIM int shim_rc_qp_to_rtr(struct ib_qp *qp, struct ib_cm_id *id, uint32_t psn, uint8_t rnr_timer)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };
	int mask, ret = ib_cm_init_qp_attr(id, &attr, &mask);

	if (ret)
		return ret;
	attr.rq_psn = psn;
	attr.min_rnr_timer = rnr_timer;
	return ib_modify_qp(qp, &attr, mask | IB_QP_MIN_RNR_TIMER);
}

SHIM int shim_rc_qp_to_rts(struct ib_qp *qp, struct ib_cm_id *id)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS };
	int mask, ret = ib_cm_init_qp_attr(id, &attr, &mask);

	return ret ?: ib_modify_qp(qp, &attr, mask);
}

SHIM struct ib_srq *shim_srq_create(struct ib_pd *pd, unsigned int wrs, unsigned int sges)
{
	struct ib_srq_init_attr attr = {
		.attr = { .max_wr = wrs, .max_sge = sges },
		.srq_type = IB_SRQT_BASIC,
	};

	return ib_create_srq(pd, &attr);
}

SHIM void shim_srq_destroy(struct ib_srq *srq) { ib_destroy_srq(srq); }
SHIM unsigned int shim_ib_max_srq_sge(const struct ib_device *ca)
{
	return ca->attrs.max_srq ? ca->attrs.max_srq_sge : 0;
}

SHIM int shim_srq_post_recv(struct ib_srq *srq, struct shim_recv_wr *first, struct shim_recv_wr **refused)
{
	/* As in shim_post_recv(). */
	const struct ib_recv_wr *bad = &first->wr;
	const int error = ib_post_srq_recv(srq, &first->wr, &bad);

	*refused = error ? (struct shim_recv_wr *)bad : NULL;
	return error;
}

SHIM void shim_path_copy(struct sa_path_rec *to, const struct sa_path_rec *from) { *to = *from; }
SHIM uint32_t shim_random(void) { return get_random_u32(); }
