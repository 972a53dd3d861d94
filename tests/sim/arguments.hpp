// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The simulator's command line.
#pragma once
#include "scale.hpp"
#include "scenario.hpp"

namespace sim {

struct Arguments {
    Scale scale;
    std::uint64_t first = 1, seeds = 200;
    // stop: end after the first failure.
    bool single = false, shrink = true, stop = false;
    unsigned int jobs = 1;
    unsigned int minutes = 0;
    Options options;
};

// Ends the program if an option is unknown, or a value is not a number. An empty value counts as an option not given.
Arguments read_arguments(int count, char** words);

} // namespace sim
