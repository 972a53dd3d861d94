// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Fabric events: the light, normal and heavy flush, each of which reads the port first.
#include <utility>

#include <ipoib/fabric_events.hpp>
#include <ipoib/interface.hpp>
#include <kernel/time.hpp>
#include <shim/trace.h>

namespace ipoib {

void FabricEvents::start()
{
    gid_index_ = interface_.identity.gid_index();
    shim_helper_register_event_handler(interface_.ca(), handler_.get(), on_event, this);
    heavy_.queue();
}

void FabricEvents::stop() { shim_ib_unregister_event_handler(handler_.get()); }

void FabricEvents::cancel()
{
    light_.cancel();
    normal_.cancel();
    heavy_.cancel();
}

void FabricEvents::on_event(void* context, unsigned int event, std::uint32_t port)
{
    auto& self = *static_cast<FabricEvents*>(context);
    if (port != self.interface_.identity.port())
        return;
    switch (event) {
    case SHIM_IB_EVENT_CLIENT_REREGISTER:
        self.light_.queue();
        break;
    case SHIM_IB_EVENT_PORT_ERR:
    case SHIM_IB_EVENT_PORT_ACTIVE:
    case SHIM_IB_EVENT_LID_CHANGE:
        self.normal_.queue();
        break;
    case SHIM_IB_EVENT_PKEY_CHANGE:
    case SHIM_IB_EVENT_GID_CHANGE:
        // A repeated reading may be pending with a delay.
        self.heavy_.queue_now();
        break;
    default:
        break;
    }
}

void FabricEvents::run(const char* level, InterfaceLife::Event event)
{
    if (!interface_.alive())
        return;
    kernel::Guard guard(interface_.ops_lock);
    shim_trace_flush(interface_.dev(), level);
    (void)interface_.state.perform(read_port(event)).ok();
}

InterfaceLife::Event FabricEvents::read_port(InterfaceLife::Event event)
{
    using Event = InterfaceLife::Event;
    PortIdentity& identity = interface_.identity;
    const bool found_before = identity.has_pkey();
    const PKey pkey_before = identity.pkey();
    const std::uint16_t index_before = identity.pkey_index();
    const Gid gid_before = identity.gid();
    unsigned int longest = 0;
    if (!identity.read(longest).ok())
        heavy_.queue(kernel::seconds(identity.next_retry_s()));
    const int index = identity.gid_index();
    const bool gid_changed = std::exchange(gid_index_, index) != index || !(gid_before == identity.gid());

    if (!identity.has_pkey())
        return Event::pkey_gone;
    if (!found_before)
        return Event::pkey_found;
    const bool outgrown = interface_.has_queues() && longest > interface_.rx[0].ring.ib_mtu();
    if (!(pkey_before == identity.pkey()) || index_before != identity.pkey_index() || outgrown)
        return Event::restart;
    return event == Event::unchanged && gid_changed ? Event::reregister : event;
}

} // namespace ipoib
