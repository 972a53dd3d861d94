// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* hrtimer_setup() takes the function. */
#include <linux/hrtimer.h>

void probe(struct hrtimer *timer, enum hrtimer_restart (*run)(struct hrtimer *));
void probe(struct hrtimer *timer, enum hrtimer_restart (*run)(struct hrtimer *))
{
	hrtimer_setup(timer, run, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
}
