// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues are resized by an operation for consumers of all kinds. */
#include <rdma/ib_verbs.h>

static int resize_cq(struct ib_cq *cq, int entries, struct ib_udata *udata) { return 0; }

extern const struct ib_device_ops probe;
const struct ib_device_ops probe = { .resize_cq = resize_cq };
