// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The switch between the HCAs: unicast by LID, multicast by the subnet manager's groups, with loss and delay. Packets
// of one pair stay in order.
#pragma once
#include "verbs.hpp"

namespace sim {

// Whether packets with one P_Key reach a queue pair with the other.
bool same_partition(std::uint16_t a, std::uint16_t b);

class Fabric {
public:
    void send(Datagram datagram);
    Time flight_time() const;
    // Owner of the LID; nullptr: none. LIDs are never reused.
    ib_device* owner(std::uint16_t lid) const;
    std::uint16_t fresh_lid(ib_device& ca);
    std::uint64_t carried = 0, lost = 0;

private:
    static bool is_discarded(const ib_device& at, const Datagram& datagram);
    void arrive(ib_device& at, const Datagram& datagram);
    // By LID, also of former LIDs.
    std::vector<ib_device*> owners_{nullptr};
    // Arrival time of the last packet in flight of each pair.
    Pairs<Time> last_;
};

} // namespace sim
