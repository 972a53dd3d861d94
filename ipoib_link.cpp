// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The broadcast group's parameters, applied to the interface, and carrier.
#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <ipoib/link.hpp>
#include <kernel/log.hpp>

namespace ipoib {

kernel::Status Link::apply(const shim_mcmember& broadcast)
{
    const int frame = shim_rdma_mtu_enum_to_int(interface_.ca(), interface_.identity.port(), broadcast.mtu);
    if (frame <= 0) {
        log_warning(interface_.dev(), "the broadcast group's MTU code %u is invalid", broadcast.mtu);
        return kernel::invalid;
    }
    parameters_ = broadcast;
    // An rdma_netdev is given the Q_Key with the group.
    if (interface_.has_queues()) {
        if (const kernel::Status status = interface_.queues.set_qkey(parameters_.qkey); !status.ok()) {
            log_warning(interface_.dev(), "failed to set the Q_Key, error %d", status.code());
            return status;
        }
    }
    qkey_.store(parameters_.qkey);
    traffic_class_.store(parameters_.traffic_class);
    interface_.mtu.set_link(static_cast<unsigned int>(frame));
    return {};
}

void Link::broadcast_joined()
{
    joined_.store(true);
    bring_carrier_.queue();
}

void Link::run_bring_carrier()
{
    kernel::Guard guard(interface_.ops_lock);
    if (!joined_.load_relaxed() || interface_.identity.port_down())
        return;
    interface_.mtu.apply();
    (void)interface_.state.perform(InterfaceLife::Event::joined).ok();
}

} // namespace ipoib
