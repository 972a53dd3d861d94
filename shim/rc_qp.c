// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The queue pair of a reliable connection. */
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <shim/rc_qp.h>

static void on_qp_event(struct ib_event *event, void *context)
{
	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		ipoib_last_wqe_reached(context);
}

SHIM struct ib_qp *shim_ib_create_rc_qp(struct ib_pd *pd, const struct shim_rc_qp *wanted)
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
