// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An HCA as the kernel sees it: registration, attributes, ports, MADs, address handles, events; and plugging and
 * unplugging. MADs for other agents than the HCA's own are passed to the registered ones (OpenSM, ib_cm, ...).
 */
#include "compat.h"
#include "glue.h"
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_user_verbs.h>

static const struct fabric_port *port_of(struct ib_device *ib)
{
	return fabric_hca_port(soft_fabric, to_hca(ib)->slot->index);
}

static int query_device(struct ib_device *ib, struct ib_device_attr *attr, struct ib_udata *udata)
{
	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = 1ULL << 32;
	attr->sys_image_guid = ib->node_guid;
	attr->max_mr_size = ~0ULL;
	attr->page_size_cap = PAGE_MASK;
	attr->vendor_id = 1;
	attr->vendor_part_id = 1;
	attr->max_qp = soft_max_objects;
	attr->max_qp_wr = SOFT_MAX_QUEUE;
	attr->max_send_sge = soft_send_sges;
	attr->max_recv_sge = SOFT_MAX_SGES;
	attr->max_sge_rd = soft_send_sges;
	attr->max_fast_reg_page_list_len = SOFT_MAX_REG_PAGES;
	attr->max_cq = soft_max_objects;
	attr->max_cqe = SOFT_MAX_CQES;
	attr->max_mr = soft_max_objects;
	attr->max_pd = soft_max_objects;
	attr->max_ah = SOFT_MAX_AHS;
	attr->max_pkeys = FABRIC_PKEYS;
	attr->max_srq = soft_have_srq ? soft_max_objects : 0;
	attr->max_srq_wr = SOFT_MAX_QUEUE;
	attr->max_srq_sge = soft_srq_sges;
	attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = FABRIC_MAX_READS;
	attr->max_res_rd_atom = FABRIC_MAX_READS * attr->max_qp;
	attr->atomic_cap = IB_ATOMIC_HCA;
	attr->max_mcast_grp = SOFT_MAX_GROUPS;
	attr->max_mcast_qp_attach = SOFT_MAX_GROUP_QPS;
	attr->max_total_mcast_qp_attach = SOFT_MAX_ATTACHMENTS;
	attr->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
	SOFT_KERNEL_CAP_FLAGS(attr) |= IBK_LOCAL_DMA_LKEY;
	if (soft_have_offloads) {
		attr->device_cap_flags |= IB_DEVICE_UD_IP_CSUM;
		SOFT_KERNEL_CAP_FLAGS(attr) |= IBK_UD_TSO;
	}
	if (soft_are_functions)
		SOFT_KERNEL_CAP_FLAGS(attr) |= IBK_VIRTUAL_FUNCTION;
	if (soft_rdma_netdev == SOFT_NETDEV_FILTERS)
		SOFT_KERNEL_CAP_FLAGS(attr) |= IBK_RDMA_NETDEV_OPA;
	return 0;
}

static int query_port(struct ib_device *ib, soft_port_number number, struct ib_port_attr *attr)
{
	const struct fabric_port *port = port_of(ib);

	attr->state = port->state;
	attr->phys_state = port->physical_state;
	attr->max_mtu = attr->active_mtu = port->mtu;
	attr->gid_tbl_len = FABRIC_GUIDS;
	attr->pkey_tbl_len = FABRIC_PKEYS;
	attr->port_cap_flags = port->capabilities;
	attr->max_msg_sz = FABRIC_MAX_MESSAGE_BYTES;
	attr->lid = port->lid;
	attr->lmc = port->lmc;
	attr->sm_lid = port->sm_lid;
	attr->sm_sl = port->sm_sl;
	attr->max_vl_num = port->vls_supported;
	attr->subnet_timeout = port->subnet_timeout;
	attr->active_width = port->active_width;
	attr->active_speed = port->active_speed;
	return 0;
}
ALLOW_ERROR_INJECTION(query_port, ERRNO);

static int get_port_immutable(struct ib_device *ib, soft_port_number number, struct ib_port_immutable *immutable)
{
	immutable->pkey_tbl_len = FABRIC_PKEYS;
	immutable->gid_tbl_len = FABRIC_GUIDS;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ib, soft_port_number number)
{
	return IB_LINK_LAYER_INFINIBAND;
}

union ib_gid soft_gid(const struct fabric_port *port, unsigned int index)
{
	union ib_gid gid = {};

	if (port->guids[index]) {
		gid.global.subnet_prefix = cpu_to_be64(port->subnet_prefix);
		gid.global.interface_id = cpu_to_be64(port->guids[index]);
	}
	return gid;
}

static int query_gid(struct ib_device *ib, soft_port_number number, int index, union ib_gid *gid)
{
	if (index >= FABRIC_GUIDS)
		return -EINVAL;
	*gid = soft_gid(port_of(ib), index);
	return 0;
}

static int query_pkey(struct ib_device *ib, soft_port_number number, u16 index, u16 *pkey)
{
	if (index >= FABRIC_PKEYS)
		return -EINVAL;
	*pkey = port_of(ib)->pkeys[index];
	return 0;
}

static int modify_port(struct ib_device *ib, soft_port_number number, int mask, struct ib_port_modify *modify)
{
	spin_lock_irq(&soft_fabric_lock);
	fabric_set_capabilities(soft_fabric, to_hca(ib)->slot->index, modify->set_port_cap_mask,
				modify->clr_port_cap_mask);
	spin_unlock_irq(&soft_fabric_lock);
	return 0;
}

static void get_dev_fw_str(struct ib_device *ib, char *text) { strscpy(text, "1.0.0", IB_FW_VERSION_NAME_MAX); }

static int process_mad(struct ib_device *ib, int flags, soft_port_number number, const struct ib_wc *wc,
		       const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out, size_t *out_bytes,
		       u16 *out_pkey_index)
{
	struct soft_slot *slot = to_hca(ib)->slot;
	unsigned int events = 0;
	bool answered;

	spin_lock_irq(&soft_fabric_lock);
	soft_sample();
	answered = fabric_hca_mad(soft_fabric, slot->index, (const u8 *)in, (u8 *)out, &events);
	soft_after_mad();
	spin_unlock_irq(&soft_fabric_lock);
	soft_dispatch(slot, events);
	return answered ? IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY : IB_MAD_RESULT_SUCCESS;
}

int soft_add_object(struct ib_device *ib, enum soft_kind kind)
{
	atomic_t *count = &to_hca(ib)->objects[kind];
	int limit = kind == SOFT_AHS ? SOFT_MAX_AHS : soft_max_objects;

	if (atomic_inc_return(count) <= limit)
		return 0;
	atomic_dec(count);
	return -ENOMEM;
}

void soft_remove_object(struct ib_device *ib, enum soft_kind kind) { atomic_dec(&to_hca(ib)->objects[kind]); }

static int alloc_pd(struct ib_pd *pd, struct ib_udata *udata) { return soft_add_object(pd->device, SOFT_PDS); }
ALLOW_ERROR_INJECTION(alloc_pd, ERRNO);

static int dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	soft_remove_object(pd->device, SOFT_PDS);
	return 0;
}

static int create_ah(struct ib_ah *ib, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	container_of(ib, struct soft_ah, ib)->attr = *init->ah_attr;
	return soft_add_object(ib->device, SOFT_AHS);
}
ALLOW_ERROR_INJECTION(create_ah, ERRNO);

static int query_ah(struct ib_ah *ib, struct rdma_ah_attr *attr)
{
	*attr = container_of(ib, struct soft_ah, ib)->attr;
	return 0;
}

static int destroy_ah(struct ib_ah *ib, u32 flags)
{
	soft_remove_object(ib->device, SOFT_AHS);
	return 0;
}

/* Processes: all requests go through the kernel, and nothing is mapped. */
static int alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata) { return 0; }
static void dealloc_ucontext(struct ib_ucontext *context) {}
static void disassociate_ucontext(struct ib_ucontext *context) {}

#ifdef SHIM_HAVE_DEVICE_GROUP
/* Files that HCAs have in /sys/class/infiniband/, and that programs read: ibstat, node_exporter. */
static ssize_t hca_type_show(struct device *device, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "SOFT_IB\n");
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t board_id_show(struct device *device, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "SOFT_IB\n");
}
static DEVICE_ATTR_RO(board_id);

static ssize_t hw_rev_show(struct device *device, struct device_attribute *attr, char *text)
{
	return sysfs_emit(text, "1\n");
}
static DEVICE_ATTR_RO(hw_rev);

static struct attribute *device_attributes[] = {
	&dev_attr_hca_type.attr,
	&dev_attr_board_id.attr,
	&dev_attr_hw_rev.attr,
	NULL,
};
static const struct attribute_group device_group = { .attrs = device_attributes };
#endif

static const struct ib_device_ops device_ops = {
	.owner = THIS_MODULE,
	/* User space takes it for an HCA whose driver, at ABI version 1, executes every verb in the kernel. */
	.driver_id = RDMA_DRIVER_QIB,
	.uverbs_abi_ver = 1,
	.alloc_ucontext = alloc_ucontext,
	.dealloc_ucontext = dealloc_ucontext,
	.disassociate_ucontext = disassociate_ucontext,
	.query_device = query_device,
	.query_port = query_port,
	.get_port_immutable = get_port_immutable,
	.get_link_layer = get_link_layer,
	.query_gid = query_gid,
	.query_pkey = query_pkey,
	.modify_port = modify_port,
	.get_dev_fw_str = get_dev_fw_str,
#ifdef SHIM_HAVE_DEVICE_GROUP
	.device_group = &device_group,
#endif
	.process_mad = process_mad,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.create_ah = create_ah,
#ifdef SHIM_HAVE_CREATE_USER_AH
	.create_user_ah = create_ah,
#endif
	.query_ah = query_ah,
	.destroy_ah = destroy_ah,
	INIT_RDMA_OBJ_SIZE(ib_ah, soft_ah, ib),
	.size_ib_pd = sizeof(struct ib_pd),
	.size_ib_ucontext = sizeof(struct ib_ucontext),
};

/* Events */

static const struct {
	unsigned int bit;
	enum ib_event_type type;
} event_types[] = {
	/* In the order of delivery. */
	{ FABRIC_GID_CHANGE, IB_EVENT_GID_CHANGE },	   { FABRIC_LID_CHANGE, IB_EVENT_LID_CHANGE },
	{ FABRIC_SM_CHANGE, IB_EVENT_SM_CHANGE },	   { FABRIC_PKEY_CHANGE, IB_EVENT_PKEY_CHANGE },
	{ FABRIC_PORT_ERROR, IB_EVENT_PORT_ERR },	   { FABRIC_PORT_ACTIVE, IB_EVENT_PORT_ACTIVE },
	{ FABRIC_REREGISTER, IB_EVENT_CLIENT_REREGISTER },
};

void soft_dispatch(struct soft_slot *slot, unsigned int events)
{
	struct ib_event event = { .element.port_num = 1 };
	struct soft_hca *hca;
	unsigned int i;

	if (slot->hide_gid_change)
		events &= ~FABRIC_GID_CHANGE;
	if (slot->hide_gid_change > 1)
		events &= ~FABRIC_REREGISTER;
	rcu_read_lock();
	hca = rcu_dereference(slot->hca);
	for (i = 0; hca && READ_ONCE(hca->registered) && i < ARRAY_SIZE(event_types); i++) {
		if (!(events & event_types[i].bit))
			continue;
		event.device = &hca->ib;
		event.event = event_types[i].type;
		ib_dispatch_event(&event);
	}
	rcu_read_unlock();
}

void soft_set_link(struct soft_slot *slot, bool up)
{
	unsigned int events;

	spin_lock_irq(&soft_fabric_lock);
	events = fabric_set_link(soft_fabric, slot->index, up);
	spin_unlock_irq(&soft_fabric_lock);
	soft_dispatch(slot, events);
	soft_send_traps();
}

void soft_limit_link(struct soft_slot *slot, u8 widths, u8 speeds)
{
	unsigned int events;

	spin_lock_irq(&soft_fabric_lock);
	events = fabric_limit_link(soft_fabric, slot->index, widths, speeds);
	spin_unlock_irq(&soft_fabric_lock);
	soft_dispatch(slot, events);
	soft_send_traps();
}

void soft_set_alias(struct soft_slot *slot, unsigned int index, u64 guid)
{
	unsigned int events;

	spin_lock_irq(&soft_fabric_lock);
	events = fabric_set_alias(soft_fabric, slot->index, index, guid);
	spin_unlock_irq(&soft_fabric_lock);
	soft_dispatch(slot, events);
}

/* Plugging. Under soft_plug_lock. */

static void set_operations(struct ib_device *ib)
{
	/* Commands of user space: all; the kernel refuses those without an operation. */
	ib->uverbs_cmd_mask = GENMASK_ULL(IB_USER_VERBS_CMD_OPEN_QP, IB_USER_VERBS_CMD_GET_CONTEXT);
	ib_set_device_ops(ib, &soft_cq_ops);
	ib_set_device_ops(ib, &soft_queue_ops);
	ib_set_device_ops(ib, &soft_post_ops);
	ib_set_device_ops(ib, &soft_memory_ops);
	if (soft_have_srq)
		ib_set_device_ops(ib, &soft_srq_ops);
	if (soft_vf_count)
		ib_set_device_ops(ib, &soft_vf_ops);
	if (soft_rdma_netdev == SOFT_NETDEV_REPLACES)
		ib_set_device_ops(ib, &soft_netdev_ops);
	if (soft_rdma_netdev == SOFT_NETDEV_FILTERS)
		ib_set_device_ops(ib, &soft_filter_ops);
	ib_set_device_ops(ib, &device_ops);
}

int soft_plug(struct soft_slot *slot)
{
	struct soft_hca *hca;
	char name[IB_DEVICE_NAME_MAX];
	int ret;

	if (rcu_access_pointer(slot->hca))
		return 0;
	hca = ib_alloc_device(soft_hca, ib);
	if (!hca)
		return -ENOMEM;
	hca->slot = slot;
	xa_init_flags(&hca->qps, XA_FLAGS_ALLOC);
	xa_init(&hca->numbers);
	hca->next_qpn = 0x100;
	hca->next_netdev_qpn = SOFT_FIRST_NETDEV_QPN;
	xa_init_flags(&hca->regions, XA_FLAGS_ALLOC);
	rwlock_init(&hca->regions_lock);
	hca->next_region = 1;
	hca->group_seed = get_random_u32();
	spin_lock_init(&hca->groups_lock);
	soft_engine_init(hca);
	hca->ib.dev.parent = slot->parent;
	hca->ib.node_type = RDMA_NODE_IB_CA;
	hca->ib.node_guid = cpu_to_be64(fabric_guid(soft_number(slot)));
	hca->ib.phys_port_cnt = 1;
	hca->ib.num_comp_vectors = soft_vectors;
	hca->ib.local_dma_lkey = SOFT_LOCAL_KEY;
	snprintf(hca->ib.node_desc, sizeof(hca->ib.node_desc), "soft_ib%u", soft_number(slot));
	fabric_set_description(soft_fabric, slot->index, hca->ib.node_desc);
	set_operations(&hca->ib);
	spin_lock_irq(&soft_fabric_lock);
	fabric_renew_hca(soft_fabric, slot->index);
	spin_unlock_irq(&soft_fabric_lock);
	rcu_assign_pointer(slot->hca, hca);
	snprintf(name, sizeof(name), "soft_ib%u", soft_number(slot));
	ret = ib_register_device(&hca->ib, name, NULL);
	if (ret) {
		pr_err("soft_ib: registering %s failed, error %d\n", name, ret);
		RCU_INIT_POINTER(slot->hca, NULL);
		synchronize_rcu();
		soft_engine_stop(hca);
		ib_dealloc_device(&hca->ib);
		return ret;
	}
	WRITE_ONCE(hca->registered, true);
	soft_set_link(slot, true);
	return 0;
}

void soft_unplug(struct soft_slot *slot)
{
	struct soft_hca *hca = rcu_dereference_protected(slot->hca, lockdep_is_held(&soft_plug_lock));

	if (!hca)
		return;
	soft_set_link(slot, false);
	WRITE_ONCE(hca->registered, false);
	synchronize_rcu();
	ib_unregister_device(&hca->ib);
	RCU_INIT_POINTER(slot->hca, NULL);
	synchronize_rcu();
	soft_engine_stop(hca);
	xa_destroy(&hca->qps);
	soft_drop_numbers(hca);
	xa_destroy(&hca->regions);
	ib_dealloc_device(&hca->ib);
}
