/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What every header of the boundary needs: the marks on its functions and fixed-width types under one name
 * in both languages. The headers beside this one declare, for both compilers, what the C++ asks of the kernel
 * (shim_*, one kernel call or one field each) and what the kernel asks of the C++ (ipoib_*, the entry points).
 *
 * Conventions: integers are in host byte order unless the type says otherwise; functions that can fail return
 * 0 or a negative errno; kernel objects are opaque pointers; "CONTEXT:" tells from where a call is allowed.
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
