// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Locks and similar objects: who holds which, in which order, and that no context sleeps where sleeping is forbidden.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fiber.hpp"

namespace sim {

// As in the kernel: two kinds of lock taken in one order must never be taken in the other, whether or not contexts met.
// A wait for a work item or a callback counts as a kind of lock too.
class Lockdep {
public:
    // Kinds of the simulator's own.
    enum : unsigned { rtnl, transmit, addresses, cm_handler, sa_callback, events, client_data, napis, first_free };

    Lockdep();
    unsigned index_of(const void* lock_class, const char* name);
    void acquire(unsigned which, const void* lock);
    // Records a wait, as if the lock were taken and released.
    void wait_for(unsigned which, const void* lock);
    void release(const void* lock);

private:
    static constexpr unsigned max_classes = 64;
    void check_order(unsigned which, const void* lock);
    bool leads_to(unsigned from, unsigned to) const;

    std::vector<const void*> classes_;
    std::vector<std::string> names_;
    std::array<std::array<bool, max_classes>, max_classes> before_{};
};

// Requires a context that may sleep.
void may_sleep(const char* what);
// Waits until all current readers have left their sections.
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
