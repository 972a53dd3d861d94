/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Library functions: error pointers, random numbers, text, and the kernel log. CONTEXT: any. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;

/* Returns the negative errno of an error pointer, 0 for others. */
int shim_ptr_err_or_zero(const void *pointer);
uint32_t shim_get_random_u32(void);
/* Returns a number in [0, limit). */
uint32_t shim_get_random_u32_below(uint32_t limit);
/* Reads a number, as sscanf() does for %i: decimal, 0x..., 0.... Returns false if the text has none. */
bool shim_sscanf_int(const char *text, int *value);
/* Returns the characters written, without the terminator. */
int shim_scnprintf(char *buffer, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

enum shim_level { SHIM_LOG_WARNING, SHIM_LOG_INFO, SHIM_LOG_DEBUG };
/* Writes "ib0: ..." to the kernel log; dev is NULL: "ib_ipoib: ...". */
void shim_log(const struct net_device *dev, enum shim_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

SHIM_END
