// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// RCU read sections, and values that are read without locks.
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

// A value that is stored under a lock and loaded without: a pointer, flag or number. store() is a release and load() an
// acquire: a reader of a pointer sees its object as it was when the pointer was stored.
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

// A counter with one writer at a time and any readers.
class Counter {
public:
    void add(std::uint64_t amount = 1) { __atomic_store_n(&value_, value_ + amount, __ATOMIC_RELAXED); }
    std::uint64_t value() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }

private:
    static_assert(sizeof(void*) == 8, "this driver is for 64-bit kernels");
    std::uint64_t value_ = 0;
};

// A counter for rare events, with any writers. It uses the kernel's atomics: gcc's own call a library function on
// arm64, which kernels do not have.
class SharedCounter {
public:
    void add(std::uint64_t amount = 1) { shim_atomic64_add(&value_, amount); }
    std::uint64_t value() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }

private:
    std::uint64_t value_ = 0;
};

} // namespace kernel
