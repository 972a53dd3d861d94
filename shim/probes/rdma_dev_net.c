// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Drivers may ask which network namespace an HCA is in. */
#include <rdma/ib_verbs.h>

struct net *probe(struct ib_device *ca);
struct net *probe(struct ib_device *ca) { return rdma_dev_net(ca); }
