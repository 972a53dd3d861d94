// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Counters that are read without locks.
#pragma once
#include <cstdint>

#include <shim/sync.h>

namespace kernel {

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
