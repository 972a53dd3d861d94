// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Context of execution: a process, a worker, a softirq, each with its own stack. One runs at a time, and yields where
// the scheduler says.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base.hpp"

struct net_device;

namespace sim {

// lockdep's record of a held lock.
struct Held {
    unsigned kind;
    const void* lock;
};

class Fiber {
public:
    enum class Kind { process, softirq };
    enum class State { ready, running, blocked, asleep, done };

    Fiber(std::string name, Kind kind, std::function<void()> body);
    ~Fiber();
    Fiber(const Fiber&) = delete;

    // Switches from the scheduler's stack to the fiber, until the fiber calls leave().
    void enter();
    void leave();

    std::string name;
    const Kind kind;
    State state = State::ready;
    // Index in the scheduler's list.
    std::size_t index = 0;
    // Object that the fiber is blocked on, and since when.
    const void* waits_for = nullptr;
    const char* why = "";
    Time blocked_since = 0;
    // Depth of disabled bottom halves; depth of RCU read sections; and the serial number of the section.
    int bh = 0, rcu = 0;
    std::uint64_t section = 0;
    std::vector<Held> held;
    // Within ndo_start_xmit: more packets follow.
    bool more = false;
    // A fault let a call of the fiber fail, and the driver has not warned of it.
    bool refused = false;
    // The fiber holds RTNL.
    bool rtnl = false;
    // The interface whose packets it polls, or null.
    net_device* polls = nullptr;

    bool reader() const { return rcu > 0 || bh > 0; }

private:
    static void trampoline();
    [[noreturn]] void main();

    std::function<void()> body_;
    void* stack_;
    void* sp_ = nullptr;
    void* fake_stack_ = nullptr;
};

} // namespace sim
