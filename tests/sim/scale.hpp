// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Fabrics of up to ten thousand nodes without faults: what a start of all of them, their first packets and a restart of
// the subnet manager take. Documentation/scale.md has the curves.
#pragma once
#include "base.hpp"

namespace sim {

struct Scale {
    unsigned int nodes = 0;
    // Others that each node speaks to first; as many as there are: all of them.
    unsigned int peers = 1;
    // What a request takes the subnet administrator.
    Time service = 40 * microsecond;
};

// Prints a line for each part. Returns, or fails.
void run_scale(const Scale& scale);

} // namespace sim
