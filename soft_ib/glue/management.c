// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Actions of HCAs' and switches' agents after the answer to a MAD: links go down or come up anew, counters are
 * sampled.
 */
#include "compat.h"
#include "glue.h"
#include <linux/workqueue.h>

/* An answer leaves first: an HCA's from a work queue, by its engine, which may delay sends (delay_us). */
enum { SETTLE_MS = 20 };

static unsigned long settle_delay(void)
{
	u32 delay_us = 0;
	unsigned int i;

	for (i = 0; i < soft_hca_count; i++)
		delay_us = max(delay_us, READ_ONCE(soft_slots[i].delay_us));
	return msecs_to_jiffies(SETTLE_MS + delay_us / USEC_PER_MSEC);
}

void soft_settle(void)
{
	unsigned int hca, events;
	bool more;

	do {
		spin_lock_irq(&soft_fabric_lock);
		more = fabric_settle(soft_fabric, &hca, &events);
		spin_unlock_irq(&soft_fabric_lock);
		if (more)
			soft_dispatch(&soft_slots[hca], events);
	} while (more);
	soft_send_traps();
}

static void settle(struct work_struct *unused) { soft_settle(); }
static DECLARE_DELAYED_WORK(settling, settle);
static struct hrtimer sampler;

void soft_sample(void)
{
	u64 wait = fabric_sample(soft_fabric, ktime_get_ns());

	if (unlikely(wait))
		hrtimer_start(&sampler, ns_to_ktime(wait), HRTIMER_MODE_REL_SOFT);
}

static enum hrtimer_restart sampling_due(struct hrtimer *timer)
{
	unsigned long flags;

	spin_lock_irqsave(&soft_fabric_lock, flags);
	soft_sample();
	spin_unlock_irqrestore(&soft_fabric_lock, flags);
	return HRTIMER_NORESTART;
}

void soft_after_mad(void)
{
	soft_sample();
	if (unlikely(fabric_unsettled(soft_fabric)))
		schedule_delayed_work(&settling, settle_delay());
}

void soft_management_start(void) { soft_hrtimer_setup(&sampler, sampling_due); }

void soft_management_stop(void)
{
	cancel_delayed_work_sync(&settling);
	hrtimer_cancel(&sampler);
}
