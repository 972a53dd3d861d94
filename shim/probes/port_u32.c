// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Ports of HCAs are numbered in 32 bits, not 8. */
#include <rdma/ib_verbs.h>

struct net_device *probe(struct ib_device *ca, u32 port, u16 pkey, const union ib_gid *gid,
			 const struct sockaddr *address, void *state);

extern const struct ib_client client;
const struct ib_client client = { .get_net_dev_by_params = probe };
