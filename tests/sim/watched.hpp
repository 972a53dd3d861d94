// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Results of worker processes, in memory shared with the process that started them, so that a crash reports as much as
// a failed check: the seed, the failure, the counters.
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

// Prints each transition of state-machines.md, and those that were seen.
void print_edges(bool all);

} // namespace sim
