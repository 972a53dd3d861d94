// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Directed routes at a switch (IBA 14.2.2). An SMP's route has up to three parts: by LID to a switch, by the ports of
// its path, by LID to the destination. DrSLID is permissive if there is no first part, DrDLID if there is no last one.
#include "node.hpp"

namespace soft_ib {

namespace {

using Action = Hop::Action;

constexpr unsigned int max_hops = 63;
constexpr Hop discarded{Action::discard, 0, 0};

Hop leave_by(unsigned int egress, unsigned int port_count)
{
    return egress && egress <= port_count ? Hop{Action::forward, egress, 0} : discarded;
}

// A request (C14-9).
Hop advance(Mad smp, unsigned int ingress, unsigned int port_count)
{
    const unsigned int pointer = smp.hop_pointer(), count = smp.hop_count();
    if (pointer > count)
        return pointer == count + 1 ? Hop{Action::answer_here, 0, 0} : discarded;
    // Hop pointer 0: the first part ends here, at no port of the directed part.
    if (pointer)
        smp.return_path()[pointer] = static_cast<std::uint8_t>(ingress);
    smp.set_hop_pointer(pointer + 1);
    if (pointer < count)
        return leave_by(smp.initial_path()[pointer + 1], port_count);
    if (smp.directed_dlid() != FABRIC_PERMISSIVE_LID)
        return {Action::route_by_lid, 0, smp.directed_dlid()};
    return {Action::answer_here, 0, 0};
}

// A response (C14-13).
Hop go_back(Mad smp, unsigned int port_count)
{
    const unsigned int pointer = smp.hop_pointer(), count = smp.hop_count();
    // Hop pointer 0 is that of a response at its requester, which is not a switch.
    if (pointer == 0 || pointer > count + 1)
        return discarded;
    smp.set_hop_pointer(pointer - 1);
    if (pointer > 1)
        return leave_by(smp.return_path()[pointer - 1], port_count);
    if (smp.directed_slid() != FABRIC_PERMISSIVE_LID)
        return {Action::route_by_lid, 0, smp.directed_slid()};
    return discarded;
}

} // namespace

Hop arrive_by_directed_route(Mad smp, unsigned int ingress, unsigned int port_count)
{
    if (smp.hop_count() > max_hops)
        return discarded;
    return smp.returning() ? go_back(smp, port_count) : advance(smp, ingress, port_count);
}

Hop depart_with_answer(Mad smp, std::uint16_t requester, unsigned int port_count)
{
    if (smp.directed_dlid() != FABRIC_PERMISSIVE_LID)
        return {Action::route_by_lid, 0, requester};
    return go_back(smp, port_count);
}

} // namespace soft_ib
