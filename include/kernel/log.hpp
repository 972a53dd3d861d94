// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The kernel log: log_warning(dev, "..."), log_info; and, when the module parameter that belongs to it is set,
// log_debug, log_multicast, and for every packet log_data and log_connected_data.
#pragma once
#include <kernel/rate_limit.hpp>
#include <shim/module.h>

// Limited for each place that warns: what a peer can provoke hides no other warning.
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
