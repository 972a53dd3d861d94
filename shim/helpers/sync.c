// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Helpers for locks, work items and interrupt moderation, whose initialisers are macros: functions of the C boundary
 * that need control flow or several kernel calls. The comment above each gives the reason.
 */
#include "../compat.h"
#include "../objects.h"
#include <linux/workqueue.h>
#include <shim/dim.h>
#include <shim/sync.h>
#include <shim/work.h>

/* spin_lock_init() is a macro; lockdep gets the class of the C++ object. */
SHIM void shim_helper_spinlock_init(struct shim_spinlock *lock, struct shim_lock_class *lock_class, const char *name)
{
	spin_lock_init((spinlock_t *)lock);
	lockdep_set_class_and_name((spinlock_t *)lock, (struct lock_class_key *)lock_class, name);
}

static void work_run(struct work_struct *item)
{
	struct shim_work *work = container_of(item, struct shim_work, work.work);

	work->run(work->context);
}

/* INIT_DELAYED_WORK() is a macro; the item calls back into C++. */
SHIM void shim_helper_work_init(struct shim_work *work, void (*run)(void *context), void *context,
				struct shim_lock_class *lock_class, const char *name)
{
	INIT_DELAYED_WORK(&work->work, work_run);
	lockdep_init_map(&work->work.work.lockdep_map, name, (struct lock_class_key *)lock_class, 0);
	work->run = run;
	work->context = context;
}

/* Two calls: the library takes its sample in a structure, by value or by pointer. */
SHIM void shim_helper_net_dim(struct shim_dim *dim, uint16_t events, uint64_t packets, uint64_t bytes)
{
	struct dim_sample sample = {};

	dim_update_sample(events, packets, bytes, &sample);
	net_dim(&dim->dim, SHIM_DIM_SAMPLE(sample));
}
