// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A NAPI context. Its poll is a member function of the object that contains it. The kernel may wait for a context that
// is disabled while it holds the lock of the netdev's contexts, so none is disabled but under that lock.
#pragma once

#include <kernel/opaque.hpp>
#include <kernel/published.hpp>
#include <kernel/thread_safety.hpp>
#include <shim/napi.h>
#include <shim/sync.h>

namespace kernel {

enum class Direction { receive, transmit };

// The lock of a netdev's NAPI contexts. CONTEXT: process, may sleep.
class NapiGuard {
public:
    explicit NapiGuard(net_device* dev) : dev_(dev) { shim_napi_lock(dev); }
    ~NapiGuard() { shim_napi_unlock(dev_); }
    NapiGuard(const NapiGuard&) = delete;
    NapiGuard& operator=(const NapiGuard&) = delete;

private:
    net_device* dev_;
};

template <auto Poll>
class Napi;

// Poll(budget) returns the number of packets handled; budget if there may be more.
template <class Owner, int (Owner::*Poll)(int)>
class Napi<Poll> {
public:
    Napi() = default;
    Napi(const Napi&) = delete;
    Napi& operator=(const Napi&) = delete;

    // Adds it to the netdev, or removes it: before start(), after stop(). CONTEXT: process, may sleep.
    void add(net_device* dev, Owner& owner, Direction direction)
    {
        dev_ = dev;
        owner_ = &owner;
        const NapiGuard guard(dev);
        if (direction == Direction::transmit)
            shim_netif_napi_add_tx(dev, native(), poll, this);
        else
            shim_netif_napi_add(dev, native(), poll, this);
        shim_napi_enable(native());
    }
    void remove()
    {
        const NapiGuard guard(dev_);
        shim_napi_disable(native());
        shim_netif_napi_del(native());
    }
    // Lets it poll, and polls once: an event may have been lost before. CONTEXT: process.
    void start()
    {
        started_.store(true);
        poll_now();
    }
    // Waits for the poll to end; later events do nothing. CONTEXT: process, may sleep.
    void stop()
    {
        const Pause pause(*this);
        started_.store(false);
    }
    // Stops the poll while it exists, for example to destroy its page pool. CONTEXT: process, may sleep; between add()
    // and remove().
    class Pause {
    public:
        explicit Pause(Napi& napi) : napi_(napi), guard_(napi.dev_) { shim_napi_disable(napi_.native()); }
        ~Pause()
        {
            shim_napi_enable(napi_.native());
            napi_.poll_now();
        }
        Pause(const Pause&) = delete;
        Pause& operator=(const Pause&) = delete;

    private:
        Napi& napi_;
        const NapiGuard guard_;
    };
    // CONTEXT: process.
    void poll_now()
    {
        // A softirq that is raised with bottom halves off runs when they are enabled, not at the next tick.
        shim_local_bh_disable();
        schedule();
        shim_local_bh_enable();
    }
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
    TA_UNCHECKED static int poll(void* context, int budget)
    {
        auto& napi = *static_cast<Napi*>(context);
        if (napi.started_.load()) [[likely]]
            return (napi.owner_->*Poll)(budget);
        if (budget > 0)
            (void)napi.complete(0);
        return 0;
    }
    net_device* dev_ = nullptr;
    Owner* owner_ = nullptr;
    Published<bool> started_{false};
    Opaque<shim_napi> storage_{};
};

} // namespace kernel
