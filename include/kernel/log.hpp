// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The kernel log: log_warning(dev, "..."), log_info, log_debug; the last only when debug_level is set.
#pragma once
#include <shim/module.h>

#define log_warning(dev, ...) shim_log(dev, SHIM_LOG_WARNING, __VA_ARGS__)
#define log_info(dev, ...) shim_log(dev, SHIM_LOG_INFO, __VA_ARGS__)
#define log_debug(dev, ...)                                                                                            \
    do {                                                                                                               \
        if (shim_parameters.debug_level > 0)                                                                           \
            shim_log(dev, SHIM_LOG_DEBUG, __VA_ARGS__);                                                                \
    } while (0)
#define log_multicast(dev, ...)                                                                                        \
    do {                                                                                                               \
        if (shim_parameters.mcast_debug_level > 0)                                                                     \
            shim_log(dev, SHIM_LOG_DEBUG, __VA_ARGS__);                                                                \
    } while (0)
