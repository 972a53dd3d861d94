// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Time in jiffies, a free-running count: differences are what matters.
#pragma once
#include <shim/sync.h>

namespace kernel {

inline unsigned long seconds(unsigned int count) { return count * shim_jiffies_per_second(); }
// Rounded up: never no time at all.
inline unsigned long milliseconds(unsigned int count) { return count * shim_jiffies_per_second() / 1000 + 1; }
// Between half and one and a half of it: who began together does not go on together.
inline unsigned long about(unsigned long jiffies)
{
    return jiffies / 2 + shim_random_below(static_cast<unsigned int>(jiffies));
}
// As the kernel's time_before(): right across the wrap for times less than half the range apart.
inline bool before(unsigned long one, unsigned long other) { return static_cast<long>(one - other) < 0; }
inline bool reached(unsigned long time, unsigned long now) { return !before(now, time); }
// Jiffies from since to now; 0 if since is the later: another CPU may have written it after this one read now.
inline unsigned long elapsed(unsigned long since, unsigned long now) { return before(since, now) ? now - since : 0; }

} // namespace kernel
