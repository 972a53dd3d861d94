// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Locks, completions, RCU, barriers and time. */
#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/rtnetlink.h>
#include <linux/spinlock.h>
#include <shim/sync.h>

static __always_inline spinlock_t *spinlock(struct shim_spinlock *lock) { return (spinlock_t *)lock; }
static __always_inline struct mutex *mutex(struct shim_mutex *lock) { return (struct mutex *)lock; }
static __always_inline struct completion *completion(struct shim_completion *c) { return (struct completion *)c; }

SHIM void shim_spin_lock_bh(struct shim_spinlock *lock) { spin_lock_bh(spinlock(lock)); }
SHIM void shim_spin_unlock_bh(struct shim_spinlock *lock) { spin_unlock_bh(spinlock(lock)); }

SHIM void shim_mutex_init(struct shim_mutex *lock, struct shim_lock_class *lock_class, const char *name)
{
	__mutex_init(mutex(lock), name, (struct lock_class_key *)lock_class);
}

SHIM void shim_mutex_lock(struct shim_mutex *lock) { mutex_lock(mutex(lock)); }
SHIM void shim_mutex_unlock(struct shim_mutex *lock) { mutex_unlock(mutex(lock)); }
SHIM void shim_mutex_destroy(struct shim_mutex *lock) { mutex_destroy(mutex(lock)); }

SHIM void shim_init_completion(struct shim_completion *c) { init_completion(completion(c)); }
SHIM void shim_complete(struct shim_completion *c) { complete(completion(c)); }
SHIM void shim_wait_for_completion(struct shim_completion *c) { wait_for_completion(completion(c)); }

SHIM void shim_rcu_read_lock(void) { rcu_read_lock(); }
SHIM void shim_rcu_read_unlock(void) { rcu_read_unlock(); }
SHIM void shim_synchronize_net(void) { synchronize_net(); }

SHIM unsigned int shim_num_online_cpus(void) { return num_online_cpus(); }

SHIM void shim_smp_mb(void) { smp_mb(); }
SHIM void shim_atomic64_add(uint64_t *value, uint64_t amount) { atomic64_add(amount, (atomic64_t *)value); }
SHIM void shim_local_bh_disable(void) { local_bh_disable(); }
SHIM void shim_local_bh_enable(void) { local_bh_enable(); }

SHIM unsigned long shim_jiffies(void) { return jiffies; }
SHIM unsigned long shim_hz(void) { return HZ; }
SHIM void shim_msleep(unsigned int milliseconds) { msleep(milliseconds); }

SHIM void shim_rtnl_lock(void) { rtnl_lock(); }
SHIM void shim_rtnl_unlock(void) { rtnl_unlock(); }
