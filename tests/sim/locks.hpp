// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Locks and what is like one: who holds what, in which order, and that nobody sleeps where nobody may.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fiber.hpp"

namespace sim {

// As the kernel's: an order of two kinds of lock that was seen once must not be seen the other way round, whether or
// not anybody met anybody. What one waits for (a work item, a callback) is a kind of lock too.
class Lockdep {
public:
    // Kinds that the simulator has of its own.
    enum : unsigned { rtnl, transmit, addresses, cm_handler, sa_callback, events, client_data, first_free };

    Lockdep();
    unsigned index_of(const void* lock_class, const char* name);
    // tried: it would not have waited, so that its order says nothing.
    void acquire(unsigned which, const void* lock, bool tried = false);
    // As if it were taken and let go.
    void wait_for(unsigned which, const void* lock);
    void release(const void* lock);

private:
    static constexpr unsigned most = 64;
    void check_order(unsigned which, const void* lock);
    bool leads_to(unsigned from, unsigned to) const;

    std::vector<const void*> classes_;
    std::vector<std::string> names_;
    std::array<std::array<bool, most>, most> before_{};
};

// Context: may sleep.
void may_sleep(const char* what);
// Waits until every reader of now has left its section.
void synchronize_rcu();
void rcu_reader_left();

// RAII for the simulator's own fibers.
class Bh {
public:
    Bh();
    ~Bh();
};

struct Rtnl {
    Fiber* owner = nullptr;
};
class RtnlGuard {
public:
    RtnlGuard();
    ~RtnlGuard();
    RtnlGuard(const RtnlGuard&) = delete;
};

} // namespace sim
