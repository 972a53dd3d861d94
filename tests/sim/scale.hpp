// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Fabrics of up to ten thousand nodes without faults: measures the start of all nodes, their first packets and a
// restart of the subnet manager. Documentation/scale.md has the results.
#pragma once
#include "base.hpp"

namespace sim {

struct Scale {
    unsigned int nodes = 0;
    // Peers that each node sends to first; as many as there are nodes: all.
    unsigned int peers = 1;
    // Service time of the subnet administrator for a request.
    Time service = 40 * microsecond;
};

// Prints a line for each part. Returns, or ends the program with a failure.
void run_scale(const Scale& scale);

} // namespace sim
