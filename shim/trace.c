// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tracepoints, compiled without link-time optimisation, as they live in sections of their own. */
#define CREATE_TRACE_POINTS
#include "events.h"
#include <shim/trace.h>

void shim_trace_step(const struct net_device *dev, enum shim_trace_machine machine, const uint8_t *gid,
		     const char *before, const char *after)
{
	static void (*const tracepoints[])(const struct net_device *dev, const u8 *gid, const char *before,
					   const char *after) = {
		[SHIM_TRACE_PATH] = trace_ipoib_path,
		[SHIM_TRACE_GROUP] = trace_ipoib_group,
		[SHIM_TRACE_ACTIVE] = trace_ipoib_connection_active,
		[SHIM_TRACE_PASSIVE] = trace_ipoib_connection_passive,
	};

	tracepoints[machine](dev, gid, before, after);
}

void shim_trace_interface(const struct net_device *dev, const char *before, const char *after)
{
	trace_ipoib_interface(dev, before, after);
}

void shim_trace_flows(const struct net_device *dev, const uint8_t *gid, uint64_t flows, unsigned int from,
		      unsigned int to)
{
	trace_ipoib_flows(dev, gid, flows, from, to);
}

void shim_trace_flush(const struct net_device *dev, const char *level) { trace_ipoib_flush(dev, level); }

void shim_trace_ring(const struct net_device *dev, const char *ring, const char *what, unsigned int used,
		     unsigned int size)
{
	trace_ipoib_ring(dev, ring, what, used, size);
}
