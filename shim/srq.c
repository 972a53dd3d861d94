// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues. */
#include <rdma/ib_verbs.h>
#include <shim/srq.h>

SHIM struct ib_srq *shim_ib_create_srq(struct ib_pd *pd, unsigned int wrs, unsigned int sges)
{
	struct ib_srq_init_attr attr = {
		.attr = { .max_wr = wrs, .max_sge = sges },
		.srq_type = IB_SRQT_BASIC,
	};

	return ib_create_srq(pd, &attr);
}

SHIM void shim_ib_destroy_srq(struct ib_srq *srq) { ib_destroy_srq(srq); }
