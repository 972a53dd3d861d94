/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The UD queue pair. CONTEXT: process, may sleep, but for shim_ib_qp_num(). Failures: the HCA's errno. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_cq;
struct ib_pd;
struct ib_qp;
struct shim_gid;

/*
 * Creates a UD queue pair whose work requests have send_sges elements, or one to receive; each send request states
 * whether it is signaled. create_flags: SHIM_IB_QP_CREATE_*. An error pointer on failure.
 */
struct ib_qp *shim_ib_create_ud_qp(struct ib_pd *pd, struct ib_cq *send_cq, struct ib_cq *recv_cq,
				   unsigned int send_wrs, unsigned int recv_wrs, unsigned int send_sges,
				   uint32_t create_flags);
void shim_ib_destroy_qp(struct ib_qp *qp);
uint32_t shim_ib_qp_num(const struct ib_qp *qp);
/* Modify the queue pair's state (IBA 10.3.1). qkey: host byte order. */
int shim_qp_to_init(struct ib_qp *qp, uint32_t port, uint16_t pkey_index, uint32_t qkey);
int shim_qp_to_rtr(struct ib_qp *qp);
int shim_qp_to_rts(struct ib_qp *qp);
int shim_qp_to_error(struct ib_qp *qp);
int shim_qp_to_reset(struct ib_qp *qp);
/* Moves the queue pair from SQE to RTS. -EINVAL: its state is not SQE. */
int shim_helper_qp_recover_send(struct ib_qp *qp);
int shim_qp_set_qkey(struct ib_qp *qp, uint32_t qkey);
/* Attach the queue pair to, and detach it from, a multicast group. */
int shim_ib_attach_mcast(struct ib_qp *qp, const struct shim_gid *mgid, uint16_t mlid);
void shim_ib_detach_mcast(struct ib_qp *qp, const struct shim_gid *mgid, uint16_t mlid);

SHIM_END
