// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions, and translation of their addresses and keys to kernel addresses: an element of a work request, or the
 * target of a peer's RDMA request, becomes pieces that the engine can copy from and to. Elements of the kernel's own
 * work requests that name the local key need no translation. What a key permits is in regions.h.
 *
 * There are three kinds: pinned memory of user space; all of the kernel's memory; and kernel memory in fast
 * registration, whose lists of pages work requests make valid and invalid. Only the last kind changes, under
 * regions_lock, which is also held while its bytes are copied: no copy lasts longer than the registration. Its ib_mr
 * has the newest mapping, in which the consumer may change iova, and ib_core the page size, without that lock.
 */
#include "compat.h"
#include "engine.h"
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <regions.h>

struct soft_mr {
	struct ib_mr ib;
	struct fabric_region region;
	/* Kind: of user space, if it has this; of fast registration; otherwise all memory, without pages. */
	struct ib_umem *umem;
	bool fast;
	u8 page_shift;
	/* Offset of the first byte in the first page. */
	u32 offset;
	u32 max_pages;
	struct fabric_page_lists lists;
	void *pages[];
};

enum { REMOTE_ACCESS = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC };

static struct soft_mr *to_mr(struct ib_mr *ib) { return container_of(ib, struct soft_mr, ib); }

/* True if the bytes are memory that is always mapped: an address here may be a peer's. */
static bool is_kernel_memory(u64 address, u64 bytes)
{
	u64 at;

	for (at = address & PAGE_MASK; at < address + bytes; at += PAGE_SIZE)
		if (!virt_addr_valid((void *)(uintptr_t)at))
			return false;
	return true;
}

static bool add_piece(struct soft_pieces *to, u64 address, u32 bytes)
{
	if (to->count == ARRAY_SIZE(to->sge))
		return false;
	to->sge[to->count++] = (struct ib_sge){ .addr = address, .length = bytes };
	return true;
}

/* Pieces of the region's bytes, one for each page. The caller has checked the bounds. */
static bool add_pieces(const struct soft_mr *mr, u64 address, u32 bytes, struct soft_pieces *to)
{
	u64 at = address - mr->region.address + mr->offset;
	u32 page_bytes = 1U << mr->page_shift;

	if (!mr->umem && !mr->fast)
		return is_kernel_memory(address, bytes) && add_piece(to, address, bytes);
	while (bytes) {
		u32 offset = at & (page_bytes - 1), part = min(bytes, page_bytes - offset);

		if (!add_piece(to, (uintptr_t)mr->lists.used.page[at >> mr->page_shift] + offset, part))
			return false;
		at += part;
		bytes -= part;
	}
	return true;
}

static const struct soft_mr *find(struct soft_hca *hca, u32 key)
{
	return xa_load(&hca->regions, fabric_key_index(key));
}

/* locked: regions_lock is held. If not, regions of fast registration permit nothing. */
static bool allows(const struct soft_mr *mr, const struct ib_pd *pd, u64 address, u64 bytes, u32 key, int access,
		   bool locked)
{
	return mr && likely(!mr->fast || locked) && fabric_region_allows(&mr->region, key, pd, address, bytes, access);
}

bool soft_may_access(struct soft_hca *hca, const struct ib_pd *pd, const struct ib_sge *element, int access)
{
	unsigned long flags;
	bool allowed;

	if (likely(!soft_has_fast_regions(hca)))
		return allows(find(hca, element->lkey), pd, element->addr, element->length, element->lkey, access,
			      false);
	read_lock_irqsave(&hca->regions_lock, flags);
	allowed = allows(find(hca, element->lkey), pd, element->addr, element->length, element->lkey, access, true);
	read_unlock_irqrestore(&hca->regions_lock, flags);
	return allowed;
}

/* Pieces of bytes under one key. */
static bool map_element(struct soft_qp *qp, const struct ib_pd *pd, u64 address, u32 bytes, u32 key, int access,
			struct soft_pieces *pieces)
{
	const struct soft_mr *mr;

	if (key == SOFT_LOCAL_KEY && !qp->user && !(access & REMOTE_ACCESS))
		return add_piece(pieces, address, bytes);
	mr = find(qp->hca, key);
	if (!allows(mr, pd, address, bytes, key, access, pieces->locked))
		return false;
	pieces->fast |= mr->fast;
	return add_pieces(mr, address, bytes, pieces);
}

bool soft_map(struct soft_qp *qp, const struct ib_pd *pd, const struct elements *elements, u32 bytes, int access,
	      struct soft_pieces *pieces)
{
	u32 skipped = elements->offset, i;

	pieces->count = 0;
	pieces->fast = false;
	for (i = 0; i < elements->sges && bytes; i++) {
		const struct ib_sge *sge = &elements->sge[i];
		u32 part;

		if (skipped >= sge->length) {
			skipped -= sge->length;
			continue;
		}
		part = min(bytes, sge->length - skipped);
		if (!map_element(qp, pd, sge->addr + skipped, part, sge->lkey, access, pieces))
			return false;
		bytes -= part;
		skipped = 0;
	}
	return !bytes;
}

/* A unit of 8 bytes, atomic for all HCAs and processors. */
static bool execute(const struct fabric_headers *h, const struct soft_pieces *pieces, u64 *original)
{
	u64 address = pieces->sge[0].addr;

	/* The address that a peer knows may be aligned while the memory is not. */
	if (pieces->count != 1 || address % sizeof(u64))
		return false;
	if (h->opcode == FABRIC_RC_COMPARE_SWAP)
		*original = cmpxchg64((u64 *)(uintptr_t)address, h->compare, h->operand);
	else
		*original = atomic64_fetch_add(h->operand, (atomic64_t *)(uintptr_t)address);
	return true;
}

bool soft_atomic(struct soft_qp *qp, const struct fabric_headers *h, u64 *original)
{
	struct ib_sge memory = { .addr = h->remote_address, .length = sizeof(u64), .lkey = h->remote_key };
	struct elements elements = { .sge = &memory, .sges = 1 };
	struct soft_pieces pieces = { .locked = true };
	unsigned long flags;
	bool done;

	read_lock_irqsave(&qp->hca->regions_lock, flags);
	done = soft_map(qp, qp->ib.pd, &elements, sizeof(u64), IB_ACCESS_REMOTE_ATOMIC, &pieces) &&
	       execute(h, &pieces, original);
	read_unlock_irqrestore(&qp->hca->regions_lock, flags);
	return done;
}

bool soft_names_region(const struct ib_sge *sge, int count)
{
	int i;

	for (i = 0; i < count; i++)
		if (sge[i].lkey != SOFT_LOCAL_KEY)
			return true;
	return false;
}

/* Fast registration, by work requests */

bool soft_register(struct soft_hca *hca, const struct ib_pd *pd, u32 key, int access)
{
	struct fabric_region as = { .domain = pd, .key = key, .access = access };
	u32 page_bytes, offset;
	struct soft_mr *mr;
	unsigned long flags;
	bool done = false;

	write_lock_irqsave(&hca->regions_lock, flags);
	mr = xa_load(&hca->regions, fabric_key_index(key));
	if (mr && mr->fast) {
		as.address = mr->ib.iova;
		as.length = mr->ib.length;
		page_bytes = mr->ib.page_size;
		offset = mr->ib.iova & (page_bytes - 1);
		done = fabric_pages_register(&mr->lists, &mr->region, &as, offset, page_bytes);
		if (done) {
			mr->page_shift = ilog2(page_bytes);
			mr->offset = offset;
		}
	}
	write_unlock_irqrestore(&hca->regions_lock, flags);
	if (done)
		COUNT(hca->slot, registrations);
	return done;
}

bool soft_invalidate(struct soft_hca *hca, const struct ib_pd *pd, u32 key)
{
	struct soft_mr *mr;
	unsigned long flags;
	bool done;

	write_lock_irqsave(&hca->regions_lock, flags);
	mr = xa_load(&hca->regions, fabric_key_index(key));
	done = mr && mr->fast && fabric_region_invalidate(&mr->region, key, pd);
	write_unlock_irqrestore(&hca->regions_lock, flags);
	return done;
}

/* Verbs */

/* Returns an error pointer on failure. */
static struct soft_mr *alloc_region(struct ib_pd *pd, size_t pages, bool user)
{
	int ret = soft_add_object(pd->device, SOFT_MRS);
	struct soft_mr *mr;

	if (ret)
		return ERR_PTR(ret);
	mr = kvzalloc(struct_size(mr, pages, pages), soft_charged(user));
	if (!mr) {
		soft_remove_object(pd->device, SOFT_MRS);
		return ERR_PTR(-ENOMEM);
	}
	mr->region.domain = pd;
	mr->page_shift = PAGE_SHIFT;
	mr->lists.used.page = mr->pages;
	return mr;
}

/* Gives the region its key, by which it can be found from now on; or frees it. */
static struct ib_mr *publish(struct soft_hca *hca, struct soft_mr *mr)
{
	u32 index;
	/* A key is not reused soon: use of an old one must fail. */
	int ret = xa_alloc_cyclic(&hca->regions, &index, NULL, XA_LIMIT(1, FABRIC_MAX_REGION_INDEX), &hca->next_region,
				  GFP_KERNEL);

	if (ret < 0) {
		kvfree(mr);
		soft_remove_object(&hca->ib, SOFT_MRS);
		return ERR_PTR(ret);
	}
	mr->region.key = mr->ib.lkey = mr->ib.rkey = fabric_key(index);
	if (mr->umem)
		COUNT(hca->slot, regions);
	if (mr->fast)
		COUNT(hca->slot, fast_regions);
	xa_store(&hca->regions, index, mr, GFP_KERNEL);
	return &mr->ib;
}

static struct ib_mr *get_dma_mr(struct ib_pd *pd, int access)
{
	struct soft_mr *mr = alloc_region(pd, 0, false);

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->region.length = ~0ULL;
	mr->region.access = access;
	mr->region.valid = true;
	return publish(to_hca(pd->device), mr);
}

static struct ib_mr *reg_user_mr(SOFT_REG_USER_MR_ARGS)
{
	struct sg_page_iter page;
	struct ib_umem *umem;
	struct ib_mr *ib;
	struct soft_mr *mr;
	size_t i = 0;

	if (access & (IB_ACCESS_ON_DEMAND | IB_ZERO_BASED | IB_ACCESS_MW_BIND))
		return ERR_PTR(-EOPNOTSUPP);
	umem = soft_umem_get(pd->device, udata, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	mr = alloc_region(pd, ib_umem_num_pages(umem), true);
	if (IS_ERR(mr)) {
		ib_umem_release(umem);
		return ERR_CAST(mr);
	}
	mr->umem = umem;
	soft_umem_for_each_page(umem, &page) mr->pages[i++] = page_address(sg_page_iter_page(&page));
	mr->offset = offset_in_page(start);
	mr->region.address = address;
	mr->region.length = length;
	mr->region.access = access;
	mr->region.valid = true;
	ib = publish(to_hca(pd->device), mr);
	if (IS_ERR(ib))
		ib_umem_release(umem);
	return ib;
}

static struct ib_mr *alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_pages)
{
	struct soft_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_pages || max_pages > SOFT_MAX_REG_PAGES)
		return ERR_PTR(-EINVAL);
	mr = alloc_region(pd, 2 * max_pages, false);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->fast = true;
	mr->lists.mapped.page = mr->pages + max_pages;
	mr->max_pages = max_pages;
	return publish(to_hca(pd->device), mr);
}

static int set_page(struct ib_mr *ib, u64 address)
{
	struct soft_mr *mr = to_mr(ib);
	struct fabric_page_list *list = &mr->lists.mapped;

	if (list->count == mr->max_pages)
		return -ENOMEM;
	/* Without a DMA device an address is the kernel's own. */
	list->page[list->count++] = (void *)(uintptr_t)address;
	return 0;
}

static int map_mr_sg(struct ib_mr *ib, struct scatterlist *sg, int count, unsigned int *offset)
{
	struct soft_hca *hca = to_hca(ib->device);
	struct soft_mr *mr = to_mr(ib);
	unsigned long flags;
	int mapped;

	if (!mr->fast)
		return -EINVAL;
	/* An earlier registration may still wait in the send queue, and is executed with this mapping. */
	write_lock_irqsave(&hca->regions_lock, flags);
	mr->lists.mapped.count = 0;
	mr->lists.mapped_anew = true;
	ib->length = 0;
	mapped = ib_sg_to_pages(ib, sg, count, offset, set_page);
	write_unlock_irqrestore(&hca->regions_lock, flags);
	return mapped;
}

static int dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct soft_mr *mr = to_mr(ib);
	struct soft_hca *hca = to_hca(ib->device);

	xa_erase(&hca->regions, fabric_key_index(mr->region.key));
	/* An engine may be copying. */
	soft_wait_for_bursts();
	if (mr->fast)
		atomic64_dec(&hca->slot->counters.fast_regions);
	if (mr->umem) {
		atomic64_dec(&hca->slot->counters.regions);
		ib_umem_release(mr->umem);
	}
	kvfree(mr);
	soft_remove_object(&hca->ib, SOFT_MRS);
	return 0;
}

const struct ib_device_ops soft_memory_ops = {
	.get_dma_mr = get_dma_mr,
	.reg_user_mr = reg_user_mr,
	.alloc_mr = alloc_mr,
	.map_mr_sg = map_mr_sg,
	.dereg_mr = dereg_mr,
};
