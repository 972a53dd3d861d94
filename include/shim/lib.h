/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Library functions: error pointers, random numbers, text, and the kernel log. */
#pragma once
#include <shim/base.h>
SHIM_BEGIN

struct net_device;

/* Pointers that can be an error: 0 or the negative errno. */
int shim_ptr_err_or_zero(const void *pointer);
uint32_t shim_get_random_u32(void);
/* From 0 on. CONTEXT: any. */
uint32_t shim_get_random_u32_below(uint32_t limit);
/* As sscanf's %i: decimal, 0x..., 0.... False: no number. */
bool shim_sscanf_int(const char *text, int *value);
int shim_scnprintf(char *buffer, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

enum shim_level { SHIM_LOG_WARNING, SHIM_LOG_INFO, SHIM_LOG_DEBUG };
/* "ib0: ..." in the kernel log; without dev "ib_ipoib: ...". */
void shim_log(const struct net_device *dev, enum shim_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

SHIM_END
