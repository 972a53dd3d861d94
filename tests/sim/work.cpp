// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// include/shim/work.h: ordered work queues, with the states of an item as the kernel has them. A pending item is not
// queued again; a running one may be, and runs once more afterwards; while one is being cancelled it cannot be queued.
#include <algorithm>
#include <deque>
#include <set>

#include "world.hpp"

using namespace sim;

struct shim_work {
    std::uint32_t magic;
    unsigned kind;
    void (*run)(void*);
    void* context;
    const char* name;
    workqueue_struct* queue;
    // Number of the timer that is armed.
    std::uint64_t timer;
    bool waits, listed, runs;
    int cancels;
};

struct workqueue_struct {
    std::string name;
    unsigned kind;
    std::deque<shim_work*> items;
    bool busy = false, destroyed = false;
};

namespace {

constexpr std::uint32_t work_magic = 0x3042a57e;

void check(const shim_work* work) { SIM_CHECK(work->magic == work_magic, "a work item that is none"); }

void run_items(workqueue_struct* queue)
{
    auto& lockdep = world->lockdep;
    while (!queue->items.empty()) {
        shim_work* work = queue->items.front();
        queue->items.pop_front();
        check(work);
        work->listed = false;
        work->runs = true;
        lockdep.acquire(queue->kind, queue);
        lockdep.acquire(work->kind, work);
        work->run(work->context);
        // The item may have freed itself: it is not accessed unless it is still known.
        lockdep.release(work);
        lockdep.release(queue);
        SIM_CHECK(world->scheduler.current()->held.empty() && !world->scheduler.current()->rtnl,
                  "a work item ends with a lock held");
        if (world->works.contains(work)) {
            work->runs = false;
            world->scheduler.wake(work);
        }
        world->scheduler.point();
    }
    queue->busy = false;
    world->scheduler.wake(queue);
}

void list(shim_work* work)
{
    workqueue_struct* queue = work->queue;
    SIM_CHECK(!queue->destroyed, "%s is queued on a work queue that is gone", work->name);
    work->listed = true;
    queue->items.push_back(work);
    if (std::exchange(queue->busy, true))
        return;
    Random& random = world->scheduler.random();
    const Time late = random.one_in(4) ? random.log_between(microsecond, 20 * millisecond) : microsecond;
    world->scheduler.after(late, [queue] {
        world->scheduler.spawn("worker of " + queue->name, Fiber::Kind::process, [queue] { run_items(queue); });
    });
}

void start(workqueue_struct* queue, shim_work* work, unsigned long delay)
{
    SIM_CHECK(queue, "%s is queued on no work queue", work->name);
    SIM_CHECK(!queue->destroyed, "%s is queued on a work queue that is gone", work->name);
    work->queue = queue;
    if (delay == 0)
        return list(work);
    work->waits = true;
    const std::uint64_t timer = ++work->timer;
    // Timers fire with the tick.
    const Time when = (world->scheduler.now() / World::jiffy + delay) * World::jiffy;
    world->scheduler.at(when, [work, timer] {
        if (!world->works.contains(work) || !work->waits || work->timer != timer)
            return;
        work->waits = false;
        list(work);
    });
}

bool stop(shim_work* work)
{
    const bool pending = work->waits || work->listed;
    work->waits = false;
    if (std::exchange(work->listed, false))
        std::erase(work->queue->items, work);
    return pending;
}

} // namespace

namespace sim {

// Called before memory is freed: no item in it may be pending.
void check_no_work_within(const void* memory, std::size_t bytes)
{
    auto it = world->works.lower_bound(const_cast<shim_work*>(static_cast<const shim_work*>(memory)));
    const auto* end = static_cast<const char*>(memory) + bytes;
    while (it != world->works.end() && reinterpret_cast<const char*>(*it) < end) {
        const shim_work* work = *it;
        SIM_CHECK(!work->waits && !work->listed, "freed while pending: %s", work->name);
        SIM_CHECK(!work->runs, "freed while running: %s", work->name);
        it = world->works.erase(it);
    }
}

} // namespace sim

workqueue_struct* shim_alloc_ordered_workqueue(const char* name, bool)
{
    may_sleep("alloc_workqueue");
    if (world->memory.fails())
        return nullptr;
    world->memory.hold("work queue", 1);
    return new workqueue_struct{name, world->lockdep.index_of(name, name), {}};
}
void shim_destroy_workqueue(workqueue_struct* queue)
{
    may_sleep("destroy_workqueue");
    world->lockdep.wait_for(queue->kind, queue);
    world->scheduler.wait(queue, "a work queue to drain", [queue] { return !queue->busy; });
    SIM_CHECK(!queue->destroyed, "a work queue is destroyed twice");
    queue->destroyed = true;
    for (const shim_work* work : world->works)
        SIM_CHECK(!(work->waits && work->queue == queue), "%s waits for a queue that is destroyed", work->name);
    world->memory.hold("work queue", -1);
    delete queue;
}

void shim_helper_work_init(shim_work* work, void (*run)(void*), void* context, shim_lock_class* lock_class,
                           const char* name)
{
    *work = {work_magic, world->lockdep.index_of(lock_class, name), run,   context, name,
             nullptr,    world->scheduler.random().next(),          false, false,   false,
             0};
    world->works.insert(work);
}
void shim_queue_delayed_work(workqueue_struct* queue, shim_work* work, unsigned long delay)
{
    world->scheduler.point();
    check(work);
    if (!work->waits && !work->listed && !work->cancels)
        start(queue, work, delay);
}
void shim_mod_delayed_work(workqueue_struct* queue, shim_work* work)
{
    world->scheduler.point();
    check(work);
    if (work->cancels)
        return;
    (void)stop(work);
    start(queue, work, 0);
}
void shim_cancel_delayed_work_sync(shim_work* work)
{
    may_sleep("cancel_work");
    check(work);
    world->lockdep.wait_for(work->kind, work);
    ++work->cancels;
    (void)stop(work);
    world->scheduler.wait(work, work->name, [work] { return !work->runs; });
    --work->cancels;
    world->scheduler.point();
}
