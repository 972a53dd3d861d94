// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Pace of an HCA's link: its rate, and whether it has credits. */
#include "engine.h"

/* Interval at which sends look whether they are still held. */
enum { HOLD_NS = NSEC_PER_MSEC };

void soft_link_occupy(struct soft_slot *slot, u32 words)
{
	u32 rate_mbps = READ_ONCE(slot->rate_mbps);
	s64 now, end, until;

	if (likely(!rate_mbps))
		return;
	now = ktime_get_ns();
	until = atomic64_read(&slot->occupied_until);
	do
		end = max(now, until) + div_u64((u64)words * 32 * 1000, rate_mbps);
	while (!atomic64_try_cmpxchg(&slot->occupied_until, &until, end));
}

u64 soft_link_wait(const struct soft_slot *slot)
{
	s64 left;

	if (unlikely(READ_ONCE(slot->hold_sends)))
		return HOLD_NS;
	if (likely(!READ_ONCE(slot->rate_mbps)))
		return 0;
	left = atomic64_read(&slot->occupied_until) - (s64)ktime_get_ns();
	return max(left, 0LL);
}
