// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The queues of one direction of an interface: max objects, of which the first count() are for use.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include <kernel/counter.hpp>
#include <kernel/published.hpp>

namespace ipoib {

class Interface;

template <class Queue, unsigned int Max>
class QueueArray {
public:
    static constexpr unsigned int max = Max;

    explicit QueueArray(Interface& interface) : QueueArray(interface, std::make_integer_sequence<unsigned int, Max>())
    {
    }

    Queue& operator[](unsigned int index) { return queues_[index]; }
    const Queue& operator[](unsigned int index) const { return queues_[index]; }
    // All objects.
    Queue* begin() { return queues_; }
    Queue* end() { return queues_ + Max; }
    const Queue* begin() const { return queues_; }
    const Queue* end() const { return queues_ + Max; }

    // The number of queues that are for use, from 1 to max. The caller of set_count() excludes users of the queues
    // beyond. CONTEXT: any.
    unsigned int count() const { return count_.load_relaxed(); }
    void set_count(unsigned int count) { count_.store(count); }

    // The sum of value(queue), or of a counter, of all objects, since a queue that is not for use any more has counted,
    // too. CONTEXT: any.
    template <class Value>
    std::uint64_t sum(Value value) const
    {
        std::uint64_t total = 0;
        for (const Queue& queue : *this)
            total += value(queue);
        return total;
    }
    template <class Counter>
    std::uint64_t sum(Counter Queue::*counter) const
    {
        return sum([counter](const Queue& queue) { return (queue.*counter).value(); });
    }

private:
    template <unsigned int... Index>
    QueueArray(Interface& interface, std::integer_sequence<unsigned int, Index...>)
        : queues_{Queue(interface, Index)...}
    {
    }

    Queue queues_[Max];
    kernel::Published<unsigned int> count_{1};
};

} // namespace ipoib
