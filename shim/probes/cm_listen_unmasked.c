// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ib_cm_listen() takes a service ID without a mask. */
#include <rdma/ib_cm.h>

int probe(struct ib_cm_id *id, __be64 service_id);
int probe(struct ib_cm_id *id, __be64 service_id) { return ib_cm_listen(id, service_id); }
