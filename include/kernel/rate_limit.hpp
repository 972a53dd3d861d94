// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A rate limit for messages that a peer or a program can provoke.
#pragma once
#include <kernel/published.hpp>
#include <kernel/time.hpp>
#include <shim/sync.h>

namespace kernel {

// Allows max_count events in each interval, and counts the others. A static object of each call site. Without a lock:
// two simultaneous events may both be allowed. CONTEXT: any.
class RateLimit {
public:
    static constexpr unsigned int max_count = 20, interval_s = 10;

    constexpr RateLimit() = default;
    bool allows()
    {
        const unsigned long now = shim_jiffies();
        if (let_through_.load_relaxed() && now - since_.load_relaxed() < seconds(interval_s)) {
            const bool allowed = let_through_.load_relaxed() < max_count;
            Published<unsigned int>& counter = allowed ? let_through_ : kept_back_;
            counter.store(counter.load_relaxed() + 1);
            return allowed;
        }
        since_.store(now);
        let_through_.store(1);
        return true;
    }
    // Returns, and resets, the number of events that were not allowed.
    unsigned int take_kept_back()
    {
        const unsigned int count = kept_back_.load_relaxed();
        if (count)
            kept_back_.store(0);
        return count;
    }

private:
    Published<unsigned long> since_;
    Published<unsigned int> let_through_, kept_back_;
};

} // namespace kernel
