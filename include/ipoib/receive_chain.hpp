// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Receives on their way back to the HCA: those that are ready wait in a chain and are posted a batch at a time, as each
// post rings a doorbell; those that the HCA has are counted.
#pragma once
#include <algorithm>

#include <kernel/rcu.hpp>
#include <shim/verbs.h>

namespace ipoib {

// CONTEXT: of one at a time, under whatever keeps others away; outstanding(): any.
class ReceiveChain {
public:
    // For a ring of so many.
    void set_batch(unsigned int size) { batch_ = std::max(1U, std::min(largest_batch, size / 4)); }

    // True: a batch is ready to be posted.
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

    // Has post(first, &refused) post the chain, whose result it returns: 0, or an error. Then the chain is empty.
    template <class Post>
    int post(Post post)
    {
        // Before a completion can say that one is back: the poll adds that again, while who filled a ring still posts.
        shim_recv_wr* const first = first_;
        outstanding_.store(outstanding_.load_relaxed() + length_);
        forget();
        shim_recv_wr* refused;
        const int error = post(first, &refused);
        if (error) [[unlikely]]
            outstanding_.store(outstanding_.load_relaxed() - count_from(refused));
        return error;
    }
    // One came back.
    void completed() { outstanding_.store(outstanding_.load_relaxed() - 1); }
    // All that the HCA has.
    unsigned int outstanding() const { return outstanding_.load(); }

    // The queue pair, or shared receive queue, is out of service: nothing is outstanding, nothing waits.
    void reset()
    {
        forget();
        outstanding_.store(0);
    }

private:
    static constexpr unsigned int largest_batch = 16;

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
