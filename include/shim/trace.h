/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tracepoints: /sys/kernel/tracing/events/ipoib/. A few instructions each when nobody listens. CONTEXT of all: any. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;

/* Whose state machine it is. */
enum shim_trace_machine {
	SHIM_TRACE_PATH,
	SHIM_TRACE_GROUP,
	/* Connections that this side made, and took. */
	SHIM_TRACE_ACTIVE,
	SHIM_TRACE_PASSIVE,
};
/* A state machine went from one state to another; gid: 16 bytes, of the path, the group, or the peer. */
ENTRY void shim_trace_step(const struct net_device *dev, enum shim_trace_machine machine, const uint8_t *gid,
			   const char *before, const char *after);
/* The interface's own. */
ENTRY void shim_trace_interface(const struct net_device *dev, const char *before, const char *after);
/* A fabric event is dealt with: level is "light", "normal" or "heavy". */
ENTRY void shim_trace_flush(const struct net_device *dev, const char *level);
/* Something out of the ordinary happened to a ring, of whose size slots so many are in use. */
ENTRY void shim_trace_ring(const struct net_device *dev, const char *ring, const char *what, unsigned int used,
			   unsigned int size);

SHIM_END
