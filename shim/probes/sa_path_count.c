// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* ib_sa_path_rec_get() calls back with a number of records, of type int. */
#include <rdma/ib_sa.h>

static void answered(int status, struct sa_path_rec *record, int count, void *context) {}

int probe(struct ib_sa_client *client, struct ib_device *ca, struct sa_path_rec *record, struct ib_sa_query **query);
int probe(struct ib_sa_client *client, struct ib_device *ca, struct sa_path_rec *record, struct ib_sa_query **query)
{
	return ib_sa_path_rec_get(client, ca, 1, record, 0, 0, GFP_KERNEL, answered, NULL, query);
}
