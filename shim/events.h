/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The tracepoints' fields and formats; read several times over by the kernel's tracing headers. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ipoib

#if !defined(IPOIB_EVENTS_H) || defined(TRACE_HEADER_MULTI_READ)
#define IPOIB_EVENTS_H
#include <linux/netdevice.h>
#include <linux/tracepoint.h>
#include <shim/trace.h>

/* These macros are a language of their own. */
/* clang-format off */
#define NAME(field, bytes) strscpy(__entry->field, field, bytes)
#define DEVICE strscpy(__entry->dev, dev->name, IFNAMSIZ)

DECLARE_EVENT_CLASS(ipoib_step,
	TP_PROTO(const struct net_device *dev, const u8 *gid, const char *before, const char *after),
	TP_ARGS(dev, gid, before, after),
	TP_STRUCT__entry(
		__array(char, dev, IFNAMSIZ)
		__array(u8, gid, 16)
		__array(char, before, SHIM_TRACE_NAME_BYTES)
		__array(char, after, SHIM_TRACE_NAME_BYTES)
	),
	TP_fast_assign(
		DEVICE;
		memcpy(__entry->gid, gid, 16);
		NAME(before, SHIM_TRACE_NAME_BYTES);
		NAME(after, SHIM_TRACE_NAME_BYTES);
	),
	TP_printk("%s %pI6 %s -> %s", __entry->dev, __entry->gid, __entry->before, __entry->after)
);

#define IPOIB_STEP(name)                                                                                    \
	DEFINE_EVENT(ipoib_step, name,                                                                      \
		TP_PROTO(const struct net_device *dev, const u8 *gid, const char *before, const char *after), \
		TP_ARGS(dev, gid, before, after))

IPOIB_STEP(ipoib_path);
IPOIB_STEP(ipoib_group);
IPOIB_STEP(ipoib_connection_active);
IPOIB_STEP(ipoib_connection_passive);

TRACE_EVENT(ipoib_interface,
	TP_PROTO(const struct net_device *dev, const char *before, const char *after),
	TP_ARGS(dev, before, after),
	TP_STRUCT__entry(
		__array(char, dev, IFNAMSIZ)
		__array(char, before, SHIM_TRACE_NAME_BYTES)
		__array(char, after, SHIM_TRACE_NAME_BYTES)
	),
	TP_fast_assign(
		DEVICE;
		NAME(before, SHIM_TRACE_NAME_BYTES);
		NAME(after, SHIM_TRACE_NAME_BYTES);
	),
	TP_printk("%s %s -> %s", __entry->dev, __entry->before, __entry->after)
);

TRACE_EVENT(ipoib_flows,
	TP_PROTO(const struct net_device *dev, const u8 *gid, u64 flows, unsigned int from, unsigned int to),
	TP_ARGS(dev, gid, flows, from, to),
	TP_STRUCT__entry(
		__array(char, dev, IFNAMSIZ)
		__array(u8, gid, 16)
		__field(u64, flows)
		__field(unsigned int, from)
		__field(unsigned int, to)
	),
	TP_fast_assign(
		DEVICE;
		memcpy(__entry->gid, gid, 16);
		__entry->flows = flows;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("%s %pI6 flows %#llx queue %u -> %u", __entry->dev, __entry->gid, __entry->flows, __entry->from,
		  __entry->to)
);

TRACE_EVENT(ipoib_flush,
	TP_PROTO(const struct net_device *dev, const char *level),
	TP_ARGS(dev, level),
	TP_STRUCT__entry(
		__array(char, dev, IFNAMSIZ)
		__array(char, level, SHIM_TRACE_NAME_BYTES)
	),
	TP_fast_assign(
		DEVICE;
		NAME(level, SHIM_TRACE_NAME_BYTES);
	),
	TP_printk("%s %s", __entry->dev, __entry->level)
);

TRACE_EVENT(ipoib_ring,
	TP_PROTO(const struct net_device *dev, const char *ring, const char *what, unsigned int used,
		 unsigned int size),
	TP_ARGS(dev, ring, what, used, size),
	TP_STRUCT__entry(
		__array(char, dev, IFNAMSIZ)
		__array(char, ring, SHIM_TRACE_NAME_BYTES)
		__array(char, what, SHIM_TRACE_NAME_BYTES)
		__field(unsigned int, used)
		__field(unsigned int, size)
	),
	TP_fast_assign(
		DEVICE;
		NAME(ring, SHIM_TRACE_NAME_BYTES);
		NAME(what, SHIM_TRACE_NAME_BYTES);
		__entry->used = used;
		__entry->size = size;
	),
	TP_printk("%s %s %s, %u of %u in use", __entry->dev, __entry->ring, __entry->what, __entry->used,
		  __entry->size)
);
/* clang-format on */

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH shim
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE events
#include <trace/define_trace.h>
