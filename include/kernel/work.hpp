// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Work items: member functions, run later in process context, of the object that contains the item.
#pragma once

#include <kernel/lock.hpp>
#include <kernel/opaque.hpp>
#include <kernel/time.hpp>
#include <shim/work.h>

namespace kernel {

// An ordered workqueue: one item runs at a time. Destroyed explicitly, as some are globals.
class WorkQueue {
public:
    constexpr WorkQueue() = default;
    WorkQueue(const WorkQueue&) = delete;
    WorkQueue& operator=(const WorkQueue&) = delete;
    // reclaims: WQ_MEM_RECLAIM; its items must not wait for items of other queues without it. Returns false if
    // there is no memory.
    [[nodiscard]] bool create(const char* name, bool reclaims)
    {
        queue_ = shim_alloc_ordered_workqueue(name, reclaims);
        return queue_;
    }
    void destroy()
    {
        if (queue_)
            shim_destroy_workqueue(queue_);
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
    explicit Work(Owner& owner) { shim_helper_work_init(native(), run, &owner, lock_class_.native(), name()); }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    // Queues the item, unless it is queued. CONTEXT: any.
    void queue(WorkQueue& queue, unsigned long delay_jiffies = 0)
    {
        shim_queue_delayed_work(queue.native(), native(), delay_jiffies);
    }
    // Queues the item without a delay, even if it is queued with one. CONTEXT: any.
    void queue_now(WorkQueue& queue) { shim_mod_delayed_work(queue.native(), native()); }
    // Cancels the item and waits until it does not run. CONTEXT: process, without locks that Run takes.
    void cancel() { shim_cancel_delayed_work_sync(native()); }

private:
    static void run(void* owner) { (static_cast<Owner*>(owner)->*Run)(); }
    // The name for lockdep, which contains Run.
    static constexpr const char* name() { return __PRETTY_FUNCTION__; }
    static inline constinit LockClass lock_class_;
    shim_work* native() { return storage_.get(); }
    Opaque<shim_work> storage_;
};

// A work item whose function returns the time until its next run in jiffies, 0: none is needed. One run at a time: the
// work queue's, or a caller's.
template <auto Run>
class RepeatedWork;

template <class Owner, unsigned long (Owner::*Run)()>
class RepeatedWork<Run> {
public:
    RepeatedWork(Owner& owner, WorkQueue& queue) : owner_(owner), queue_(queue) {}

    // See Work.
    void queue_now() { work_.queue_now(queue_); }
    void cancel() TA_EXCLUDES(mutex_) { work_.cancel(); }
    // Calls the function, and returns what it returns. CONTEXT: process, without locks that Run takes.
    unsigned long run_here() TA_EXCLUDES(mutex_)
    {
        Guard one_at_a_time(mutex_);
        return (owner_.*Run)();
    }

private:
    void run()
    {
        if (const unsigned long delay = run_here())
            // Has no effect if queue_now() has queued the item meanwhile.
            work_.queue(queue_, delay);
    }
    // The name for lockdep, which contains Run.
    static constexpr const char* name() { return __PRETTY_FUNCTION__; }
    static inline constinit LockClass mutex_class_;

    Owner& owner_;
    WorkQueue& queue_;
    Mutex mutex_{mutex_class_, name()};
    Work<&RepeatedWork::run> work_{*this};
};

// A work item that runs under RTNL. It waits for RTNL, rather than trying and queueing itself again, which could
// starve. So a holder of RTNL, or a thread that one waits for, must not cancel it or destroy its queue.
template <auto Run>
class RtnlWork;

template <class Owner, void (Owner::*Run)()>
class RtnlWork<Run> {
public:
    RtnlWork(Owner& owner, WorkQueue& queue) : owner_(owner), queue_(queue) {}

    // See Work.
    void queue(unsigned long delay_jiffies = 0) { work_.queue(queue_, delay_jiffies); }
    void queue_now() { work_.queue_now(queue_); }
    // CONTEXT: process.
    void cancel() TA_EXCLUDES(rtnl) { work_.cancel(); }

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
