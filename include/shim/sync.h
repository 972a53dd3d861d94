/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Locks, completions, RCU, barriers and time. Objects are embedded in C++ ones as storage of the size that
 * <generated/layout.h> gives. shim_lock_class names a lock, or an item of shim/work.h, for lockdep: one static object
 * per kind.
 */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct shim_spinlock;
struct shim_mutex;
struct shim_completion;
struct shim_lock_class;

void shim_helper_spinlock_init(struct shim_spinlock *lock, struct shim_lock_class *lock_class, const char *name);
/* CONTEXT: process or softirq; bottom halves stay disabled until the unlock. */
void shim_spin_lock_bh(struct shim_spinlock *lock);
void shim_spin_unlock_bh(struct shim_spinlock *lock);

void shim_mutex_init(struct shim_mutex *mutex, struct shim_lock_class *lock_class, const char *name);
/* CONTEXT: process, may sleep. */
void shim_mutex_lock(struct shim_mutex *mutex);
void shim_mutex_unlock(struct shim_mutex *mutex);
void shim_mutex_destroy(struct shim_mutex *mutex);

/* Initialise and complete a completion. CONTEXT: any. */
void shim_init_completion(struct shim_completion *completion);
void shim_complete(struct shim_completion *completion);
/* CONTEXT: process, may sleep. */
void shim_wait_for_completion(struct shim_completion *completion);

/* Begin and end an RCU read section. CONTEXT: any. */
void shim_rcu_read_lock(void);
void shim_rcu_read_unlock(void);
/* Waits for an RCU grace period, expedited under RTNL. CONTEXT: process, may sleep. */
void shim_synchronize_net(void);

/* Processors that are online. CONTEXT: any. */
unsigned int shim_num_online_cpus(void);

/* A full barrier. CONTEXT: any. */
void shim_smp_mb(void);
/* Adds atomically, without ordering. CONTEXT: any. */
void shim_atomic64_add(uint64_t *value, uint64_t amount);
/* Disable and enable bottom halves on this CPU; they nest. CONTEXT: process or softirq. */
void shim_local_bh_disable(void);
void shim_local_bh_enable(void);

/* The time in jiffies, which wrap. CONTEXT: any. */
unsigned long shim_jiffies(void);
unsigned long shim_hz(void);
/* CONTEXT: process. */
void shim_msleep(unsigned int milliseconds);

/* RTNL, the lock of network configuration. CONTEXT: process, may sleep. */
void shim_rtnl_lock(void);
void shim_rtnl_unlock(void);

SHIM_END
