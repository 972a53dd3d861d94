// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Work that runs later, in process context: a member function of the object that the Work is part of.
#pragma once
#include <cstddef>

#include <generated/layout.h>
#include <kernel/lock.hpp>
#include <kernel/time.hpp>
#include <shim/work.h>

namespace kernel {

// An ordered queue: one item at a time. Whoever created it destroys it: one of them is a global.
class WorkQueue {
public:
    constexpr WorkQueue() = default;
    WorkQueue(const WorkQueue&) = delete;
    WorkQueue& operator=(const WorkQueue&) = delete;
    // reclaims: its items run also when there is no memory for a worker, and wait for no item of a queue that is not
    // so. False: no memory.
    [[nodiscard]] bool create(const char* name, bool reclaims)
    {
        queue_ = shim_workqueue_create(name, reclaims);
        return queue_;
    }
    void destroy()
    {
        if (queue_)
            shim_workqueue_destroy(queue_);
        queue_ = nullptr;
    }
    workqueue_struct* native() const { return queue_; }

private:
    workqueue_struct* queue_ = nullptr;
};

template <auto Run>
class Work;

template <class Owner, void (Owner::*Run)()>
class Work<Run> {
public:
    explicit Work(Owner& owner) { shim_work_init(native(), run, &owner, lock_class_.native(), name()); }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    // Queued once already: that one stands. CONTEXT: any.
    void queue(WorkQueue& queue, unsigned long delay_jiffies = 0)
    {
        shim_work_queue(queue.native(), native(), delay_jiffies);
    }
    // Runs it as soon as the queue gets to it, even if it waits for a later time. CONTEXT: any.
    void queue_now(WorkQueue& queue) { shim_work_queue_now(queue.native(), native()); }
    // It neither waits nor runs afterwards. CONTEXT: process, holding no lock that Run takes.
    void cancel() { shim_work_cancel(native()); }

private:
    static void run(void* owner) { (static_cast<Owner*>(owner)->*Run)(); }
    // For lockdep, which has Run in it.
    static constexpr const char* name() { return __PRETTY_FUNCTION__; }
    static inline constinit LockClass lock_class_;
    shim_work* native() { return reinterpret_cast<shim_work*>(storage_); }
    alignas(SHIM_ALIGNOF_WORK) std::byte storage_[SHIM_SIZEOF_WORK];
};

// Work under RTNL, which it waits for like anybody: it is not kept waiting by those who happen to find the lock free.
// So it is never cancelled, nor its queue destroyed, by a caller that holds RTNL or that a holder of RTNL waits for.
template <auto Run>
class RtnlWork;

template <class Owner, void (Owner::*Run)()>
class RtnlWork<Run> {
public:
    RtnlWork(Owner& owner, WorkQueue& queue) : owner_(owner), queue_(queue) {}

    // As Work's.
    void queue(unsigned long delay_jiffies = 0) { work_.queue(queue_, delay_jiffies); }
    void queue_now() { work_.queue_now(queue_); }
    // CONTEXT: process, without RTNL.
    void cancel() { work_.cancel(); }

private:
    void run()
    {
        Guard guard(rtnl);
        (owner_.*Run)();
    }

    Owner& owner_;
    WorkQueue& queue_;
    Work<&RtnlWork::run> work_{*this};
};

} // namespace kernel
