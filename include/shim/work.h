/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Deferred work. An item queued twice before it runs runs once; an item never runs beside itself. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct workqueue_struct;
struct shim_work;
struct shim_lock_class;

/* Creates an ordered queue; reclaims: WQ_MEM_RECLAIM. NULL: no memory. CONTEXT: process, may sleep. */
struct workqueue_struct *shim_alloc_ordered_workqueue(const char *name, bool reclaims);
/* Waits for queued items, and destroys the queue. CONTEXT: process, may sleep. */
void shim_destroy_workqueue(struct workqueue_struct *queue);

/*
 * Initialises an item, with a lockdep class and name: to lockdep, cancelling the item acquires a lock of that class,
 * which the item holds while it runs.
 */
void shim_helper_work_init(struct shim_work *work, void (*run)(void *context), void *context,
			   struct shim_lock_class *lock_class, const char *name);
/* Queues an item, unless it is queued. CONTEXT: any, hard interrupts included, as for the next one. */
void shim_queue_delayed_work(struct workqueue_struct *queue, struct shim_work *work, unsigned long delay_jiffies);
/* Queues an item without a delay, even if it is queued with one. */
void shim_mod_delayed_work(struct workqueue_struct *queue, struct shim_work *work);
/* Cancels an item and waits until it does not run. CONTEXT: process, without locks that the item takes. */
void shim_cancel_delayed_work_sync(struct shim_work *work);

SHIM_END
