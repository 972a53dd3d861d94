// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Time in jiffies, which wrap.
#pragma once
#include <kernel/published.hpp>
#include <shim/lib.h>
#include <shim/sync.h>

namespace kernel {

inline unsigned long seconds(unsigned int count) { return count * shim_hz(); }
// Returns jiffies that last count ms at least, in the middle of a tick too; 0 remains 0.
inline unsigned long milliseconds(unsigned int count) { return count ? (count * shim_hz() + 999) / 1000 + 1 : 0; }
// Adds jitter: uniform in [0.5, 1.5) of the delay, so that hosts do not retry in lockstep.
inline unsigned long with_jitter(unsigned long jiffies)
{
    return jiffies / 2 + shim_get_random_u32_below(static_cast<unsigned int>(jiffies));
}
// As the kernel's time_before(): correct across the wrap, for times less than half the range apart.
inline bool before(unsigned long one, unsigned long other) { return static_cast<long>(one - other) < 0; }
inline bool reached(unsigned long time, unsigned long now) { return !before(now, time); }
// Returns the jiffies from since to now; 0 if since is later, as another CPU may have written it after now was read.
inline unsigned long elapsed(unsigned long since, unsigned long now) { return before(since, now) ? now - since : 0; }

// Stores now, unless it is there: processors that all write one time would share its cache line. Returns true if it
// differed.
inline bool touch(Published<unsigned long>& time, unsigned long now)
{
    if (time.load_relaxed() == now)
        return false;
    time.store(now);
    return true;
}

} // namespace kernel
