// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Bursts: sections in which engines and others use objects, and that destruction waits for. */
#include "engine.h"

/* Each is taken by its own processor, and by those who wait for it. */
static DEFINE_PER_CPU(spinlock_t, burst_locks);

void soft_burst_start(struct burst *burst) __acquires(burst->lock) __acquires(RCU)
{
	burst->lock = this_cpu_ptr(&burst_locks);
	INIT_LIST_HEAD(&burst->due);
	burst->frames = 0;
	spin_lock(burst->lock);
	rcu_read_lock();
}

void soft_burst_end(struct burst *burst) __releases(burst->lock) __releases(RCU)
{
	soft_cq_raise(&burst->due);
	rcu_read_unlock();
	spin_unlock(burst->lock);
}

void soft_wait_for_bursts(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
	{
		spin_lock_bh(per_cpu_ptr(&burst_locks, cpu));
		spin_unlock_bh(per_cpu_ptr(&burst_locks, cpu));
	}
}

void soft_engines_start(void)
{
	int cpu;

	for_each_possible_cpu(cpu) spin_lock_init(per_cpu_ptr(&burst_locks, cpu));
}
