// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Pages of user memory are listed in a table that was made by appending. */
#include <rdma/ib_umem.h>

struct sg_table *probe(struct ib_umem *umem);
struct sg_table *probe(struct ib_umem *umem) { return &umem->sgt_append.sgt; }
