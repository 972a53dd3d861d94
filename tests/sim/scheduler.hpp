// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Order of execution, and time. Any ready fiber may be next; time stands still until none is ready, and then jumps to
// the next event. All choices come from one seeded generator, so a seed is a schedule.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "base.hpp"
#include "fiber.hpp"

namespace sim {

class Scheduler {
public:
    explicit Scheduler(std::uint64_t seed);
    ~Scheduler();

    Time now() const { return now_; }
    // nullptr in an event, which runs like an interrupt.
    Fiber* current() const { return current_; }
    Random& random() { return random_; }

    // Creates a context, ready to run.
    Fiber& spawn(std::string name, Fiber::Kind kind, std::function<void()> body);
    // Runs the event in no context, at this time or as soon as possible: hardware, and starts of contexts.
    void at(Time when, std::function<void()> event);
    void after(Time delay, std::function<void()> event) { at(now_ + delay, std::move(event)); }

    // Preemption point: another context may run here, sometimes for so long that time passes. The driver has one before
    // each call through the shim and in each basic block; those in the simulator are where an effect of a call is
    // visible before the call returns.
    void point()
    {
        if (--until_switch_ <= 0 && current_) [[unlikely]]
            give_way();
    }
    // Blocks the current fiber until wake(on). The caller checks its condition again.
    void block(const void* on, const char* why);
    void wake(const void* on);
    void sleep(Time duration);

    // Runs until the time, or until done() is true. Fails if a fiber is stuck.
    void run(Time until, const std::function<bool()>& done = nullptr);
    // Runs a context of its own to its end.
    void run_process(const char* name, const std::function<void()>& body);
    // From here on contexts yield only where they must, and no processor is busy otherwise.
    void be_calm();

    // Waits within the current fiber; checks the condition at each wake(on).
    template <class Condition>
    void wait(const void* on, const char* why, Condition condition)
    {
        while (!condition())
            block(on, why);
    }

    const std::vector<std::unique_ptr<Fiber>>& fibers() const { return fibers_; }
    bool lives(const Fiber* fiber) const { return living_.contains(fiber); }
    std::uint64_t steps() const { return steps_; }
    // State of all contexts, for a failure's report.
    std::string describe() const;
    void check_nobody_stuck() const;

private:
    struct Event {
        Time when;
        std::uint64_t order;
        std::uint32_t slot;
        bool operator<(const Event& other) const
        {
            return when != other.when ? when > other.when : order > other.order;
        }
    };

    void give_way();
    void switch_away();
    void make_ready(Fiber& fiber);
    void run_fiber();
    void run_event();

    Time now_ = 0;
    Random random_;
    Fiber* current_ = nullptr;
    std::vector<std::unique_ptr<Fiber>> fibers_;
    std::unordered_set<const Fiber*> living_;
    std::vector<Fiber*> ready_;
    std::vector<Fiber*> blocked_;
    std::vector<Event> heap_;
    std::vector<std::function<void()>> events_;
    std::vector<std::uint32_t> free_events_;
    std::uint64_t order_ = 0;
    std::int64_t until_switch_ = 1;
    std::uint64_t max_steps_at_a_time_ = 3'000'000;
    std::int64_t density_;
    std::uint64_t steps_ = 0, steps_since_time_ = 0;
};

} // namespace sim
