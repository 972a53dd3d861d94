// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Address handles. */
#include <rdma/ib_verbs.h>
#include <shim/ah.h>

SHIM void shim_rdma_destroy_ah(struct ib_ah *ah) { rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE); }
