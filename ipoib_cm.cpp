// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Connected mode (RFC 4755) as a whole: start and stop.
#include <ipoib/connected.hpp>
#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <kernel/log.hpp>

namespace ipoib {

Connections::Connections(Interface& interface)
    : active(interface, interface.work_queue), passive(interface, interface.work_queue), flows(interface),
      interface_(interface)
{
}

PrivateData Connections::private_data() const
{
    const auto max_message = interface_.rx[0].srq.max_mtu() + static_cast<unsigned int>(sizeof(Encapsulation));
    return {{kernel::Be32(interface_.identity.qpn()), kernel::Be32(max_message)}, IcrcOffer::make()};
}

kernel::Status Connections::start()
{
    const kernel::Status status = passive.start();
    if (!status.ok())
        log_warning(interface_.dev(), "failed to listen for connections, error %d", status.code());
    return status;
}

void Connections::stop()
{
    passive.stop_listening();
    {
        PathTable::Guard guard(interface_.paths);
        passive.end_all();
        active.abandon_all();
    }
    // Runs the work items here until no connection is left; each state has a deadline. The polls still run, and
    // complete what was posted.
    for (;;) {
        (void)active.work.run_here();
        (void)passive.work.run_here();
        if (idle())
            break;
        shim_msleep(1);
    }
    active.work.cancel();
    passive.work.cancel();
}

bool Connections::idle()
{
    PathTable::Guard guard(interface_.paths);
    return active.list().empty() && passive.list().empty();
}

} // namespace ipoib
