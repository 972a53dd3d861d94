/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The common part of the boundary's headers: marks of functions, and fixed-width types for both languages. The other
 * headers declare the functions by which C++ calls the kernel and the kernel calls C++ (ipoib_*). Those that C++
 * calls are shim_*, without statements of control flow and with kernel calls in at most one statement, and
 * shim_helper_*, which need more (scripts/check-shims).
 *
 * Conventions: integers are in host byte order unless the type says otherwise; functions that can fail return
 * 0 or a negative errno; kernel objects are opaque pointers; "CONTEXT:" gives the contexts in which a function may be
 * called. "any": process and softirq context, also with spinlocks held or bottom halves disabled; hard interrupts only
 * where that is said.
 */
#pragma once

#ifdef __cplusplus
#include <cstddef>
#include <cstdint>
#define SHIM_BEGIN extern "C" {
#define SHIM_END }
#else
#include <linux/types.h>
#define SHIM_BEGIN
#define SHIM_END
#endif

/* A shim is inlined wherever C++ calls it; the kernel's __always_inline still emits the function for SHIM_LTO=0. */
#define SHIM __always_inline
/* Called from objects outside the LTO unit. */
#ifdef __clang__
#define ENTRY
#else
#define ENTRY __attribute__((externally_visible))
#endif
