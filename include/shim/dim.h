/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Dynamic interrupt moderation (linux/dim.h): adapts moderation to the traffic. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct shim_dim;

/* Has apply(context, usecs, frames) called, in process context, to change the moderation. CONTEXT: process. */
void shim_dim_init(struct shim_dim *dim, void (*apply)(void *context, unsigned int usecs, unsigned int frames),
		   void *context);
/* Adds a sample, after a poll that left no completion: total events, packets and bytes. CONTEXT: the NAPI poll. */
void shim_helper_net_dim(struct shim_dim *dim, uint16_t events, uint64_t packets, uint64_t bytes);
/* Cancels apply(), and waits until it does not run; measuring starts again. CONTEXT: process, without the poll. */
void shim_dim_cancel(struct shim_dim *dim);

SHIM_END
