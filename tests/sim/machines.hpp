// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The driver's state machines as shown by its tracepoints: counts of each transition, and a check that no state lasts
// longer than allowed.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <shim/trace.h>

#include "base.hpp"

namespace sim {

class Machines {
public:
    void step(const net_device* dev, unsigned int machine, const std::uint8_t* gid, const char* before,
              const char* after);
    // Fails if a connection has been in a state for longer than the driver's timeouts allow.
    void check() const;
    // Transitions so far, and the last of them as text.
    std::uint64_t moves(unsigned int machine) const { return moves_[machine]; }
    const std::string& last_move(unsigned int machine) const { return last_move_[machine]; }
    static constexpr unsigned int path = 0, group = 1, active = 2, passive = 3, interface = 4;

private:
    struct Stay {
        unsigned int state;
        Time since;
        // Stays of the interface when this one began.
        std::size_t before;
    };
    using Key = std::tuple<const net_device*, unsigned int, std::string>;

    // By interface, machine and peer: the bounded states of its connections, the longest stay first.
    std::map<Key, std::vector<Stay>> stays_;
    std::map<const net_device*, std::size_t> stays_of_;
    std::array<std::uint64_t, 5> moves_{};
    std::array<std::string, 5> last_move_;
};

} // namespace sim
