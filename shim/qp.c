// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The UD queue pair. */
#include <rdma/ib_verbs.h>
#include <shim/qp.h>

SHIM struct ib_qp *shim_ib_create_ud_qp(struct ib_pd *pd, struct ib_cq *send_cq, struct ib_cq *recv_cq,
					unsigned int send_wrs, unsigned int recv_wrs, unsigned int send_sges,
					uint32_t create_flags)
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
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_UD,
		.create_flags = create_flags,
	};

	return ib_create_qp(pd, &attr);
}

SHIM void shim_ib_destroy_qp(struct ib_qp *qp) { ib_destroy_qp(qp); }
SHIM uint32_t shim_ib_qp_num(const struct ib_qp *qp) { return qp->qp_num; }

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

SHIM int shim_qp_set_qkey(struct ib_qp *qp, uint32_t qkey)
{
	struct ib_qp_attr attr = { .qkey = qkey };

	return ib_modify_qp(qp, &attr, IB_QP_QKEY);
}

SHIM int shim_ib_attach_mcast(struct ib_qp *qp, const struct shim_gid *mgid, uint16_t mlid)
{
	return ib_attach_mcast(qp, (union ib_gid *)mgid, mlid);
}

SHIM void shim_ib_detach_mcast(struct ib_qp *qp, const struct shim_gid *mgid, uint16_t mlid)
{
	ib_detach_mcast(qp, (union ib_gid *)mgid, mlid);
}
