// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Receives to be posted: chained, and posted in batches, as each post rings a doorbell. Counts those that the HCA has.
#pragma once
#include <algorithm>

#include <kernel/published.hpp>
#include <shim/wr.h>

namespace ipoib {

// CONTEXT: callers serialise; outstanding(): any.
class ReceiveChain {
public:
    // size: buffers of the ring.
    void set_batch(unsigned int size) { batch_ = std::max(1U, std::min(max_batch, size / 4)); }

    // Adds a receive. Returns true if a batch is ready to be posted.
    bool add(shim_recv_wr* wr)
    {
        shim_recv_wr_set_next(wr, nullptr);
        if (last_)
            shim_recv_wr_set_next(last_, wr);
        else
            first_ = wr;
        last_ = wr;
        return ++length_ >= batch_;
    }

    // Posts the chain by post(first, &refused), and empties it. Returns post's result: 0 or a negative errno.
    template <class Post>
    int post(Post post)
    {
        // Counted before the post: the poll may call completed() for these receives before post() returns.
        shim_recv_wr* const first = first_;
        outstanding_.store(outstanding_.load_relaxed() + length_);
        forget();
        shim_recv_wr* refused;
        const int error = post(first, &refused);
        if (error) [[unlikely]]
            outstanding_.store(outstanding_.load_relaxed() - count_from(refused));
        return error;
    }
    // A receive completed.
    void completed() { outstanding_.store(outstanding_.load_relaxed() - 1); }
    // Receives that the HCA has.
    unsigned int outstanding() const { return outstanding_.load(); }

    // Empties the chain and the count: the queue pair, or SRQ, is out of service.
    void reset()
    {
        forget();
        outstanding_.store(0);
    }

private:
    static constexpr unsigned int max_batch = 16;

    static unsigned int count_from(const shim_recv_wr* wr)
    {
        unsigned int count = 0;
        for (; wr; wr = shim_recv_wr_next(wr))
            ++count;
        return count;
    }
    void forget()
    {
        first_ = last_ = nullptr;
        length_ = 0;
    }

    shim_recv_wr* first_ = nullptr;
    shim_recv_wr* last_ = nullptr;
    unsigned int length_ = 0;
    unsigned int batch_ = 1;
    kernel::Published<unsigned int> outstanding_;
};

} // namespace ipoib
