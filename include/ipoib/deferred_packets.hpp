// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A bounded queue of packets, each of which a work item on the interface's work queue passes to a member function.
#pragma once
#include <ipoib/path_lock.hpp>
#include <kernel/lock.hpp>
#include <kernel/packet_queue.hpp>
#include <kernel/work.hpp>

namespace ipoib {

template <auto Handle>
class DeferredPackets;

template <class Owner, void (Owner::*Handle)(sk_buff*)>
class DeferredPackets<Handle> {
public:
    DeferredPackets(Owner& owner, kernel::WorkQueue& queue) : owner_(owner), queue_(queue) {}

    // Returns false if limit packets wait; the packet remains the caller's. CONTEXT: any.
    [[nodiscard]] bool push(sk_buff* skb, unsigned int limit) TA_EXCLUDES(lock_)
    {
        bool pushed;
        {
            kernel::Guard guard(lock_);
            pushed = packets_.push(skb, limit);
        }
        work_.queue(queue_);
        return pushed;
    }
    // Cancels the work item, and drops the packets. Returns their number. CONTEXT: process; nothing is pushed any more.
    unsigned int stop() TA_EXCLUDES(lock_)
    {
        work_.cancel();
        kernel::Guard guard(lock_);
        return packets_.drop_all(SHIM_DROP_DEV_READY);
    }

private:
    void run() TA_EXCLUDES(lock_)
    {
        kernel::PacketQueue packets;
        {
            kernel::Guard guard(lock_);
            packets.take(packets_);
        }
        while (sk_buff* skb = packets.pop())
            (owner_.*Handle)(skb);
    }
    // The name for lockdep, which contains Handle.
    static constexpr const char* name() { return __PRETTY_FUNCTION__; }
    static inline constinit kernel::LockClass lock_class_;

    Owner& owner_;
    kernel::WorkQueue& queue_;
    kernel::SpinLock lock_ TA_ACQUIRED_AFTER(path_lock){lock_class_, name()};
    kernel::PacketQueue packets_ TA_GUARDED(lock_);
    kernel::Work<&DeferredPackets::run> work_{*this};
};

} // namespace ipoib
