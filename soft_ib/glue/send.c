// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sends of datagram queue pairs: a frame each, or one for each segment, with the checksums that the HCA fills in. */
#include "compat.h"
#include "engine.h"

static u32 mtu_bytes(const struct soft_slot *slot)
{
	return ib_mtu_enum_to_int(fabric_hca_port(soft_fabric, slot->index)->mtu);
}

/* Gathers part of a send's elements in the staging area, at this offset. */
static void stage(struct soft_hca *hca, u32 at, const struct soft_send *send, u32 from, u32 bytes)
{
	struct fabric_headers part = { .payload_bytes = bytes };
	struct frame frame = { .headers = &part, .sge = send->sge, .sges = send->sges, .offset = from };

	soft_gather(&frame, hca->staging + at);
}

static void carry_staged(struct soft_qp *qp, const struct fabric_headers *headers, struct burst *burst)
{
	struct ib_sge sge = { .addr = (uintptr_t)qp->hca->staging, .length = headers->payload_bytes };
	struct frame frame = { .headers = headers, .sge = &sge, .sges = 1 };

	soft_carry(qp->hca->slot, &frame, burst);
}

static void send_whole(struct soft_qp *qp, const struct soft_send *send, struct burst *burst)
{
	struct frame frame = {
		.headers = &send->headers,
		.sge = send->sge,
		.sges = send->sges,
	};

	if (qp->ib.qp_type != IB_QPT_UD || !soft_have_offloads ||
	    (send->sges == 1 && !(send->flags & IB_SEND_IP_CSUM))) {
		soft_carry(qp->hca->slot, &frame, burst);
		return;
	}
	stage(qp->hca, 0, send, 0, send->bytes);
	if (send->flags & IB_SEND_IP_CSUM)
		fabric_fill_checksums(qp->hca->staging, send->bytes);
	carry_staged(qp, &send->headers, burst);
}

/* Datagrams from regions, mostly those of user space. Receivers are not told that their checksums are correct. */
static bool send_mapped(struct soft_qp *qp, const struct soft_send *send, struct burst *burst)
{
	struct frame frame = { .headers = &send->headers, .sge = send->sge, .sges = send->sges };

	return soft_carry_mapped(qp, qp->ib.pd, &frame, 0, burst);
}

static void send_segments(struct soft_qp *qp, const struct soft_send *send, struct burst *burst)
{
	struct fabric_headers headers = send->headers;
	u32 offset, index, part;

	for (offset = index = 0; offset < send->bytes; offset += part, index++) {
		part = min(send->bytes - offset, send->segment_bytes);
		memcpy(qp->hca->staging, send->header, send->header_bytes);
		stage(qp->hca, send->header_bytes, send, offset, part);
		headers.payload_bytes = send->header_bytes + part;
		headers.psn = send->headers.psn + index;
		fabric_make_segment(qp->hca->staging, headers.payload_bytes, index, offset,
				    offset + part == send->bytes);
		COUNT(qp->hca->slot, segments);
		carry_staged(qp, &headers, burst);
		burst->frames++;
	}
}

enum ib_wc_status soft_execute(struct soft_qp *qp, const struct soft_send *send, struct burst *burst)
{
	struct soft_slot *slot = qp->hca->slot;
	u32 longest = min_t(u32, mtu_bytes(slot), SOFT_MAX_FRAME);

	if (send->segment_bytes ? send->header_bytes + send->segment_bytes > longest : send->bytes > longest)
		return IB_WC_LOC_LEN_ERR;
	if (qp->ib.qp_type == IB_QPT_UD && READ_ONCE(slot->fail_sends)) {
		WRITE_ONCE(slot->fail_sends, slot->fail_sends - 1);
		return IB_WC_LOC_PROT_ERR;
	}
	if (send->segment_bytes)
		send_segments(qp, send, burst);
	else if (!send->mapped)
		send_whole(qp, send, burst);
	else if (!send_mapped(qp, send, burst))
		return IB_WC_LOC_PROT_ERR;
	return IB_WC_SUCCESS;
}
