/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Dynamic interrupt moderation, by the kernel's own library: what the traffic asks for, from how it went so far. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct shim_dim;

/* apply(context, usecs, frames) is called in process context when another setting may do better. */
void shim_dim_init(struct shim_dim *dim, void (*apply)(void *context, unsigned int usecs, unsigned int frames),
		   void *context);
/* After a poll that took all there was: events, packets and bytes, counted from any start. CONTEXT: the NAPI poll. */
void shim_helper_net_dim(struct shim_dim *dim, uint16_t events, uint64_t packets, uint64_t bytes);
/* apply neither runs nor will; the next look begins anew. CONTEXT: process, no poll. */
void shim_dim_cancel(struct shim_dim *dim);

SHIM_END
