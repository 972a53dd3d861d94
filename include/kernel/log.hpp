// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The kernel log: log_warning(dev, "..."), log_info; and, if the module parameter is set, log_debug and log_multicast,
// and for every packet log_data and log_connected_data.
#pragma once
#include <kernel/rate_limit.hpp>
#include <shim/lib.h>
#include <shim/module.h>

// Rate limited for each call site: warnings that a peer can provoke suppress no others.
#define log_warning(dev, ...)                                                                                          \
    do {                                                                                                               \
        static constinit kernel::RateLimit rate_limit;                                                                 \
        if (rate_limit.allows()) {                                                                                     \
            if (const unsigned int kept_back = rate_limit.take_kept_back())                                            \
                shim_log(dev, SHIM_LOG_WARNING, "%u warnings like the next one were suppressed", kept_back);           \
            shim_log(dev, SHIM_LOG_WARNING, __VA_ARGS__);                                                              \
        }                                                                                                              \
    } while (0)
#define log_info(dev, ...) shim_log(dev, SHIM_LOG_INFO, __VA_ARGS__)

#define LOG_WHEN(level, dev, ...)                                                                                      \
    do {                                                                                                               \
        if (shim_parameters.level > 0) [[unlikely]]                                                                    \
            shim_log(dev, SHIM_LOG_DEBUG, __VA_ARGS__);                                                                \
    } while (0)
#define log_debug(dev, ...) LOG_WHEN(debug_level, dev, __VA_ARGS__)
#define log_multicast(dev, ...) LOG_WHEN(mcast_debug_level, dev, __VA_ARGS__)
#define log_data(dev, ...) LOG_WHEN(data_debug_level, dev, __VA_ARGS__)
#define log_connected_data(dev, ...) LOG_WHEN(cm_data_debug_level, dev, __VA_ARGS__)
