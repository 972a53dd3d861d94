// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "scheduler.hpp"

#include <algorithm>
#include <limits>

#include "world.hpp"

namespace sim {

namespace {

// A longer wait for a lock, a response or a grace period counts as endless.
constexpr Time max_wait = 180 * second;

} // namespace

// Preemption points: before each call of the driver through the shim (boundary.hpp, which the Makefile generates), and,
// inserted by the compiler, at the beginning of each basic block of the driver.
extern "C" void sim_point() { world->scheduler.point(); }
extern "C" void __sanitizer_cov_trace_pc()
{
    // AddressSanitizer's constructors of the driver's objects run before the World exists.
    if (world)
        world->scheduler.point();
}

Scheduler::Scheduler(std::uint64_t seed) : random_(seed)
{
    // Some schedules switch at every other call, some rarely.
    static constexpr std::int64_t densities[] = {4, 8, 16, 32, 64, 200, 1000};
    density_ = densities[random_.below(std::size(densities))];
}

Scheduler::~Scheduler() = default;

Fiber& Scheduler::spawn(std::string name, Fiber::Kind kind, std::function<void()> body)
{
    fibers_.push_back(std::make_unique<Fiber>(std::move(name), kind, std::move(body)));
    fibers_.back()->section = ++world->sections;
    fibers_.back()->index = fibers_.size() - 1;
    living_.insert(fibers_.back().get());
    ready_.push_back(fibers_.back().get());
    return *fibers_.back();
}

void Scheduler::at(Time when, std::function<void()> event)
{
    std::uint32_t slot;
    if (free_events_.empty()) {
        slot = static_cast<std::uint32_t>(events_.size());
        events_.emplace_back();
    } else {
        slot = free_events_.back();
        free_events_.pop_back();
    }
    events_[slot] = std::move(event);
    heap_.push_back({std::max(when, now_), order_++, slot});
    std::push_heap(heap_.begin(), heap_.end());
}

void Scheduler::give_way()
{
    until_switch_ = static_cast<std::int64_t>(random_.between(1, static_cast<std::uint64_t>(density_) * 2));
    if (random_.one_in(24)) {
        // The processor is busy with interrupts or, in a VM, with another guest, also in a context that cannot be
        // preempted. In quiet no poll is delayed for longer than connections wait for receive buffers.
        const bool atomic = current_->bh > 0 || current_->rcu > 0;
        const bool long_one = random_.one_in(8) && !(atomic && world->quiet);
        const Time longest =
            atomic ? (long_one ? 20 * millisecond : millisecond) : (long_one ? 50 * millisecond : 5 * millisecond);
        sleep(random_.log_between(microsecond, longest));
        return;
    }
    if (ready_.empty())
        return;
    current_->state = Fiber::State::ready;
    ready_.push_back(current_);
    switch_away();
}

void Scheduler::switch_away()
{
    Fiber* self = current_;
    self->leave();
    current_ = self;
    self->state = Fiber::State::running;
}

void Scheduler::block(const void* on, const char* why)
{
    SIM_CHECK(current_, "an interrupt would wait for %s", why);
    current_->waits_for = on;
    current_->why = why;
    current_->blocked_since = now_;
    current_->state = Fiber::State::blocked;
    blocked_.push_back(current_);
    switch_away();
}

void Scheduler::wake(const void* on)
{
    for (std::size_t i = 0; i < blocked_.size();) {
        if (blocked_[i]->waits_for != on) {
            ++i;
            continue;
        }
        make_ready(*blocked_[i]);
        blocked_[i] = blocked_.back();
        blocked_.pop_back();
    }
}

void Scheduler::make_ready(Fiber& fiber)
{
    fiber.waits_for = nullptr;
    fiber.state = Fiber::State::ready;
    ready_.push_back(&fiber);
}

void Scheduler::sleep(Time duration)
{
    Fiber* self = current_;
    self->state = Fiber::State::asleep;
    after(duration, [this, self] { make_ready(*self); });
    switch_away();
}

void Scheduler::run_fiber()
{
    const std::size_t index = ready_.size() == 1 ? 0 : random_.below(ready_.size());
    Fiber* fiber = ready_[index];
    ready_[index] = ready_.back();
    ready_.pop_back();
    current_ = fiber;
    fiber->state = Fiber::State::running;
    fiber->enter();
    current_ = nullptr;
    if (fiber->state != Fiber::State::done)
        return;
    living_.erase(fiber);
    fibers_.back()->index = fiber->index;
    std::swap(fibers_[fiber->index], fibers_.back());
    fibers_.pop_back();
    // A softirq is a reader for its whole life.
    wake(&world->rcu);
}

void Scheduler::run_event()
{
    std::pop_heap(heap_.begin(), heap_.end());
    const Event event = heap_.back();
    heap_.pop_back();
    if (event.when > now_) {
        now_ = event.when;
        steps_since_time_ = 0;
    }
    const std::function<void()> call = std::move(events_[event.slot]);
    events_[event.slot] = nullptr;
    free_events_.push_back(event.slot);
    call();
}

void Scheduler::run(Time until, const std::function<bool()>& done)
{
    while (!(done && done())) {
        ++steps_;
        SIM_CHECK(++steps_since_time_ < max_steps_at_a_time_, "time stands still: a context spins\n%s",
                  describe().c_str());
        const bool due = !heap_.empty() && heap_.front().when <= now_;
        if (!ready_.empty() && !(due && random_.one_in(2))) {
            run_fiber();
        } else if (heap_.empty()) {
            SIM_CHECK(!done, "nothing will ever happen\n%s", describe().c_str());
            return;
        } else {
            if (ready_.empty() && heap_.front().when > until) {
                now_ = until;
                return;
            }
            run_event();
        }
    }
}

void Scheduler::run_process(const char* name, const std::function<void()>& body)
{
    bool done = false;
    spawn(name, Fiber::Kind::process, [&] {
        body();
        done = true;
    });
    run(~Time(0), [&done] { return done; });
}

void Scheduler::be_calm()
{
    until_switch_ = std::numeric_limits<std::int64_t>::max();
    max_steps_at_a_time_ *= 100;
}

std::string Scheduler::describe() const
{
    std::string text;
    for (const auto& fiber : fibers_) {
        text += "  " + fiber->name;
        if (fiber->state == Fiber::State::blocked)
            text += std::string(": waits for ") + fiber->why + " for " +
                    std::to_string((now_ - fiber->blocked_since) / millisecond) + " ms";
        else
            text += fiber->state == Fiber::State::asleep ? ": asleep" : ": runs";
        if (fiber->rtnl)
            text += ", holds RTNL";
        text += ", locks " + std::to_string(fiber->held.size()) + "\n";
    }
    return text;
}

void Scheduler::check_nobody_stuck() const
{
    for (const Fiber* fiber : blocked_)
        SIM_CHECK(now_ - fiber->blocked_since < max_wait || fiber->why[0] == '\0', "%s is stuck: waits for %s\n%s",
                  fiber->name.c_str(), fiber->why, describe().c_str());
}

} // namespace sim
