// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Who runs next, and what time it is. Any ready fiber may be next; time stands still until none is ready, and then
// jumps to the next event. Everything is drawn from one seeded generator, so a seed is a schedule.
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
    // nullptr: an event, as if an interrupt.
    Fiber* current() const { return current_; }
    Random& random() { return random_; }

    // A new context, ready to run.
    Fiber& spawn(std::string name, Fiber::Kind kind, std::function<void()> body);
    // Runs in no context at all, at the time or as soon as can be: hardware, and what starts contexts.
    void at(Time when, std::function<void()> event);
    void after(Time delay, std::function<void()> event) { at(now_ + delay, std::move(event)); }

    // Another context may run here, now and then for so long that time passes. The driver has such a point in front of
    // each call through the shim and in each basic block; those in the simulator are where an effect of a call is seen
    // before the call returns.
    void point()
    {
        if (--until_switch_ <= 0 && current_) [[unlikely]]
            give_way();
    }
    // The current fiber waits until wake(on). Its caller looks again at what it waited for.
    void block(const void* on, const char* why);
    void wake(const void* on);
    void sleep(Time duration);

    // Until the time has come, or done() is true. Fails when somebody is stuck.
    void run(Time until, const std::function<bool()>& done = nullptr);
    // A context of its own, to its end.
    void run_process(const char* name, const std::function<void()>& body);
    // From now on contexts give way only where they must, and nobody's processor has other things to do.
    void be_calm();

    // Waits within the current fiber, looking whenever on is woken.
    template <class Condition>
    void wait(const void* on, const char* why, Condition condition)
    {
        while (!condition())
            block(on, why);
    }

    const std::vector<std::unique_ptr<Fiber>>& fibers() const { return fibers_; }
    bool lives(const Fiber* fiber) const { return living_.contains(fiber); }
    std::uint64_t steps() const { return steps_; }
    // Of all contexts, for a failure's report.
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
    std::uint64_t most_steps_at_a_time_ = 3'000'000;
    std::int64_t density_;
    std::uint64_t steps_ = 0, steps_since_time_ = 0;
};

} // namespace sim
