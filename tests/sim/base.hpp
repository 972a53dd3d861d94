// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Base of all parts of the simulator: time, the seeded random numbers, the log of a replay, and the end of a run that
// found a failure.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>

namespace sim {

// Nanoseconds since the simulation began.
using Time = std::uint64_t;
inline constexpr Time microsecond = 1000, millisecond = 1000 * microsecond, second = 1000 * millisecond;

// xorshift64*: fast, and the same on every machine.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 0x2545f4914f6cdd1d)
    {
        for (int i = 0; i < 8; ++i)
            (void)next();
    }
    std::uint64_t next()
    {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545f4914f6cdd1d;
    }
    // Uniform in 0 to bound - 1.
    std::uint64_t below(std::uint64_t bound) { return (next() >> 16) % bound; }
    std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + below(high - low + 1); }
    // True once in this many times on average; never if times is 0.
    bool one_in(std::uint64_t times) { return times && below(times) == 0; }
    // A value between the two; each power of two is as likely as the next.
    Time log_between(Time low, Time high)
    {
        const Time scaled = low << below(64 - static_cast<unsigned>(__builtin_clzll(high / low | 1)));
        return between(scaled, scaled * 2 < high ? scaled * 2 : high);
    }

private:
    std::uint64_t state_;
};

// A value for each pair of objects that communicated.
template <class T>
class Pairs {
public:
    T& of(unsigned int from, unsigned int to) { return all_[key(from, to)]; }
    T value(unsigned int from, unsigned int to) const
    {
        const auto it = all_.find(key(from, to));
        return it == all_.end() ? T() : it->second;
    }
    void forget(unsigned int from, unsigned int to) { all_.erase(key(from, to)); }

private:
    static std::uint64_t key(unsigned int from, unsigned int to) { return std::uint64_t(from) << 32 | to; }
    std::unordered_map<std::uint64_t, T> all_;
};

// As the kernel's ERR_PTR().
template <class T>
T* error_pointer(int error)
{
    return reinterpret_cast<T*>(std::intptr_t(error));
}

// Reports the failure of the run to the watching process, and ends this one.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Prints a line of a replay's log.
void note(const char* format, ...) __attribute__((format(printf, 1, 2)));
extern bool noting;

} // namespace sim

#define SIM_CHECK(condition, ...)                                                                                      \
    do {                                                                                                               \
        if (!(condition)) [[unlikely]]                                                                                 \
            ::sim::fail(__VA_ARGS__);                                                                                  \
    } while (0)
#define SIM_NOTE(...)                                                                                                  \
    do {                                                                                                               \
        if (::sim::noting) [[unlikely]]                                                                                \
            ::sim::note(__VA_ARGS__);                                                                                  \
    } while (0)
