// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* net_dim() takes the sample by its address. */
#include <linux/dim.h>

void probe(struct dim *dim, const struct dim_sample *sample);
void probe(struct dim *dim, const struct dim_sample *sample) { net_dim(dim, sample); }
