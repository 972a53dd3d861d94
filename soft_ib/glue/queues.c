// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs and multicast attachment. */
#include "compat.h"
#include "glue.h"
#include <linux/jhash.h>
#include <linux/log2.h>
#include <linux/slab.h>

static int check_qp(const struct ib_qp_init_attr *attr, bool user)
{
	if (attr->srq && attr->qp_type != IB_QPT_RC)
		return -EOPNOTSUPP;
	if (attr->qp_type != IB_QPT_UD && attr->qp_type != IB_QPT_RC && attr->qp_type != IB_QPT_UC &&
	    (user || (attr->qp_type != IB_QPT_SMI && attr->qp_type != IB_QPT_GSI)))
		return -EOPNOTSUPP;
	if (attr->cap.max_send_sge > soft_send_sges || attr->cap.max_recv_sge > SOFT_MAX_SGES ||
	    attr->cap.max_send_wr > SOFT_MAX_QUEUE || attr->cap.max_recv_wr > SOFT_MAX_QUEUE ||
	    attr->cap.max_inline_data > SOFT_MAX_INLINE)
		return -EINVAL;
	if (attr->create_flags & ~(IB_QP_CREATE_IPOIB_UD_LSO | IB_QP_CREATE_NETDEV_USE))
		return -EOPNOTSUPP;
	if ((attr->create_flags & IB_QP_CREATE_IPOIB_UD_LSO) && (!soft_have_offloads || attr->qp_type != IB_QPT_UD))
		return -EOPNOTSUPP;
	return 0;
}

/* Gives the queue pair its number and publishes it. */
static int number_qp(struct soft_qp *qp, const struct ib_qp_init_attr *attr)
{
	struct soft_hca *hca = qp->hca;
	int ret, kept = 0;

	if (attr->qp_type == IB_QPT_SMI) {
		qp->ib.qp_num = 0;
		rcu_assign_pointer(hca->smi, qp);
		return 0;
	}
	if (attr->qp_type == IB_QPT_GSI) {
		qp->ib.qp_num = 1;
		rcu_assign_pointer(hca->gsi, qp);
		return 0;
	}
	if (attr->create_flags & IB_QP_CREATE_NETDEV_USE)
		return xa_alloc_cyclic(&hca->qps, &qp->ib.qp_num, qp,
				       XA_LIMIT(SOFT_FIRST_NETDEV_QPN, SOFT_LAST_NETDEV_QPN), &hca->next_netdev_qpn,
				       GFP_KERNEL);
	/* Reserves an entry, so that storing the queue pair cannot fail. */
	ret = xa_alloc_cyclic(&hca->qps, &qp->ib.qp_num, NULL, XA_LIMIT(0x100, SOFT_FIRST_NETDEV_QPN - 1),
			      &hca->next_qpn, GFP_KERNEL);
	if (ret >= 0 && qp->user)
		kept = soft_keep_number(hca, qp->ib.qp_num);
	if (kept)
		xa_erase(&hca->qps, qp->ib.qp_num);
	else if (ret >= 0)
		xa_store(&hca->qps, qp->ib.qp_num, qp, GFP_KERNEL);
	return kept ?: ret;
}

static enum fabric_transport transport_of(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_RC:
		return FABRIC_RELIABLE;
	case IB_QPT_UC:
		return FABRIC_UNRELIABLE;
	default:
		return FABRIC_DATAGRAM;
	}
}

static int create_qp(struct ib_qp *ib, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct soft_qp *qp = to_qp(ib);
	struct soft_hca *hca = to_hca(ib->device);
	int ret = check_qp(attr, udata) ?: soft_add_object(ib->device, SOFT_QPS);

	if (ret)
		return ret;
	qp->hca = hca;
	qp->state = IB_QPS_RESET;
	qp->transport = transport_of(attr->qp_type);
	qp->cap = attr->cap;
	qp->srq = attr->srq ? to_srq(attr->srq) : NULL;
	qp->segments = attr->create_flags & IB_QP_CREATE_IPOIB_UD_LSO;
	qp->user = udata;
	qp->signal_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->sq_size = roundup_pow_of_two(max(attr->cap.max_send_wr, 1U));
	qp->rq_size = roundup_pow_of_two(qp->srq ? 1 : max(attr->cap.max_recv_wr, 1U));
	spin_lock_init(&qp->sq_lock);
	spin_lock_init(&qp->rq_lock);
	mutex_init(&qp->modify_lock);
	INIT_LIST_HEAD(&qp->active);
	soft_rc_init(qp);
	qp->sq = soft_vzalloc(array_size(qp->sq_size, sizeof(*qp->sq)), udata);
	qp->rq = soft_vzalloc(array_size(qp->rq_size, sizeof(*qp->rq)), udata);
	qp->queue_bytes =
		PAGE_ALIGN(qp->sq_size * sizeof(*qp->sq)) + PAGE_ALIGN(qp->rq_size * sizeof(*qp->rq)) + sizeof(*qp);
	ret = qp->sq && qp->rq ? number_qp(qp, attr) : -ENOMEM;
	if (ret < 0) {
		vfree(qp->sq);
		vfree(qp->rq);
		soft_remove_object(ib->device, SOFT_QPS);
		return ret;
	}
	atomic64_add(qp->queue_bytes, &hca->slot->counters.queue_bytes);
	return 0;
}
ALLOW_ERROR_INJECTION(create_qp, ERRNO);

/* Afterwards no engine uses the QP. */
static void qp_retire(struct soft_qp *qp)
{
	struct soft_hca *hca = qp->hca;

	spin_lock_irq(&hca->active_lock);
	qp->dying = true;
	list_del_init(&qp->active);
	spin_unlock_irq(&hca->active_lock);
	soft_wait_for_bursts();
	soft_rc_stop(qp);
}

static void purge_completions(struct soft_qp *qp)
{
	soft_cq_purge(qp->ib.send_cq, qp);
	if (qp->ib.recv_cq != qp->ib.send_cq)
		soft_cq_purge(qp->ib.recv_cq, qp);
}

static int destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	struct soft_qp *qp = to_qp(ib);
	struct soft_hca *hca = qp->hca;

	WARN(rcu_access_pointer(qp->filter), "soft_ib: a queue pair is destroyed while a lower half uses it\n");
	if (ib->qp_type == IB_QPT_SMI)
		RCU_INIT_POINTER(hca->smi, NULL);
	else if (ib->qp_type == IB_QPT_GSI)
		RCU_INIT_POINTER(hca->gsi, NULL);
	else
		xa_erase(&hca->qps, ib->qp_num);
	qp_retire(qp);
	if (qp->user)
		purge_completions(qp);
	atomic64_sub(qp->queue_bytes, &hca->slot->counters.queue_bytes);
	vfree(qp->sq);
	vfree(qp->rq);
	soft_remove_object(ib->device, SOFT_QPS);
	return 0;
}

static void qp_reset(struct soft_qp *qp)
{
	WRITE_ONCE(qp->state, IB_QPS_RESET);
	qp_retire(qp);
	purge_completions(qp);
	memset(&qp->attr, 0, sizeof(qp->attr));
	/* Posting checks the state and counts under these locks. */
	spin_lock_irq(&qp->rq_lock);
	spin_lock(&qp->sq_lock);
	/* An engine that used it may have moved it to ERROR. */
	WRITE_ONCE(qp->state, IB_QPS_RESET);
	qp->sq_head = qp->sq_tail = qp->rq_head = qp->rq_tail = 0;
	spin_unlock(&qp->sq_lock);
	spin_unlock_irq(&qp->rq_lock);
	qp->dying = false;
}

/* True if timeouts and retry counts fit their fields of 5 and 3 bits. */
static bool retries_fit(const struct ib_qp_attr *attr, int mask)
{
	return !((mask & IB_QP_TIMEOUT) && attr->timeout > 31) && !((mask & IB_QP_RETRY_CNT) && attr->retry_cnt > 7) &&
	       !((mask & IB_QP_RNR_RETRY) && attr->rnr_retry > 7) &&
	       !((mask & IB_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31);
}

static bool attributes_fit(const struct soft_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	u8 port_mtu = fabric_hca_port(soft_fabric, qp->hca->slot->index)->mtu;

	return retries_fit(attr, mask) && !((mask & IB_QP_PKEY_INDEX) && attr->pkey_index >= FABRIC_PKEYS) &&
	       !((mask & IB_QP_PATH_MTU) && (attr->path_mtu < IB_MTU_256 || attr->path_mtu > port_mtu)) &&
	       !((mask & IB_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > FABRIC_MAX_READS) &&
	       !((mask & IB_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > FABRIC_MAX_READS);
}

/* There are no alternate paths, so the path has always migrated. */
static bool needs_alternate_path(const struct ib_qp_attr *attr, int mask)
{
	return (mask & IB_QP_ALT_PATH) || ((mask & IB_QP_PATH_MIG_STATE) && attr->path_mig_state != IB_MIG_MIGRATED);
}

/* Attributes that only query_qp() tells. */
static void record_path(struct ib_qp_attr *to, const struct ib_qp_attr *from, int mask)
{
	if (mask & IB_QP_AV) {
		to->ah_attr = from->ah_attr;
		/* The caller's reference. */
		to->ah_attr.grh.sgid_attr = NULL;
	}
	if (mask & IB_QP_PATH_MTU)
		to->path_mtu = from->path_mtu;
	if (mask & IB_QP_DEST_QPN)
		to->dest_qp_num = from->dest_qp_num;
	if (mask & IB_QP_TIMEOUT)
		to->timeout = from->timeout;
	if (mask & IB_QP_RETRY_CNT)
		to->retry_cnt = from->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		to->rnr_retry = from->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = from->min_rnr_timer;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = from->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = from->max_dest_rd_atomic;
}

static void set_attributes(struct soft_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	record_path(&qp->attr, attr, mask);
	if (mask & IB_QP_ACCESS_FLAGS)
		WRITE_ONCE(qp->access, attr->qp_access_flags);
	if (mask & IB_QP_QKEY)
		WRITE_ONCE(qp->qkey, attr->qkey);
	if (mask & IB_QP_PKEY_INDEX)
		WRITE_ONCE(qp->pkey_index, attr->pkey_index);
	if (mask & IB_QP_SQ_PSN)
		qp->psn = attr->sq_psn;
	if (soft_is_connected(qp))
		soft_rc_modify(qp, attr, mask);
}

/* Returns false if the queue pair has left the state meanwhile: an error must not be overwritten. */
static bool change_state(struct soft_qp *qp, enum ib_qp_state from, enum ib_qp_state to)
{
	if (to == IB_QPS_RESET)
		qp_reset(qp);
	else if (to == IB_QPS_ERR)
		WRITE_ONCE(qp->state, IB_QPS_ERR);
	else if (cmpxchg(&qp->state, from, to) != from)
		return false;
	/* Executes sends that waited for RTS, or flushes all. */
	soft_engine_kick(qp);
	return true;
}

/* Under modify_lock. */
static int modify(struct soft_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state now = READ_ONCE(qp->state);
	enum ib_qp_state next = mask & IB_QP_STATE ? attr->qp_state : now;

	if ((mask & IB_QP_CUR_STATE) && attr->cur_qp_state != now)
		return -EINVAL;
	if (next == IB_QPS_SQD || needs_alternate_path(attr, mask))
		return -EOPNOTSUPP;
	/* Without a new state, only what may change in the present one (IBA 11.2.5.2). */
	if (!ib_modify_qp_is_ok(now, next, qp->ib.qp_type, mask))
		return -EINVAL;
	if (!attributes_fit(qp, attr, mask))
		return -EINVAL;
	set_attributes(qp, attr, mask);
	return (mask & IB_QP_STATE) && !change_state(qp, now, next) ? -EINVAL : 0;
}

static int modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct soft_qp *qp = to_qp(ib);
	int ret;

	mutex_lock(&qp->modify_lock);
	ret = modify(qp, attr, mask);
	mutex_unlock(&qp->modify_lock);
	return ret;
}
ALLOW_ERROR_INJECTION(modify_qp, ERRNO);

static int query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct soft_qp *qp = to_qp(ib);

	memset(init, 0, sizeof(*init));
	mutex_lock(&qp->modify_lock);
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = READ_ONCE(qp->state);
	attr->qkey = qp->qkey;
	attr->pkey_index = qp->pkey_index;
	attr->qp_access_flags = qp->access;
	attr->sq_psn = soft_is_connected(qp) ? qp->rc.requester.next : qp->psn & FABRIC_PSN_MASK;
	attr->rq_psn = qp->rc.responder.expected;
	mutex_unlock(&qp->modify_lock);
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->port_num = 1;
	attr->cap = init->cap = qp->cap;
	init->send_cq = ib->send_cq;
	init->recv_cq = ib->recv_cq;
	init->srq = ib->srq;
	init->qp_type = ib->qp_type;
	init->qp_context = ib->qp_context;
	init->event_handler = ib->event_handler;
	init->sq_sig_type = qp->signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	return 0;
}

void soft_set_route(struct fabric_headers *h, const struct rdma_ah_attr *attr, const struct fabric_port *port)
{
	h->dlid = rdma_ah_get_dlid(attr);
	/* Frames to the permissive LID come from the permissive LID. */
	h->slid = h->dlid == FABRIC_PERMISSIVE_LID ? FABRIC_PERMISSIVE_LID : port->lid;
	h->sl = rdma_ah_get_sl(attr);
	h->grh = rdma_ah_get_ah_flags(attr) & IB_AH_GRH;
	if (h->grh) {
		const struct ib_global_route *grh = rdma_ah_read_grh(attr);
		union ib_gid sgid = soft_gid(port, grh->sgid_index % FABRIC_GUIDS);

		h->traffic_class = grh->traffic_class;
		h->hop_limit = grh->hop_limit;
		h->flow_label = grh->flow_label;
		memcpy(h->dgid, &grh->dgid, sizeof(h->dgid));
		memcpy(h->sgid, sgid.raw, sizeof(h->sgid));
	} else {
		memset(h->dgid, 0, sizeof(h->dgid));
		memset(h->sgid, 0, sizeof(h->sgid));
	}
}

/* Multicast */

struct hlist_head *soft_groups_like(struct soft_hca *hca, const void *mgid)
{
	return &hca->groups[jhash(mgid, sizeof(union ib_gid), hca->group_seed) % SOFT_GROUP_BUCKETS];
}

/* Queue pairs of a group, and the attachment of this one, or NULL. Under groups_lock. */
static u32 find_members(struct soft_hca *hca, const struct soft_qp *qp, const union ib_gid *mgid,
			struct soft_group **own)
{
	struct soft_group *group;
	u32 count = 0;

	*own = NULL;
	hlist_for_each_entry(group, soft_groups_like(hca, mgid), entry)
	{
		if (memcmp(&group->mgid, mgid, sizeof(*mgid)))
			continue;
		count++;
		if (group->qp == qp)
			*own = group;
	}
	return count;
}

/* Under groups_lock. */
static int attach(struct soft_hca *hca, struct soft_group *group)
{
	struct soft_group *own;
	u32 members = find_members(hca, group->qp, &group->mgid, &own);

	/* A second attachment would deliver twice. */
	if (own)
		return -EEXIST;
	if (members >= SOFT_MAX_GROUP_QPS || hca->attachments >= SOFT_MAX_ATTACHMENTS ||
	    (!members && hca->group_count >= SOFT_MAX_GROUPS))
		return -ENOMEM;
	hca->attachments++;
	hca->group_count += !members;
	hlist_add_head_rcu(&group->entry, soft_groups_like(hca, &group->mgid));
	return 0;
}

static int attach_mcast(struct ib_qp *ib, union ib_gid *mgid, u16 mlid)
{
	struct soft_hca *hca = to_hca(ib->device);
	struct soft_group *group = kmalloc(sizeof(*group), to_qp(ib)->user ? GFP_KERNEL_ACCOUNT : GFP_KERNEL);
	int ret;

	if (!group)
		return -ENOMEM;
	group->mgid = *mgid;
	group->qp = to_qp(ib);
	spin_lock_bh(&hca->groups_lock);
	ret = attach(hca, group);
	spin_unlock_bh(&hca->groups_lock);
	if (ret)
		kfree(group);
	return ret;
}
ALLOW_ERROR_INJECTION(attach_mcast, ERRNO);

static int detach_mcast(struct ib_qp *ib, union ib_gid *mgid, u16 mlid)
{
	struct soft_hca *hca = to_hca(ib->device);
	struct soft_group *group;
	u32 members;

	spin_lock_bh(&hca->groups_lock);
	members = find_members(hca, to_qp(ib), mgid, &group);
	if (group) {
		hlist_del_rcu(&group->entry);
		kfree_rcu(group, rcu);
		hca->attachments--;
		hca->group_count -= members == 1;
	}
	spin_unlock_bh(&hca->groups_lock);
	return group ? 0 : -EINVAL;
}

#ifndef SHIM_HAVE_SIZE_IB_QP
/* Allocation of queue pairs on kernels that leave it to drivers, and set the members of struct ib_qp afterwards. */
static struct ib_qp *alloc_qp(struct ib_pd *pd, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct soft_qp *qp = kzalloc(sizeof(*qp), GFP_KERNEL);
	int ret;

	if (!qp)
		return ERR_PTR(-ENOMEM);
	qp->ib.device = pd->device;
	qp->ib.qp_type = attr->qp_type;
	ret = create_qp(&qp->ib, attr, udata);
	if (ret) {
		kfree(qp);
		return ERR_PTR(ret);
	}
	return &qp->ib;
}

static int free_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	destroy_qp(ib, udata);
	kfree(to_qp(ib));
	return 0;
}
#endif

const struct ib_device_ops soft_queue_ops = {
#ifdef SHIM_HAVE_SIZE_IB_QP
	.create_qp = create_qp,
	.destroy_qp = destroy_qp,
	INIT_RDMA_OBJ_SIZE(ib_qp, soft_qp, ib),
#else
	.create_qp = alloc_qp,
	.destroy_qp = free_qp,
#endif
	.modify_qp = modify_qp,
	.query_qp = query_qp,
	.attach_mcast = attach_mcast,
	.detach_mcast = detach_mcast,
};
