/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Deferred work. An item queued twice before it runs runs once; an item never runs beside itself. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct workqueue_struct;
struct shim_work;
struct shim_lock_class;

/* An ordered queue, one item at a time; reclaims: with a rescuer. NULL: no memory. CONTEXT: process. */
struct workqueue_struct *shim_alloc_ordered_workqueue(const char *name, bool reclaims);
/* Runs what is queued, then frees. CONTEXT: process. */
void shim_destroy_workqueue(struct workqueue_struct *queue);

/* The class and the name tell lockdep which kind of item it is: to it, whoever cancels an item waits for a lock. */
void shim_helper_work_init(struct shim_work *work, void (*run)(void *context), void *context,
			   struct shim_lock_class *lock_class, const char *name);
/* CONTEXT: any. */
void shim_queue_delayed_work(struct workqueue_struct *queue, struct shim_work *work, unsigned long delay_jiffies);
/* As above without a delay, and an item that waits for its time waits no longer. */
void shim_mod_delayed_work(struct workqueue_struct *queue, struct shim_work *work);
/* Afterwards it neither waits nor runs. CONTEXT: process, holding no lock that the item takes. */
void shim_cancel_delayed_work_sync(struct shim_work *work);

SHIM_END
