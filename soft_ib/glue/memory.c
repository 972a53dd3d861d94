// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions of user space, and translation of their addresses and keys to kernel addresses: an element of a work
 * request, or the target of a peer's RDMA request, becomes pieces that the engine can copy from and to. Elements of the
 * kernel's own queue pairs need no translation. The pages are pinned as long as the region lasts.
 */
#include "compat.h"
#include "engine.h"
#include <linux/mm.h>
#include <linux/slab.h>

struct soft_mr {
	struct ib_mr ib;
	struct ib_pd *pd;
	struct ib_umem *umem;
	/* Address of the first byte in work requests, and its offset in the first page. */
	u64 address, length;
	u32 offset;
	int access;
	void *pages[];
};

static struct soft_mr *to_mr(struct ib_mr *ib) { return container_of(ib, struct soft_mr, ib); }

/* Pieces of the region's bytes, one for each page. The caller has checked the bounds. */
static bool add_pieces(const struct soft_mr *mr, u64 address, u32 bytes, struct soft_pieces *to)
{
	u64 at = address - mr->address + mr->offset;

	while (bytes) {
		u32 part = min_t(u32, bytes, PAGE_SIZE - offset_in_page(at));

		if (to->count == ARRAY_SIZE(to->sge))
			return false;
		to->sge[to->count++] = (struct ib_sge){
			.addr = (uintptr_t)mr->pages[at >> PAGE_SHIFT] + offset_in_page(at),
			.length = part,
		};
		at += part;
		bytes -= part;
	}
	return true;
}

static bool allows(const struct soft_mr *mr, const struct ib_pd *pd, u64 address, u64 bytes, int access)
{
	return mr->pd == pd && (mr->access & access) == access && address >= mr->address && bytes <= mr->length &&
	       address - mr->address <= mr->length - bytes;
}

bool soft_may_access(struct soft_hca *hca, const struct ib_pd *pd, const struct ib_sge *element, int access)
{
	const struct soft_mr *mr = xa_load(&hca->regions, element->lkey);

	return mr && allows(mr, pd, element->addr, element->length, access);
}

bool soft_map(struct soft_hca *hca, const struct ib_pd *pd, const struct elements *elements, u32 bytes, int access,
	      struct soft_pieces *pieces)
{
	u32 skipped = elements->offset, i;

	pieces->count = 0;
	for (i = 0; i < elements->sges && bytes; i++) {
		const struct ib_sge *sge = &elements->sge[i];
		const struct soft_mr *mr;
		u32 part;

		if (skipped >= sge->length) {
			skipped -= sge->length;
			continue;
		}
		part = min(bytes, sge->length - skipped);
		mr = xa_load(&hca->regions, sge->lkey);
		if (!mr || !allows(mr, pd, sge->addr + skipped, part, access) ||
		    !add_pieces(mr, sge->addr + skipped, part, pieces))
			return false;
		bytes -= part;
		skipped = 0;
	}
	return true;
}

/* Verbs */

static struct ib_mr *get_dma_mr(struct ib_pd *pd, int access)
{
	struct soft_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	return mr ? &mr->ib : ERR_PTR(-ENOMEM);
}

static struct soft_mr *alloc_region(struct ib_umem *umem)
{
	struct soft_mr *mr = kvzalloc(struct_size(mr, pages, ib_umem_num_pages(umem)), GFP_KERNEL);
	struct sg_page_iter page;
	size_t i = 0;

	if (!mr)
		return NULL;
	mr->umem = umem;
	soft_umem_for_each_page(umem, &page) mr->pages[i++] = page_address(sg_page_iter_page(&page));
	return mr;
}

static struct ib_mr *reg_user_mr(SOFT_REG_USER_MR_ARGS)
{
	struct soft_hca *hca = to_hca(pd->device);
	struct ib_umem *umem;
	struct soft_mr *mr;
	int ret;

	if (access & (IB_ACCESS_ON_DEMAND | IB_ZERO_BASED | IB_ACCESS_MW_BIND))
		return ERR_PTR(-EOPNOTSUPP);
	umem = soft_umem_get(pd->device, udata, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	mr = alloc_region(umem);
	if (!mr) {
		ib_umem_release(umem);
		return ERR_PTR(-ENOMEM);
	}
	mr->pd = pd;
	mr->address = address;
	mr->length = length;
	mr->offset = offset_in_page(start);
	mr->access = access;
	/* A key is not reused soon: use of an old one must fail. */
	ret = xa_alloc_cyclic(&hca->regions, &mr->ib.lkey, mr, XA_LIMIT(0x100, 0xffffff), &hca->next_key, GFP_KERNEL);
	if (ret < 0) {
		ib_umem_release(umem);
		kvfree(mr);
		return ERR_PTR(ret);
	}
	mr->ib.rkey = mr->ib.lkey;
	COUNT(hca->slot, regions);
	return &mr->ib;
}

static int dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct soft_mr *mr = to_mr(ib);
	struct soft_hca *hca = to_hca(ib->device);

	if (mr->umem) {
		xa_erase(&hca->regions, ib->lkey);
		/* An engine may be copying. */
		synchronize_rcu_expedited();
		ib_umem_release(mr->umem);
		atomic64_dec(&hca->slot->counters.regions);
	}
	kvfree(mr);
	return 0;
}

const struct ib_device_ops soft_memory_ops = {
	.get_dma_mr = get_dma_mr,
	.reg_user_mr = reg_user_mr,
	.dereg_mr = dereg_mr,
};
