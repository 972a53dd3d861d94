// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Work queues. */
#include "objects.h"
#include <linux/workqueue.h>
#include <shim/work.h>

SHIM struct workqueue_struct *shim_alloc_ordered_workqueue(const char *name, bool reclaims)
{
	return alloc_ordered_workqueue("%s", reclaims ? WQ_MEM_RECLAIM : 0, name);
}

SHIM void shim_destroy_workqueue(struct workqueue_struct *queue) { destroy_workqueue(queue); }

SHIM void shim_queue_delayed_work(struct workqueue_struct *queue, struct shim_work *work, unsigned long delay_jiffies)
{
	queue_delayed_work(queue, &work->work, delay_jiffies);
}

SHIM void shim_mod_delayed_work(struct workqueue_struct *queue, struct shim_work *work)
{
	mod_delayed_work(queue, &work->work, 0);
}

SHIM void shim_cancel_delayed_work_sync(struct shim_work *work) { cancel_delayed_work_sync(&work->work); }
