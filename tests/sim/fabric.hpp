// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The switch between the HCAs: unicast by LID, multicast by the subnet manager's groups, with loss and delay. Packets
// of one pair stay in order.
#pragma once
#include "verbs.hpp"

namespace sim {

// Packets with one P_Key reach a queue pair with the other.
bool same_partition(std::uint16_t a, std::uint16_t b);

class Fabric {
public:
    void send(Datagram datagram);
    Time flight_time() const;
    // Who has the LID; nullptr: nobody. LIDs are never given twice.
    ib_device* owner(std::uint16_t lid) const;
    std::uint16_t fresh_lid(ib_device& ca);
    std::uint64_t carried = 0, lost = 0;

private:
    void arrive(ib_device& at, const Datagram& datagram);
    // By LID, even if it has another now.
    std::vector<ib_device*> owners_{nullptr};
    // When the last packet of two that is under way arrives.
    Pairs<Time> last_;
};

} // namespace sim
