// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The attributes that a driver adds to its device's directory in sysfs are among its operations. */
#include <rdma/ib_verbs.h>

extern const struct ib_device_ops probe;
const struct ib_device_ops probe = { .device_group = NULL };
