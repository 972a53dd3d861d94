// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Virtual functions of an HCA. They have no effect: their settings are kept for as long as the module lasts. */
#include "compat.h"
#include "glue.h"
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

/* NULL: the function does not exist. */
static struct soft_vf *vf_of(struct ib_device *ib, int vf)
{
	return vf >= 0 && vf < soft_vf_count ? &to_hca(ib)->slot->vfs[vf] : NULL;
}

static int set_vf_link_state(struct ib_device *ib, int number, soft_port_number port, int state)
{
	struct soft_vf *vf = vf_of(ib, number);

	if (!vf)
		return -EINVAL;
	WRITE_ONCE(vf->link_state, state);
	return 0;
}

static int get_vf_config(struct ib_device *ib, int number, soft_port_number port, struct ifla_vf_info *config)
{
	struct soft_vf *vf = vf_of(ib, number);

	if (!vf)
		return -EINVAL;
	config->linkstate = READ_ONCE(vf->link_state);
	return 0;
}

/* Numbers that tell functions and fields apart. */
static int get_vf_stats(struct ib_device *ib, int number, soft_port_number port, struct ifla_vf_stats *stats)
{
	u64 base = 1000 * (number + 1);

	if (!vf_of(ib, number))
		return -EINVAL;
	*stats = (struct ifla_vf_stats){
		.rx_packets = base + 1,
		.tx_packets = base + 2,
		.rx_bytes = base + 3,
		.tx_bytes = base + 4,
		.broadcast = base + 5,
		.multicast = base + 6,
		.rx_dropped = base + 7,
		.tx_dropped = base + 8,
	};
	return 0;
}

static int get_vf_guid(struct ib_device *ib, int number, soft_port_number port, struct ifla_vf_guid *node,
		       struct ifla_vf_guid *of_port)
{
	struct soft_vf *vf = vf_of(ib, number);

	if (!vf)
		return -EINVAL;
	node->guid = READ_ONCE(vf->node_guid);
	of_port->guid = READ_ONCE(vf->port_guid);
	return 0;
}

static int set_vf_guid(struct ib_device *ib, int number, soft_port_number port, u64 guid, int type)
{
	struct soft_vf *vf = vf_of(ib, number);

	if (!vf)
		return -EINVAL;
	if (type == IFLA_VF_IB_NODE_GUID)
		WRITE_ONCE(vf->node_guid, guid);
	else
		WRITE_ONCE(vf->port_guid, guid);
	return 0;
}

const struct ib_device_ops soft_vf_ops = {
	.set_vf_link_state = set_vf_link_state,
	.get_vf_config = get_vf_config,
	.get_vf_stats = get_vf_stats,
	.get_vf_guid = get_vf_guid,
	.set_vf_guid = set_vf_guid,
};

/* Bus of the HCAs' parents, since rtnetlink asks the bus for a device's number of functions. */

static int num_vf(struct device *dev) { return soft_vf_count; }

static struct bus_type bus = { .name = "soft_ib", .num_vf = num_vf };

int soft_bus_start(void) { return bus_register(&bus); }

void soft_bus_stop(void) { bus_unregister(&bus); }

static void free_parent(struct device *dev) { kfree(dev); }

struct device *soft_add_parent(unsigned int number)
{
	struct device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	int ret;

	if (!dev)
		return ERR_PTR(-ENOMEM);
	dev->bus = &bus;
	dev->release = free_parent;
	device_initialize(dev);
	ret = dev_set_name(dev, "soft_ib.%u", number) ?: device_add(dev);
	if (ret) {
		put_device(dev);
		return ERR_PTR(ret);
	}
	return dev;
}
