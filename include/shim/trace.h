/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tracepoints: /sys/kernel/tracing/events/ipoib/. CONTEXT: any. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;

/* Names are shorter than this, in bytes; the rest is cut off. */
#define SHIM_TRACE_NAME_BYTES 12

/* Kinds of state machines. */
enum shim_trace_machine {
	SHIM_TRACE_PATH,
	SHIM_TRACE_GROUP,
	/* The two sides of connections. */
	SHIM_TRACE_ACTIVE,
	SHIM_TRACE_PASSIVE,
};
/* Reports a change of state; gid: 16 bytes, of the path, group or peer. */
ENTRY void shim_trace_step(const struct net_device *dev, enum shim_trace_machine machine, const uint8_t *gid,
			   const char *before, const char *after);
/* Reports a change of an interface's state. */
ENTRY void shim_trace_interface(const struct net_device *dev, const char *before, const char *after);
/* Reports that flows to a peer, as bits, changed their connection: from one transmit queue to another. */
ENTRY void shim_trace_flows(const struct net_device *dev, const uint8_t *gid, uint64_t flows, unsigned int from,
			    unsigned int to);
/* Reports the handling of a fabric event; level: "light", "normal" or "heavy". */
ENTRY void shim_trace_flush(const struct net_device *dev, const char *level);
/* Reports a rare event of a ring (reference.md has the names), of whose size slots used are in use. */
ENTRY void shim_trace_ring(const struct net_device *dev, const char *ring, const char *what, unsigned int used,
			   unsigned int size);

SHIM_END
