// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The communication manager (IBA 12): listening, messages and their events. */
#include "compat.h"
#include <rdma/ib_cm.h>
#include <rdma/ib_sa.h>
#include <shim/cm.h>

static int on_cm_event(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct shim_cm_endpoint *endpoint = id->context;
	struct shim_cm_message message = { .event = event->event };

	switch (event->event) {
	case IB_CM_REQ_RECEIVED:
		message.private_data = event->private_data;
		memcpy(&message.peer, &event->param.req_rcvd.primary_path->dgid, sizeof(message.peer));
		message.peer_lid = be32_to_cpu(sa_path_get_dlid(event->param.req_rcvd.primary_path));
		message.reliable = event->param.req_rcvd.qp_type == IB_QPT_RC;
		message.packet_life_time = event->param.req_rcvd.primary_path->packet_life_time;
		break;
	case IB_CM_REP_RECEIVED:
		message.private_data = event->private_data;
		break;
	case IB_CM_REJ_RECEIVED:
		message.reason = event->param.rej_rcvd.reason;
		break;
	default:
		break;
	}
	return endpoint->handle(endpoint, id, &message);
}

SHIM struct ib_cm_id *shim_ib_create_cm_id(struct ib_device *ca, struct shim_cm_endpoint *endpoint)
{
	return ib_create_cm_id(ca, on_cm_event, endpoint);
}

SHIM void shim_cm_set_context(struct ib_cm_id *id, struct shim_cm_endpoint *endpoint) { id->context = endpoint; }
SHIM void shim_ib_destroy_cm_id(struct ib_cm_id *id) { ib_destroy_cm_id(id); }

SHIM int shim_ib_cm_listen(struct ib_cm_id *id, uint64_t service_id)
{
	return SHIM_CM_LISTEN(id, cpu_to_be64(service_id));
}

SHIM int shim_ib_send_cm_req(struct ib_cm_id *id, const struct shim_cm_request *request)
{
	struct ib_cm_req_param param = {
		.primary_path = request->path,
		.service_id = cpu_to_be64(request->service_id),
		.qp_num = request->qpn,
		.qp_type = IB_QPT_RC,
		.private_data = request->private_data,
		.private_data_len = request->private_bytes,
		.responder_resources = request->responder_resources,
		.remote_cm_response_timeout = request->remote_cm_response_timeout,
		.local_cm_response_timeout = request->local_cm_response_timeout,
		.max_cm_retries = request->max_cm_retries,
		.srq = request->srq,
	};

	return ib_send_cm_req(id, &param);
}

SHIM int shim_ib_send_cm_rep(struct ib_cm_id *id, const struct shim_cm_reply *reply)
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

SHIM int shim_ib_send_cm_rtu(struct ib_cm_id *id) { return ib_send_cm_rtu(id, NULL, 0); }
SHIM int shim_ib_send_cm_drep(struct ib_cm_id *id) { return ib_send_cm_drep(id, NULL, 0); }

SHIM void shim_ib_send_cm_rej(struct ib_cm_id *id, enum shim_cm_reason reason)
{
	ib_send_cm_rej(id, (enum ib_cm_rej_reason)reason, NULL, 0, NULL, 0);
}
