// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The client of ib_core: HCAs that come and go. */
#include "compat.h"
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>
#include <shim/client.h>

static int add(struct ib_device *ca);

static void remove(struct ib_device *ca, void *state) { ipoib_remove_device(ca, state); }

static struct net_device *get_net_dev_by_params(struct ib_device *ca, shim_port_number port, u16 pkey,
						const union ib_gid *gid, const struct sockaddr *address, void *state)
{
	if (!rdma_protocol_ib(ca, port))
		return NULL;
	return ipoib_find_netdev(state, port, pkey, (const struct shim_gid *)gid, address);
}

static struct ib_client client = {
	.name = "ipoib",
	.add = add,
	.remove = remove,
	.get_net_dev_by_params = get_net_dev_by_params,
};

static int add(struct ib_device *ca)
{
	void *state;
	int ret = ipoib_add_device(ca, &state);

	if (!ret)
		ib_set_client_data(ca, &client, state);
	return ret;
}

SHIM int shim_ib_register_client(void) { return ib_register_client(&client); }
SHIM void shim_ib_unregister_client(void) { ib_unregister_client(&client); }
