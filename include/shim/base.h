/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The common part of the boundary's headers: marks of functions, and fixed-width types for both languages. The other
 * headers declare the calls of C++ to the kernel (shim_*, one kernel call or field each; shim_helper_*, several), and
 * of the kernel to C++ (ipoib_*).
 *
 * Conventions: integers are in host byte order unless the type says otherwise; functions that can fail return
 * 0 or a negative errno; kernel objects are opaque pointers; "CONTEXT:" gives the contexts in which a function may be
 * called.
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
