// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Work that runs later, in process context: a member function of the object that the Work is part of.
#pragma once
#include <cstddef>

#include <generated/layout.h>
#include <shim/work.h>

namespace kernel {

// An ordered queue: one item at a time. Whoever created it destroys it: one of them is a global.
class WorkQueue {
public:
    constexpr WorkQueue() = default;
    WorkQueue(const WorkQueue&) = delete;
    WorkQueue& operator=(const WorkQueue&) = delete;
    // False: no memory.
    [[nodiscard]] bool create(const char* name)
    {
        queue_ = shim_workqueue_create(name);
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
    explicit Work(Owner& owner) { shim_work_init(native(), run, &owner); }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

    // Queued once already: that one stands. CONTEXT: any.
    void queue(WorkQueue& queue, unsigned long delay_jiffies = 0)
    {
        shim_work_queue(queue.native(), native(), delay_jiffies);
    }
    // Queued once already: it moves to the new time. CONTEXT: any.
    void requeue(WorkQueue& queue, unsigned long delay_jiffies = 0)
    {
        shim_work_requeue(queue.native(), native(), delay_jiffies);
    }
    // It neither waits nor runs afterwards. CONTEXT: process, holding no lock that Run takes.
    void cancel() { shim_work_cancel(native()); }

private:
    static void run(void* owner) { (static_cast<Owner*>(owner)->*Run)(); }
    shim_work* native() { return reinterpret_cast<shim_work*>(storage_); }
    alignas(SHIM_ALIGNOF_WORK) std::byte storage_[SHIM_SIZEOF_WORK];
};

} // namespace kernel
