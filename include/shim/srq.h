/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct ib_pd;
struct ib_srq;

/* Creates a queue. An error pointer on failure; -EOPNOTSUPP: the HCA has none. CONTEXT: process, may sleep. */
struct ib_srq *shim_ib_create_srq(struct ib_pd *pd, unsigned int wrs, unsigned int sges);
void shim_ib_destroy_srq(struct ib_srq *srq);

SHIM_END
