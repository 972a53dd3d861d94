// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Connected mode (RFC 4755) as a whole: start and stop, and the work on all connections.
#include <algorithm>

#include <ipoib/connected.hpp>
#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <kernel/log.hpp>
#include <kernel/time.hpp>
#include <shim/rc_qp.h>

namespace ipoib {

constinit kernel::LockClass Connections::service_class_;

Connections::Connections(Interface& interface)
    : receives(interface), active(interface), passive(interface), interface_(interface), work_(*this)
{
}

PrivateData Connections::private_data() const
{
    const auto max_message = receives.max_mtu() + static_cast<unsigned int>(sizeof(Encapsulation));
    return {{kernel::Be32(interface_.identity.qpn()), kernel::Be32(max_message)}, IcrcOffer::make()};
}

kernel::Status Connections::start()
{
    TRY(receives.start());
    const kernel::Status status = passive.start();
    if (!status.ok()) {
        log_warning(interface_.dev(), "failed to listen for connections, error %d", status.code());
        stop();
    }
    return status;
}

void Connections::stop()
{
    passive.stop_listening();
    work_.cancel();
    {
        PathTable::Guard guard(interface_.paths);
        passive.end_all();
        active.abandon_all();
    }
    // The polls still run, and complete what was posted. Each state has a deadline.
    for ((void)service(); !idle(); (void)service())
        shim_msleep(1);
    work_.cancel();
}

bool Connections::idle()
{
    PathTable::Guard guard(interface_.paths);
    return active.list().empty() && passive.list().empty();
}

void Connections::service_soon() { work_.queue_now(interface_.work_queue); }

void Connections::run()
{
    if (const unsigned long delay = service())
        // If it is queued again already, that stands: it is for now.
        work_.queue(interface_.work_queue, delay);
}

unsigned long Connections::service()
{
    kernel::Guard one_at_a_time(service_mutex_);
    // Memory may be reclaimed by writing pages to a peer, over a connection that is made here.
    const kernel::NoIo no_io;
    active.send_requests();
    const unsigned long now = shim_jiffies();
    kernel::PacketQueue ready;
    active.release_due(now, ready);
    passive.service(now);
    unsigned long delay = 0;
    {
        PathTable::Guard guard(interface_.paths);
        const unsigned long active_delay = active.next_check(now, ready), passive_delay = passive.next_check();
        delay = active_delay && passive_delay ? std::min(active_delay, passive_delay) : active_delay + passive_delay;
    }
    active.transmit(ready);
    return delay;
}

} // namespace ipoib

int ipoib_cm_event(ib_cm_id* id, const shim_cm_message* message, void* context)
{
    return static_cast<ipoib::Endpoint*>(context)->handle(id, *message);
}

void ipoib_last_wqe_reached(void* context)
{
    // An active connection takes no receives.
    if (!context)
        return;
    auto& connection = *static_cast<ipoib::PassiveConnection*>(context);
    connection.owner.flushed(connection);
}
