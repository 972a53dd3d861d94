// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Dynamic interrupt moderation (linux/dim.h). */
#include "compat.h"
#include "objects.h"
#include <shim/dim.h>

static void dim_work(struct work_struct *work)
{
	struct dim *dim = container_of(work, struct dim, work);
	struct shim_dim *shim = container_of(dim, struct shim_dim, dim);
	struct dim_cq_moder wanted = net_dim_get_rx_moderation(dim->mode, dim->profile_ix);

	shim->apply(shim->context, wanted.usec, wanted.pkts);
	dim->state = DIM_START_MEASURE;
}

SHIM void shim_dim_init(struct shim_dim *dim, void (*apply)(void *context, unsigned int usecs, unsigned int frames),
			void *context)
{
	*dim = (struct shim_dim){ .dim.mode = DIM_CQ_PERIOD_MODE_START_FROM_EQE, .apply = apply, .context = context };
	INIT_WORK(&dim->dim.work, dim_work);
}

SHIM void shim_dim_cancel(struct shim_dim *dim)
{
	cancel_work_sync(&dim->dim.work);
	dim->dim.state = DIM_START_MEASURE;
}
