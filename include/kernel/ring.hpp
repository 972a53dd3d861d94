// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Producer and consumer index of a ring. Both wrap at 2^32; only their difference and their low bits are used. Each has
// one writer at a time; writing one is a release of the slots, reading one an acquire. A third party reads the two at
// different times, so used() and free() are estimates for it.
// INVARIANT: 0 <= head - tail <= size, modulo 2^32; size is a power of two.
#pragma once
#include <bit>
#include <cstdint>

#include <kernel/published.hpp>
#include <kernel/sequence.hpp>

namespace kernel {

class RingIndex {
public:
    explicit RingIndex(std::uint32_t size = 1, std::uint32_t start = 0) : size_(size), head_(start), tail_(start) {}
    void reset(std::uint32_t size, std::uint32_t start = 0)
    {
        size_ = size;
        head_.store(start);
        tail_.store(start);
    }

    std::uint32_t size() const { return size_; }
    std::uint32_t head() const { return head_.load(); }
    std::uint32_t tail() const { return tail_.load(); }
    std::uint32_t used() const { return head() - tail(); }
    std::uint32_t free() const { return size_ - used(); }
    bool empty() const { return used() == 0; }
    std::uint32_t slot(std::uint32_t index) const { return index & (size_ - 1); }

    // The producer filled count more slots.
    void produce(std::uint32_t count = 1) { head_.store(head_.load_relaxed() + count); }
    // The consumer emptied all slots before index.
    void consume_to(std::uint32_t index) { tail_.store(index); }
    // index is between tail (inclusive) and head (exclusive).
    bool holds(std::uint32_t index) const { return index - tail() < used(); }
    // Everything that was produced before index has been consumed.
    bool passed(std::uint32_t index) const { return not_before(tail(), index); }

private:
    std::uint32_t size_;
    Published<std::uint32_t> head_;
    Published<std::uint32_t> tail_;
};

// Rounds a ring size up to a power of two within limits.
constexpr int clamp_ring_size(long wanted, int min, int max)
{
    if (wanted <= min)
        return min;
    if (wanted >= max)
        return max;
    return static_cast<int>(std::bit_ceil(static_cast<unsigned int>(wanted)));
}

} // namespace kernel
