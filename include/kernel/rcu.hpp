// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Reading without locks: what a reader found inside an RcuGuard stays in memory until the guard ends.
#pragma once
#include <shim/sync.h>

namespace kernel {

class [[nodiscard]] RcuGuard {
public:
    RcuGuard() { shim_rcu_read_lock(); }
    ~RcuGuard() { shim_rcu_read_unlock(); }
    RcuGuard(const RcuGuard&) = delete;
    RcuGuard& operator=(const RcuGuard&) = delete;
};

// A value that one side stores under its lock and others load at any time: pointers, flags, statistics.
// A load that sees a pointer sees what it points to as it was when stored.
template <class T>
class Published {
public:
    constexpr Published() = default;
    constexpr explicit Published(T value) : value_(value) {}
    Published(const Published&) = delete;
    Published& operator=(const Published&) = delete;
    T load() const { return __atomic_load_n(&value_, __ATOMIC_ACQUIRE); }
    T load_relaxed() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }
    void store(T value) { __atomic_store_n(&value_, value, __ATOMIC_RELEASE); }

private:
    T value_{};
};

// A count with one writer at a time and readers anywhere; 64 bits are read in one piece.
class Counter {
public:
    void add(std::uint64_t amount = 1) { __atomic_store_n(&value_, value_ + amount, __ATOMIC_RELAXED); }
    std::uint64_t value() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }

private:
    static_assert(sizeof(void*) == 8, "this driver is for 64-bit kernels");
    std::uint64_t value_ = 0;
};

// A count for rare events, written from any context. The kernel's atomics add: for the compiler's own, gcc calls a
// helper of its library's on arm64, which kernels do not have.
class SharedCounter {
public:
    void add(std::uint64_t amount = 1) { shim_atomic_add(&value_, amount); }
    std::uint64_t value() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }

private:
    std::uint64_t value_ = 0;
};

} // namespace kernel
