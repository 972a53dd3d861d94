// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The engine of an HCA: a tasklet that executes posted work requests. It takes sends off the queue pairs in turn,
 * routes each by the fabric's logic and puts it into the receive queues of its destinations, then raises completion
 * events, SOFT_BURST frames at a time. Nothing is delivered from within post_send.
 */
#include "engine.h"
#include "compat.h"

void soft_complete_send(struct soft_qp *qp, const struct soft_send *send, enum ib_wc_status status, struct burst *burst)
{
	struct ib_wc wc = {
		.wr_id = send->wr_id,
		.status = status,
		.opcode = send->completion,
		.qp = &qp->ib,
		.byte_len = send->bytes,
	};

	if (status == IB_WC_SUCCESS && !qp->signal_all && !(send->flags & IB_SEND_SIGNALED))
		return;
	if (unlikely((send->flags & SOFT_OWN_SEND) && !qp->user))
		return;
	soft_cq_push(to_cq(qp->ib.send_cq), &wc, false, &burst->due);
}

/* Receiving */

/* Checksum results of a datagram's content. The payload of a possible IPv4 packet is in one piece. */
static bool checksums_hold(const struct soft_qp *qp, const struct frame *frame)
{
	return soft_have_offloads && qp->ib.qp_type == IB_QPT_UD && frame->sges == 1 && !frame->changing &&
	       fabric_checksums_hold((void *)(uintptr_t)frame->sge->addr, frame->headers->payload_bytes);
}

static void count_received(struct soft_slot *slot, const struct soft_recv *recv, enum ib_wc_status status)
{
	if (!recv)
		COUNT(slot, drop_no_receive);
	else if (status)
		COUNT(slot, drop_length);
	else
		COUNT(slot, delivered);
}

static void receive(struct soft_slot *slot, struct soft_qp *qp, const struct frame *frame, struct burst *burst)
{
	const struct fabric_headers *h = frame->headers;
	struct ib_wc wc = {
		.opcode = IB_WC_RECV,
		.qp = &qp->ib,
		.src_qp = h->source_qpn,
		.slid = h->slid,
		.sl = h->sl,
		.port_num = 1,
		.wc_flags = h->grh ? IB_WC_GRH : 0,
	};
	bool corrupt = qp->ib.qp_type == IB_QPT_UD && soft_every(READ_ONCE(slot->corrupt_every), &slot->corrupted_of);
	const struct soft_recv *recv = NULL;
	unsigned long flags;
	int pkey_index = soft_admit_datagram(slot, qp, h);

	if (pkey_index < 0)
		return;
	wc.pkey_index = pkey_index;
	if (!corrupt && checksums_hold(qp, frame))
		wc.wc_flags |= IB_WC_IP_CSUM_OK;
	if (h->opcode == FABRIC_UD_SEND_ONLY_IMMEDIATE) {
		wc.wc_flags |= IB_WC_WITH_IMM;
		wc.ex.imm_data = cpu_to_be32(h->immediate);
	}
	spin_lock_irqsave(&qp->rq_lock, flags);
	/* The state may have changed since the datagram was admitted, and a flush may have begun. */
	if (READ_ONCE(qp->state) != IB_QPS_ERR && qp->rq_head != qp->rq_tail)
		recv = &qp->rq[qp->rq_tail % qp->rq_size];
	if (recv) {
		wc.wr_id = recv->wr_id;
		wc.byte_len = sizeof(struct ib_grh) + h->payload_bytes;
		if (soft_recv_bytes(recv) < wc.byte_len)
			wc.status = IB_WC_LOC_LEN_ERR;
		else if (!soft_fill(qp, recv, frame, corrupt))
			wc.status = IB_WC_LOC_PROT_ERR;
		qp->rq_tail++;
		soft_cq_push(to_cq(qp->ib.recv_cq), &wc, h->solicited, &burst->due);
	}
	spin_unlock_irqrestore(&qp->rq_lock, flags);
	if (wc.status == IB_WC_LOC_PROT_ERR)
		soft_break_off(qp);
	count_received(slot, recv, wc.status);
}

static void receive_group(struct soft_slot *slot, struct soft_hca *hca, const struct frame *frame, struct burst *burst)
{
	struct soft_group *group;

	hlist_for_each_entry_rcu(group, soft_groups_like(hca, frame->headers->dgid), entry)
	{
		if (memcmp(&group->mgid, frame->headers->dgid, sizeof(group->mgid)))
			continue;
		receive(slot, group->qp, frame, burst);
		burst->frames++;
	}
}

static void arrive(struct soft_slot *slot, const struct frame *frame, struct burst *burst)
{
	struct soft_hca *hca = rcu_dereference(slot->hca);
	const struct fabric_headers *h = frame->headers;
	struct soft_qp *qp;

	if (!hca || !fabric_accepts(soft_fabric, slot->index, h)) {
		COUNT(slot, drop_route);
		return;
	}
	if (h->dlid >= FABRIC_FIRST_MULTICAST_LID && h->dlid != FABRIC_PERMISSIVE_LID) {
		if (fabric_transport_of(h->opcode) == FABRIC_DATAGRAM)
			receive_group(slot, hca, frame, burst);
		else
			COUNT(slot, drop_no_qp);
		return;
	}
	if (h->destination_qpn == 0)
		qp = rcu_dereference(hca->smi);
	else if (h->destination_qpn == 1)
		qp = rcu_dereference(hca->gsi);
	else
		qp = xa_load(&hca->qps, h->destination_qpn);
	if (!qp || qp->transport != fabric_transport_of(h->opcode))
		COUNT(slot, drop_no_qp);
	else if (qp->transport == FABRIC_RELIABLE)
		soft_rc_arrive(slot, qp, frame, burst);
	else if (qp->transport == FABRIC_UNRELIABLE)
		soft_uc_arrive(slot, qp, frame, burst);
	else if (!soft_filter_receive(slot, qp, frame))
		receive(slot, qp, frame, burst);
}

/* The switch */

static void fan_out(const struct fabric_route *route, const struct frame *frame, struct burst *burst)
{
	unsigned int i;

	for (i = 0; i < soft_hca_count; i++) {
		if (!(route->hcas & BIT_ULL(i)))
			continue;
		fabric_count_received(soft_fabric, i, frame->headers);
		arrive(&soft_slots[i], frame, burst);
	}
	if (route->trunks)
		soft_trunks_send(route->trunks, frame);
}

static void at_switch(u32 ingress, const struct frame *frame, struct burst *burst)
{
	struct fabric_headers headers = *frame->headers;
	u8 mad[FABRIC_MAD_BYTES];
	struct ib_sge sge = { .addr = (uintptr_t)mad, .length = sizeof(mad) };
	struct frame answer = { .headers = &headers, .sge = &sge, .sges = 1, .trunks_passed = frame->trunks_passed };
	struct fabric_route route;
	unsigned long flags;
	bool send;

	if (headers.payload_bytes != sizeof(mad))
		return;
	soft_gather(frame, mad);
	spin_lock_irqsave(&soft_fabric_lock, flags);
	soft_sample();
	send = fabric_switch_mad(soft_fabric, ingress, &headers, mad, &route);
	soft_after_mad();
	spin_unlock_irqrestore(&soft_fabric_lock, flags);
	if (!send)
		return;
	soft_capture(&answer, true);
	fan_out(&route, &answer, burst);
}

/* Returns false if no trap can be sent. */
static bool send_trap(void)
{
	struct fabric_headers headers;
	u8 mad[FABRIC_MAD_BYTES];
	struct ib_sge sge = { .addr = (uintptr_t)mad, .length = sizeof(mad) };
	struct frame frame = { .headers = &headers, .sge = &sge, .sges = 1 };
	struct fabric_route route;
	struct burst burst;
	bool send;

	spin_lock_irq(&soft_fabric_lock);
	send = fabric_switch_trap(soft_fabric, &headers, mad, &route);
	spin_unlock_irq(&soft_fabric_lock);
	if (!send)
		return false;
	local_bh_disable();
	soft_burst_start(&burst);
	soft_capture(&frame, true);
	fan_out(&route, &frame, &burst);
	soft_burst_end(&burst);
	local_bh_enable();
	return true;
}

void soft_send_traps(void)
{
	while (send_trap()) {
	}
}

void soft_inject(struct soft_slot *to, const struct fabric_headers *headers, const void *payload)
{
	struct ib_sge sge = { .addr = (uintptr_t)payload, .length = headers->payload_bytes };
	struct frame frame = { .headers = headers, .sge = &sge, .sges = 1 };
	struct burst burst;

	local_bh_disable();
	soft_burst_start(&burst);
	soft_capture(&frame, true);
	arrive(to, &frame, &burst);
	soft_burst_end(&burst);
	local_bh_enable();
}

/* Sending */

void soft_carry(struct soft_slot *slot, const struct frame *frame, struct burst *burst)
{
	struct fabric_route route = fabric_route_frame(soft_fabric, slot->index, frame->headers);

	if (route.sent_words) {
		soft_capture(frame, false);
		soft_link_occupy(slot, route.sent_words);
	}
	if (!route.hcas && !route.to_switch && !route.trunks)
		COUNT(slot, drop_route);
	if (route.to_switch)
		at_switch(route.to_switch, frame, burst);
	/* Frames for this HCA, too or only, did not come by cable. */
	if (route.hcas & BIT_ULL(slot->index))
		arrive(slot, frame, burst);
	route.hcas &= ~BIT_ULL(slot->index);
	fan_out(&route, frame, burst);
}

/*
 * Same for elements in regions of fast registration, which are locked while bytes are copied: the frame is carried
 * without the lock, since its receiver takes locks of queue pairs.
 */
static noinline bool carry_fast(struct soft_qp *qp, const struct ib_pd *pd, const struct frame *frame, int access,
				struct burst *burst)
{
	struct soft_hca *hca = qp->hca;
	struct elements from = { .sge = frame->sge, .sges = frame->sges, .offset = frame->offset };
	struct ib_sge staged = { .addr = (uintptr_t)hca->staging, .length = frame->headers->payload_bytes };
	struct frame mapped = { .headers = frame->headers, .changing = true };
	struct soft_pieces pieces;
	unsigned long flags;
	bool allowed;

	pieces.locked = true;
	read_lock_irqsave(&hca->regions_lock, flags);
	allowed = soft_map(qp, pd, &from, frame->headers->payload_bytes, access, &pieces);
	mapped.sge = pieces.sge;
	mapped.sges = pieces.count;
	if (allowed && pieces.fast) {
		soft_gather(&mapped, hca->staging);
		mapped.sge = &staged;
		mapped.sges = 1;
	}
	read_unlock_irqrestore(&hca->regions_lock, flags);
	if (allowed)
		soft_carry(hca->slot, &mapped, burst);
	return allowed;
}

bool soft_carry_mapped(struct soft_qp *qp, const struct ib_pd *pd, const struct frame *frame, int access,
		       struct burst *burst)
{
	struct elements from = { .sge = frame->sge, .sges = frame->sges, .offset = frame->offset };
	struct frame mapped = { .headers = frame->headers, .changing = true };
	struct soft_pieces pieces;

	if (unlikely(soft_has_fast_regions(qp->hca)))
		return carry_fast(qp, pd, frame, access, burst);
	pieces.locked = false;
	if (!soft_map(qp, pd, &from, frame->headers->payload_bytes, access, &pieces))
		return false;
	mapped.sge = pieces.sge;
	mapped.sges = pieces.count;
	soft_carry(qp->hca->slot, &mapped, burst);
	return true;
}

void soft_arrive_by_trunk(unsigned int trunk, const struct fabric_headers *headers, const void *payload,
			  u8 trunks_passed)
{
	struct ib_sge sge = { .addr = (uintptr_t)payload, .length = headers->payload_bytes };
	struct frame frame = { .headers = headers, .sge = &sge, .sges = 1, .trunks_passed = trunks_passed };
	struct fabric_route route;
	struct burst burst;

	soft_burst_start(&burst);
	soft_capture(&frame, true);
	route = fabric_route_from_trunk(soft_fabric, trunk, headers);
	if (route.to_switch)
		at_switch(route.to_switch, &frame, &burst);
	fan_out(&route, &frame, &burst);
	soft_burst_end(&burst);
}

static bool completion_is_lost(struct soft_qp *qp, enum ib_wc_status status)
{
	u32 left = READ_ONCE(qp->hca->slot->lose_completions);

	if (!left || qp->ib.qp_type != IB_QPT_UD || status != IB_WC_SUCCESS)
		return false;
	WRITE_ONCE(qp->hca->slot->lose_completions, left - 1);
	return true;
}

/* Executes or flushes one send of the QP. Returns false if nothing is left to do. Only the engine moves sq_tail. */
static bool step(struct soft_qp *qp, struct burst *burst)
{
	enum ib_qp_state state = READ_ONCE(qp->state);
	enum ib_wc_status status = IB_WC_WR_FLUSH_ERR;
	struct soft_send *send;
	unsigned long flags;
	bool last = true;

	if (qp->transport == FABRIC_RELIABLE)
		return soft_rc_step(qp, burst);
	if (state == IB_QPS_ERR) {
		soft_flush_message(qp, burst);
		if (soft_flush_receives(qp, burst))
			return true;
	}
	if (state != IB_QPS_RTS && state != IB_QPS_ERR && state != IB_QPS_SQE)
		return false;
	/* Pairs with record_send(): counted sends are filled in. */
	if (smp_load_acquire(&qp->sq_head) == qp->sq_tail)
		return false;
	send = &qp->sq[qp->sq_tail % qp->sq_size];
	burst->frames++;
	if (state == IB_QPS_RTS) {
		status = qp->transport == FABRIC_DATAGRAM ? soft_execute(qp, send, burst) :
							    soft_uc_execute(qp, send, &last, burst);
		/* An error of its own stops the sends of an unreliable queue pair, not the receives (IBA 10.3.1). */
		if (status != IB_WC_SUCCESS)
			cmpxchg(&qp->state, IB_QPS_RTS, IB_QPS_SQE);
		else if (!last)
			return true;
	}
	/* The poller of the completion may post into the send's slot at once. */
	spin_lock_irqsave(&qp->sq_lock, flags);
	if (!completion_is_lost(qp, status))
		soft_complete_send(qp, send, status, burst);
	WRITE_ONCE(qp->sq_tail, qp->sq_tail + 1);
	spin_unlock_irqrestore(&qp->sq_lock, flags);
	return true;
}

void soft_break_off(struct soft_qp *qp)
{
	WRITE_ONCE(qp->state, IB_QPS_ERR);
	soft_engine_kick(qp);
}

/* Takes the next queue pair that has work: any one, or only that of subnet management. */
static struct soft_qp *next_active(struct soft_hca *hca, bool any)
{
	struct soft_qp *qp;

	spin_lock_irq(&hca->active_lock);
	if (likely(any))
		qp = list_first_entry_or_null(&hca->active, struct soft_qp, active);
	else
		qp = rcu_dereference(hca->smi);
	if (qp && !list_empty(&qp->active))
		list_del_init(&qp->active);
	else
		qp = NULL;
	spin_unlock_irq(&hca->active_lock);
	return qp;
}

static void schedule_run(struct soft_hca *hca)
{
	u32 delay_us = READ_ONCE(hca->slot->delay_us);

	if (!delay_us)
		tasklet_schedule(&hca->engine);
	else if (!hrtimer_is_queued(&hca->delay))
		hrtimer_start(&hca->delay, ns_to_ktime((u64)delay_us * NSEC_PER_USEC), HRTIMER_MODE_REL_SOFT);
}

static void engine_run(unsigned long data)
{
	struct soft_hca *hca = (struct soft_hca *)data;
	/* A link of limited rate is free for one send at a time. */
	unsigned int limit = unlikely(READ_ONCE(hca->slot->rate_mbps)) ? 1 : SOFT_BURST;
	u64 wait_ns = soft_link_wait(hca->slot);
	struct soft_qp *qp;
	struct burst burst;
	bool more;

	soft_burst_start(&burst);
	while (burst.frames < limit && (qp = next_active(hca, !wait_ns))) {
		do
			more = step(qp, &burst);
		while (more && burst.frames < limit);
		if (more)
			soft_engine_kick(qp);
	}
	soft_burst_end(&burst);
	/* The burst has ended, and other queue pairs have work. */
	if (burst.frames >= limit && !list_empty_careful(&hca->active))
		schedule_run(hca);
	else if (unlikely(wait_ns) && !list_empty_careful(&hca->active))
		hrtimer_start(&hca->delay, ns_to_ktime(wait_ns), HRTIMER_MODE_REL_SOFT);
}

static enum hrtimer_restart delay_over(struct hrtimer *timer)
{
	tasklet_schedule(&container_of(timer, struct soft_hca, delay)->engine);
	return HRTIMER_NORESTART;
}

void soft_engine_kick(struct soft_qp *qp)
{
	struct soft_hca *hca = qp->hca;
	unsigned long flags;

	spin_lock_irqsave(&hca->active_lock, flags);
	if (!qp->dying && list_empty(&qp->active))
		list_add_tail(&qp->active, &hca->active);
	spin_unlock_irqrestore(&hca->active_lock, flags);
	schedule_run(hca);
}

void soft_engine_init(struct soft_hca *hca)
{
	tasklet_init(&hca->engine, engine_run, (unsigned long)hca);
	soft_hrtimer_setup(&hca->delay, delay_over);
	INIT_LIST_HEAD(&hca->active);
	spin_lock_init(&hca->active_lock);
}

void soft_engine_stop(struct soft_hca *hca)
{
	hrtimer_cancel(&hca->delay);
	tasklet_kill(&hca->engine);
}
