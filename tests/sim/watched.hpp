// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What runs in processes of their own tell the one that started them: which seed, what failed, what was counted. It is
// in memory that they share, so that a crash tells as much as a failed check.
#pragma once
#include <atomic>
#include <cstdint>

namespace sim {

struct Watched {
    static constexpr unsigned int machines = 6, states = 8;
    std::atomic<std::uint64_t> seed, seeds_done, failed_at, total_steps, nanoseconds, delivered, sent, merged;
    // Transitions of the driver's state machines, by machine, state before and after.
    std::atomic<std::uint64_t> edges[machines][states][states];
    char failure[4000];
};

extern Watched* watched;

// Every transition that state-machines.md has, and those that were seen.
unsigned int print_edges(bool all);

} // namespace sim
