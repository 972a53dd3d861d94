// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Copies between SGEs of sends and receives. The addresses are the kernel's own; elements that name a region's key are
 * translated first, as far as one packet needs them.
 */
#include "engine.h"

/* Position of the next byte. */
struct cursor {
	const struct ib_sge *list;
	u32 sges, sge, offset;
};

static void skip(struct cursor *to, u32 bytes)
{
	while (to->sge < to->sges) {
		u32 left = to->list[to->sge].length - to->offset;

		if (bytes < left) {
			to->offset += bytes;
			return;
		}
		bytes -= left;
		to->sge++;
		to->offset = 0;
	}
}

/* Copies like the kernel's generic memcpy(). A function of its own, so that profiles count it as the fabric's work. */
static noinline void copy(void *to, const void *from, size_t bytes)
{
	struct words {
		u64 word[4];
	} __packed;

	for (; bytes >= sizeof(struct words); bytes -= sizeof(struct words)) {
		*(struct words *)to = *(const struct words *)from;
		to += sizeof(struct words);
		from += sizeof(struct words);
		/* Keeps the compiler from making the loop a call of memcpy(). */
		barrier();
	}
	for (; bytes; bytes--) {
		*(u8 *)to++ = *(const u8 *)from++;
		barrier();
	}
}

static void scatter(struct cursor *to, const void *from, u32 bytes)
{
	while (bytes && to->sge < to->sges) {
		const struct ib_sge *sge = &to->list[to->sge];
		u32 part = min(bytes, sge->length - to->offset);

		/* Without a DMA device an element's address is the kernel's own. */
		copy((void *)(uintptr_t)sge->addr + to->offset, from, part);
		from += part;
		bytes -= part;
		skip(to, part);
	}
}

static void scatter_payload(struct cursor *to, const struct frame *frame)
{
	u32 skipped = frame->offset, left = frame->headers->payload_bytes;
	unsigned int i;

	for (i = 0; i < frame->sges && left; i++) {
		const struct ib_sge *sge = &frame->sge[i];
		u32 part;

		if (skipped >= sge->length) {
			skipped -= sge->length;
			continue;
		}
		part = min(left, sge->length - skipped);
		scatter(to, (void *)(uintptr_t)sge->addr + skipped, part);
		left -= part;
		skipped = 0;
	}
}

void soft_place(const struct elements *elements, const struct frame *frame)
{
	struct cursor to = { .list = elements->sge, .sges = elements->sges };

	skip(&to, elements->offset);
	scatter_payload(&to, frame);
}

void soft_gather(const struct frame *frame, void *to)
{
	struct ib_sge area = { .addr = (uintptr_t)to, .length = frame->headers->payload_bytes };

	soft_place(&(struct elements){ .sge = &area, .sges = 1 }, frame);
}

static bool place_mapped(struct soft_qp *qp, const struct ib_pd *pd, const struct elements *to, int access,
			 const struct frame *frame, bool locked)
{
	struct soft_pieces pieces;

	pieces.locked = locked;
	if (!soft_map(qp, pd, to, frame->headers->payload_bytes, access, &pieces))
		return false;
	soft_place(&(struct elements){ .sge = pieces.sge, .sges = pieces.count }, frame);
	return true;
}

bool soft_place_mapped(struct soft_qp *qp, const struct ib_pd *pd, const struct elements *to, int access,
		       const struct frame *frame)
{
	unsigned long flags;
	bool placed;

	if (likely(!soft_has_fast_regions(qp->hca)))
		return place_mapped(qp, pd, to, access, frame, false);
	read_lock_irqsave(&qp->hca->regions_lock, flags);
	placed = place_mapped(qp, pd, to, access, frame, true);
	read_unlock_irqrestore(&qp->hca->regions_lock, flags);
	return placed;
}

u32 soft_recv_bytes(const struct soft_recv *recv)
{
	u64 bytes = 0;
	u32 i;

	for (i = 0; i < recv->sges; i++)
		bytes += recv->sge[i].length;
	return min_t(u64, bytes, FABRIC_MAX_MESSAGE_BYTES);
}

static void scatter_grh(struct cursor *to, const struct fabric_headers *h)
{
	u8 wire[FABRIC_MAX_HEADER_BYTES];

	if (h->grh) {
		fabric_build_headers(h, wire);
		scatter(to, wire + 8, sizeof(struct ib_grh));
	} else {
		/* The space is always there; its content is undefined then. */
		skip(to, sizeof(struct ib_grh));
	}
}

static noinline void corrupt_byte(const struct elements *elements, u32 at)
{
	struct cursor to = { .list = elements->sge, .sges = elements->sges };
	static const u8 wrong[] = { 0x5a };

	skip(&to, at);
	scatter(&to, wrong, sizeof(wrong));
}

/* Writes GRH and payload to a receive's elements at kernel addresses. */
static void fill(const struct elements *elements, const struct frame *frame, bool corrupt)
{
	struct cursor to = { .list = elements->sge, .sges = elements->sges };

	scatter_grh(&to, frame->headers);
	scatter_payload(&to, frame);
	if (unlikely(corrupt))
		corrupt_byte(elements, sizeof(struct ib_grh) + frame->headers->payload_bytes - 1);
}

/* Same for elements to be translated. Datagrams are not received in regions of fast registration. */
static noinline bool fill_mapped(struct soft_qp *qp, const struct soft_recv *recv, const struct frame *frame,
				 bool corrupt)
{
	struct elements elements = { .sge = recv->sge, .sges = recv->sges };
	struct soft_pieces pieces = { .locked = false };

	if (!soft_map(qp, soft_recv_pd(qp), &elements, sizeof(struct ib_grh) + frame->headers->payload_bytes,
		      IB_ACCESS_LOCAL_WRITE, &pieces))
		return false;
	fill(&(struct elements){ .sge = pieces.sge, .sges = pieces.count }, frame, corrupt);
	return true;
}

bool soft_fill(struct soft_qp *qp, const struct soft_recv *recv, const struct frame *frame, bool corrupt)
{
	if (unlikely(recv->mapped))
		return fill_mapped(qp, recv, frame, corrupt);
	fill(&(struct elements){ .sge = recv->sge, .sges = recv->sges }, frame, corrupt);
	return true;
}
