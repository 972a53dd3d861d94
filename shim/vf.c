// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* `ip link set ... vf`: operations on an HCA's virtual functions. */
#include "objects.h"
#include <rdma/ib_verbs.h>
#include <shim/ndo.h>
#include <uapi/linux/if_link.h>

int shim_set_vf_link_state(struct net_device *dev, int vf, int state)
{
	u32 port;
	struct ib_device *ca = ipoib_port_of(dev, &port);

	return ib_set_vf_link_state(ca, vf, port, state);
}

int shim_get_vf_config(struct net_device *dev, int vf, struct ifla_vf_info *info)
{
	u32 port;
	struct ib_device *ca = ipoib_port_of(dev, &port);
	int ret = ib_get_vf_config(ca, vf, port, info);

	if (ret)
		return ret;
	info->vf = vf;
	/* Programs expect the physical function's address. */
	memcpy(info->mac, dev->dev_addr, dev->addr_len);
	return 0;
}

int shim_get_vf_stats(struct net_device *dev, int vf, struct ifla_vf_stats *stats)
{
	u32 port;
	struct ib_device *ca = ipoib_port_of(dev, &port);

	return ib_get_vf_stats(ca, vf, port, stats);
}

int shim_get_vf_guid(struct net_device *dev, int vf, struct ifla_vf_guid *node, struct ifla_vf_guid *port_guid)
{
	u32 port;
	struct ib_device *ca = ipoib_port_of(dev, &port);

	return ib_get_vf_guid(ca, vf, port, node, port_guid);
}

int shim_set_vf_guid(struct net_device *dev, int vf, u64 guid, int type)
{
	u32 port;
	struct ib_device *ca = ipoib_port_of(dev, &port);

	if (type != IFLA_VF_IB_NODE_GUID && type != IFLA_VF_IB_PORT_GUID)
		return -EINVAL;
	return ib_set_vf_guid(ca, vf, port, guid, type);
}
