// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A NAPI context. Its poll is a member function of the object that contains it.
#pragma once

#include <kernel/opaque.hpp>
#include <kernel/thread_safety.hpp>
#include <shim/napi.h>
#include <shim/sync.h>

namespace kernel {

enum class Direction { receive, transmit };

template <auto Poll>
class Napi;

// Poll(budget) returns the number of packets handled; budget if there may be more.
template <class Owner, int (Owner::*Poll)(int)>
class Napi<Poll> {
public:
    Napi() = default;
    Napi(const Napi&) = delete;
    Napi& operator=(const Napi&) = delete;

    // add(): before start(). remove(): after disable(). CONTEXT: process.
    void add(net_device* dev, Owner& owner, Direction direction)
    {
        if (direction == Direction::transmit)
            shim_netif_napi_add_tx(dev, native(), poll, &owner);
        else
            shim_netif_napi_add(dev, native(), poll, &owner);
    }
    void remove() { shim_netif_napi_del(native()); }
    // Enables it and polls once: an event may have been lost before. CONTEXT: process.
    void start()
    {
        shim_napi_enable(native());
        poll_now();
    }
    // CONTEXT: process.
    void poll_now()
    {
        // A softirq that is raised with bottom halves off runs when they are enabled, not at the next tick.
        shim_local_bh_disable();
        schedule();
        shim_local_bh_enable();
    }
    // CONTEXT: process, may sleep.
    void disable() { shim_napi_disable(native()); }
    // CONTEXT: any.
    void schedule() { shim_napi_schedule(native()); }
    // Returns false if it is polled again at once.
    [[nodiscard]] bool complete(int done) { return shim_napi_complete_done(native(), done); }
    // Passes a packet to the stack. alone: the only one of its poll, which GRO can't merge, bypasses GRO.
    void receive(sk_buff* skb, bool alone)
    {
        if (alone && !shim_napi_holds_packets(native())) {
            shim_skb_mark_napi_id(skb, native());
            shim_netif_receive_skb(skb);
        } else {
            shim_napi_gro_receive(native(), skb);
        }
    }
    shim_napi* native() { return storage_.get(); }

private:
    // The kernel calls it in the context that Poll requires.
    TA_UNCHECKED static int poll(void* owner, int budget) { return (static_cast<Owner*>(owner)->*Poll)(budget); }
    Opaque<shim_napi> storage_{};
};

} // namespace kernel
