// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Values that are read without locks.
#pragma once

namespace kernel {

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

} // namespace kernel
