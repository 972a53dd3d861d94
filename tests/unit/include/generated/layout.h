/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Room for the host's stand-ins for kernel objects; in a module build the compiler measures the real ones. */
#pragma once
#define SHIM_SIZEOF_SPINLOCK 64
#define SHIM_ALIGNOF_SPINLOCK 8
#define SHIM_SIZEOF_MUTEX 64
#define SHIM_ALIGNOF_MUTEX 8
#define SHIM_SIZEOF_LOCK_CLASS 8
#define SHIM_ALIGNOF_LOCK_CLASS 8
#define SHIM_SIZEOF_COMPLETION 64
#define SHIM_ALIGNOF_COMPLETION 8
#define SHIM_SIZEOF_WORK 64
#define SHIM_ALIGNOF_WORK 8
#define SHIM_SIZEOF_HASH 64
#define SHIM_ALIGNOF_HASH 8
#define SHIM_SIZEOF_HASH_NODE 8
#define SHIM_ALIGNOF_HASH_NODE 8
#define SHIM_SIZEOF_NAPI 64
#define SHIM_ALIGNOF_NAPI 8
#define SHIM_SIZEOF_UD_WR 64
#define SHIM_ALIGNOF_UD_WR 8
#define SHIM_SIZEOF_RECV_WR 64
#define SHIM_ALIGNOF_RECV_WR 8
#define SHIM_SIZEOF_WC 64
#define SHIM_ALIGNOF_WC 8
#define SHIM_SIZEOF_EVENT_HANDLER 64
#define SHIM_ALIGNOF_EVENT_HANDLER 8
