// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The core allocates queue pairs, of a size that the driver states. */
#include <rdma/ib_verbs.h>

extern const struct ib_device_ops probe;
const struct ib_device_ops probe = { .size_ib_qp = sizeof(struct ib_qp) };
