// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Moves a state machine, and reports the step to the tracepoint.
#pragma once
#include <ipoib/address.hpp>
#include <shim/trace.h>

namespace ipoib {

template <class Machine>
typename Machine::Step traced_step(const net_device* dev, shim_trace_machine kind, const Gid& gid, Machine& machine,
                                   typename Machine::Event event)
{
    const auto before = machine.state();
    const auto step = machine.on(event);
    if (machine.state() != before)
        shim_trace_step(dev, kind, gid.bytes, Machine::name(before), Machine::name(machine.state()));
    return step;
}

} // namespace ipoib
