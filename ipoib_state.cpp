// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An interface up and down: the actions of its state machine, restarts, and garbage collection.
#include <ipoib/interface.hpp>
#include <ipoib/interface_state.hpp>
#include <kernel/log.hpp>
#include <kernel/time.hpp>
#include <shim/trace.h>

namespace ipoib {

kernel::Status InterfaceState::perform(InterfaceLife::Event event)
{
    const auto before = life_.state();
    const auto step = life_.on(event);
    if (step.next != before) {
        shim_trace_interface(interface_.dev(), InterfaceLife::name(before), InterfaceLife::name(step.next));
        log_debug(interface_.dev(), "%s -> %s", InterfaceLife::name(before), InterfaceLife::name(step.next));
    }
    if (step.actions & InterfaceLife::bring_down)
        bring_down();
    if (step.actions & InterfaceLife::stop_queues)
        stop_queues();
    if (step.actions & InterfaceLife::start_queues) {
        if (kernel::Status status = start_queues(); !status.ok()) {
            // An interface whose queues are out of service is not up. ndo_open returns the error; otherwise no caller
            // sees it, so starting is tried again.
            life_ = InterfaceLife();
            if (event != InterfaceLife::Event::opened)
                start_later();
            return status;
        }
    }
    if (step.actions & InterfaceLife::bring_up)
        bring_up();
    if (step.actions & InterfaceLife::invalidate_paths)
        interface_.paths.invalidate_all();
    if (step.actions & InterfaceLife::rejoin_groups)
        interface_.groups.rejoin_all();
    if (step.actions & InterfaceLife::carrier_on) {
        shim_netif_carrier_on(interface_.dev());
        interface_.announcer.carrier_on();
    }
    return {};
}

kernel::Status InterfaceState::open()
{
    return perform(interface_.identity.has_pkey() ? InterfaceLife::Event::opened : InterfaceLife::Event::deferred);
}

bool InterfaceState::close()
{
    const bool open = life_.state() != InterfaceLife::State::closed;
    if (open)
        (void)perform(InterfaceLife::Event::closed).ok();
    return open;
}

kernel::Status InterfaceState::reopen()
{
    const kernel::Status opened = open();
    if (!opened.ok())
        start_later();
    return opened;
}

void InterfaceState::start_later()
{
    life_.on(InterfaceLife::Event::deferred);
    restart_.queue(kernel::seconds(1));
}

void InterfaceState::run_restart()
{
    kernel::Guard guard(interface_.ops_lock);
    // Without its P_Key the interface waits for it.
    if (!interface_.alive() || !interface_.identity.has_pkey())
        return;
    // The user may have opened an interface that was to be started later.
    if (life_.started() && !stalled_.load())
        return;
    (void)perform(InterfaceLife::Event::restart).ok();
}

kernel::Status InterfaceState::start_queues()
{
    stalled_.store(false);
    if (interface_.rdma_netdev.present())
        return interface_.rdma_netdev.open();
    TRY(interface_.queues.open());
    // The stack holds packets since the queue was stopped; no completion will wake it.
    shim_netif_tx_wake_all_queues(interface_.dev());
    return {};
}

void InterfaceState::stop_queues()
{
    if (interface_.rdma_netdev.present())
        interface_.rdma_netdev.stop();
    else
        interface_.queues.close();
    interface_.reaper.drain();
}

void InterfaceState::bring_up()
{
    interface_.paths.start();
    interface_.groups.start();
    garbage_.queue(interface_.work_queue, shim_arp_tbl_gc_interval());
}

void InterfaceState::bring_down()
{
    shim_netif_carrier_off(interface_.dev());
    garbage_.cancel();
    interface_.groups.leave_all();
    // No join response can call broadcast_joined() any more.
    interface_.link.broadcast_left();
    interface_.paths.flush();
}

void InterfaceState::run_garbage()
{
    // As the stack's neighbour tables: entries are looked at once in an interval, and kept for two.
    const unsigned long interval = shim_arp_tbl_gc_interval();
    interface_.paths.collect_garbage(2 * interval);
    interface_.connections.passive.collect_garbage();
    interface_.groups.collect_garbage(2 * interval);
    garbage_.queue(interface_.work_queue, interval);
}

} // namespace ipoib
