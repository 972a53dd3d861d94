// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The module: its parameters, the slots at the switches, and one HCA in each. */
#include "glue.h"
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

static unsigned int hcas = 2;
module_param(hcas, uint, 0444);
MODULE_PARM_DESC(hcas, "HCAs of one port each, 1 to 40 (default 2)");

static unsigned int mtu = 2048;
module_param(mtu, uint, 0444);
MODULE_PARM_DESC(mtu, "MTU of all ports: 1024, 2048 (default) or 4096");

static unsigned int width = 4;
module_param(width, uint, 0444);
MODULE_PARM_DESC(width, "Lanes of all links: 1, 4 (default), 8 or 12");

static unsigned int speed = IB_SPEED_QDR;
module_param(speed, uint, 0444);
MODULE_PARM_DESC(speed, "Speed of all links: 1 SDR, 2 DDR, 4 QDR (default), 16 FDR, 32 EDR, 64 HDR, 128 NDR");

static unsigned int vls = 1;
module_param(vls, uint, 0444);
MODULE_PARM_DESC(vls, "Data lanes of all ports, which have no effect: 1 (default), 2, 4, 8 or 15");

static unsigned int subnets = 1;
module_param(subnets, uint, 0444);
MODULE_PARM_DESC(subnets, "2: HCAs of even and odd numbers are in subnets of their own (default 1)");

bool soft_have_srq = true;
module_param_named(srq, soft_have_srq, bool, 0444);
MODULE_PARM_DESC(srq, "Have shared receive queues (default 1)");

unsigned int soft_srq_sges = SOFT_MAX_SGES;
module_param_named(srq_sges, soft_srq_sges, uint, 0444);
MODULE_PARM_DESC(srq_sges, "Elements in each receive of a shared receive queue, 1 to 18 (default 18)");

unsigned int soft_send_sges = SOFT_MAX_SGES;
module_param_named(send_sges, soft_send_sges, uint, 0444);
MODULE_PARM_DESC(send_sges, "Elements in each send, 2 to 18 (default 18)");

unsigned int soft_vectors;
module_param_named(vectors, soft_vectors, uint, 0444);
MODULE_PARM_DESC(vectors, "Completion vectors of each HCA, up to 64 (default 0: one for each processor)");

bool soft_have_offloads = true;
module_param_named(offloads, soft_have_offloads, bool, 0444);
MODULE_PARM_DESC(offloads, "Have checksum and segmentation offload of IPoIB datagrams (default 1)");

unsigned int soft_vf_count;
module_param_named(vfs, soft_vf_count, uint, 0444);
MODULE_PARM_DESC(vfs, "Virtual functions of each HCA, 0 to 16 (default 0)");

bool soft_are_functions;
module_param_named(functions, soft_are_functions, bool, 0444);
MODULE_PARM_DESC(functions, "Be virtual functions of other HCAs (default 0)");

unsigned int soft_rdma_netdev;
module_param_named(rdma_netdev, soft_rdma_netdev, uint, 0444);
MODULE_PARM_DESC(rdma_netdev,
		 "Give IPoIB interfaces an rdma_netdev: 1 replaces the client's datapath, 2 filters it (default 0)");

unsigned int soft_max_objects = SOFT_MAX_OBJECTS;
module_param_named(max_objects, soft_max_objects, uint, 0444);
MODULE_PARM_DESC(max_objects,
		 "Queue pairs, completion queues, memory regions, ... of each HCA, 16 to 65536 each (default 65536)");

unsigned int soft_first_hca;
module_param_named(first_hca, soft_first_hca, uint, 0444);
MODULE_PARM_DESC(first_hca, "Number of the first HCA, 0 to 4000: those of joined machines differ (default 0)");

static char *trunks[FABRIC_MAX_TRUNKS];
static unsigned int trunk_count;
module_param_array_named(trunk, trunks, charp, &trunk_count, 0444);
MODULE_PARM_DESC(trunk, "Network interfaces, up to 8, each the cable to another machine's switch");

struct fabric *soft_fabric;
DEFINE_SPINLOCK(soft_fabric_lock);
struct soft_slot *soft_slots;
unsigned int soft_hca_count;
DEFINE_MUTEX(soft_plug_lock);

static void stop(void)
{
	unsigned int i;

	soft_debugfs_stop();
	soft_trunks_stop();
	mutex_lock(&soft_plug_lock);
	for (i = 0; i < soft_hca_count; i++) {
		soft_unplug(&soft_slots[i]);
		device_unregister(soft_slots[i].parent);
	}
	mutex_unlock(&soft_plug_lock);
	soft_management_stop();
	soft_bus_stop();
	kfree(soft_slots);
	vfree(soft_fabric);
}

static int add_slot(unsigned int index)
{
	struct soft_slot *slot = &soft_slots[index];

	slot->index = index;
	slot->parent = soft_add_parent(soft_number(slot));
	if (IS_ERR(slot->parent))
		return PTR_ERR(slot->parent);
	soft_hca_count = index + 1;
	return soft_plug(slot);
}

u8 soft_widths_up_to(u64 lanes)
{
	switch (lanes) {
	case 1:
		return IB_WIDTH_1X;
	case 4:
		return IB_WIDTH_1X | IB_WIDTH_4X;
	case 8:
		return IB_WIDTH_1X | IB_WIDTH_4X | IB_WIDTH_8X;
	case 12:
		return IB_WIDTH_1X | IB_WIDTH_4X | IB_WIDTH_8X | IB_WIDTH_12X;
	default:
		return 0;
	}
}

/* SDR, DDR, QDR; FDR, EDR, HDR, NDR. FDR10, between them, is not of the specification. */
enum { ALL_SPEEDS = 0xf7 };

u8 soft_speeds_up_to(u64 speed)
{
	return speed <= ALL_SPEEDS && is_power_of_2(speed) && (speed & ALL_SPEEDS) ? ALL_SPEEDS & (2 * speed - 1) : 0;
}

/* PortInfo's code of a number of lanes; 0: there is none. */
static u8 __init vl_code(unsigned int lanes)
{
	switch (lanes) {
	case 1:
		return 1;
	case 2:
		return 2;
	case 4:
		return 3;
	case 8:
		return 4;
	case 15:
		return 5;
	default:
		return 0;
	}
}

static int __init check(const char *name, unsigned int value, unsigned int min, unsigned int max)
{
	if (value >= min && value <= max)
		return 0;
	pr_err("soft_ib: %s=%u is not %u to %u\n", name, value, min, max);
	return -EINVAL;
}

static int __init check_parameters(void)
{
	if (mtu != 1024 && mtu != 2048 && mtu != 4096) {
		pr_err("soft_ib: mtu=%u is not 1024, 2048 or 4096\n", mtu);
		return -EINVAL;
	}
	if (!soft_widths_up_to(width)) {
		pr_err("soft_ib: width=%u is not 1, 4, 8 or 12\n", width);
		return -EINVAL;
	}
	if (!soft_speeds_up_to(speed)) {
		pr_err("soft_ib: speed=%u is not 1, 2, 4, 16, 32, 64 or 128\n", speed);
		return -EINVAL;
	}
	if (!vl_code(vls)) {
		pr_err("soft_ib: vls=%u is not 1, 2, 4, 8 or 15\n", vls);
		return -EINVAL;
	}
	if (trunk_count && subnets > 1) {
		pr_err("soft_ib: with a trunk, subnets=%u is not 1\n", subnets);
		return -EINVAL;
	}
	return check("hcas", hcas, 1, FABRIC_MAX_HCAS)				    ?:
		       check("srq_sges", soft_srq_sges, 1, SOFT_MAX_SGES)	    ?:
		       check("send_sges", soft_send_sges, 2, SOFT_MAX_SGES)	    ?:
		       check("vectors", soft_vectors, 0, SOFT_MAX_VECTORS)	    ?:
		       check("subnets", subnets, 1, FABRIC_MAX_SUBNETS)		    ?:
		       check("first_hca", soft_first_hca, 0, 4000)		    ?:
		       check("max_objects", soft_max_objects, 16, SOFT_MAX_OBJECTS) ?:
		       check("vfs", soft_vf_count, 0, SOFT_MAX_VFS)		    ?:
		       check("rdma_netdev", soft_rdma_netdev, 0, SOFT_NETDEV_KINDS - 1);
}

static int __init soft_ib_init(void)
{
	struct fabric_plan plan = {
		.hcas = hcas,
		.first_hca = soft_first_hca,
		.subnets = subnets,
		.mtu = ib_mtu_int_to_enum(mtu),
		.widths = soft_widths_up_to(width),
		.speeds = soft_speeds_up_to(speed),
		.vls = vl_code(vls),
		.trunks = trunk_count,
	};
	unsigned int i;
	int ret = check_parameters() ?: soft_topology_plan(&plan);

	if (ret)
		return ret;
	/* As HCAs with such an rdma_netdev. */
	if (soft_rdma_netdev == SOFT_NETDEV_FILTERS)
		soft_have_offloads = false;
	if (!soft_vectors)
		soft_vectors = min_t(unsigned int, num_online_cpus(), SOFT_MAX_VECTORS);
	soft_fabric = vzalloc(fabric_bytes());
	soft_slots = kcalloc(hcas, sizeof(*soft_slots), GFP_KERNEL);
	ret = soft_fabric && soft_slots ? soft_bus_start() : -ENOMEM;
	if (ret) {
		vfree(soft_fabric);
		kfree(soft_slots);
		return ret;
	}
	soft_engines_start();
	fabric_construct(soft_fabric, &plan);
	soft_topology_name();
	soft_management_start();
	mutex_lock(&soft_plug_lock);
	for (i = 0; i < hcas && !ret; i++)
		ret = add_slot(i);
	mutex_unlock(&soft_plug_lock);
	if (!ret)
		ret = soft_trunks_start(trunks, trunk_count);
	soft_debugfs_start();
	if (ret)
		stop();
	return ret;
}

static void __exit soft_ib_exit(void) { stop(); }

module_init(soft_ib_init);
module_exit(soft_ib_exit);
MODULE_DESCRIPTION("A software InfiniBand fabric: HCAs and switches");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(SOFT_IB_VERSION);
