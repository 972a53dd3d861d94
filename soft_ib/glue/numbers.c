// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Numbers of programs' queue pairs, which outlive them: uverbs reads wc->qp->qp_num after poll_cq() has returned, when
 * another thread may have destroyed the queue pair. Pages of consecutive numbers, kept until the HCA ends: 33 MB if all
 * 2^23 numbers are used. The process that first uses a number of a page is charged for it.
 */
#include "glue.h"

enum { NUMBERS = PAGE_SIZE / sizeof(u32) };

int soft_keep_number(struct soft_hca *hca, u32 number)
{
	unsigned long index = number / NUMBERS;
	u32 *page, i;
	int ret;

	if (xa_load(&hca->numbers, index))
		return 0;
	page = kmalloc(PAGE_SIZE, GFP_KERNEL_ACCOUNT);
	if (!page)
		return -ENOMEM;
	for (i = 0; i < NUMBERS; i++)
		page[i] = index * NUMBERS + i;
	ret = xa_insert(&hca->numbers, index, page, GFP_KERNEL);
	if (ret)
		kfree(page);
	/* Another processor was first. */
	return ret == -EBUSY ? 0 : ret;
}

struct ib_qp *soft_numbered(struct soft_hca *hca, u32 number)
{
	u32 *page = xa_load(&hca->numbers, number / NUMBERS);

	return container_of(&page[number % NUMBERS], struct ib_qp, qp_num);
}

void soft_drop_numbers(struct soft_hca *hca)
{
	unsigned long index;
	void *page;

	xa_for_each(&hca->numbers, index, page) kfree(page);
	xa_destroy(&hca->numbers);
}
