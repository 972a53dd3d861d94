// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A queue of packets, linked by skb->next; push() limits its length. The user's lock guards it.
#pragma once
#include <kernel/time.hpp>
#include <shim/skbuff.h>
#include <shim/sync.h>

namespace kernel {

class PacketQueue {
public:
    // Longer than any query or join, with its repetitions, takes.
    static constexpr unsigned int max_wait_s = 60;

    PacketQueue() = default;
    PacketQueue(PacketQueue&& other) noexcept { take(other); }
    PacketQueue& operator=(PacketQueue&& other) noexcept
    {
        drop_all(SHIM_DROP_NEIGH_DEAD);
        take(other);
        return *this;
    }
    PacketQueue(const PacketQueue&) = delete;
    PacketQueue& operator=(const PacketQueue&) = delete;
    ~PacketQueue() { drop_all(SHIM_DROP_NEIGH_DEAD); }

    unsigned int length() const { return length_; }
    bool empty() const { return !first_; }
    // Appends a packet. Returns false if limit packets wait, or there is no memory to copy zerocopy pages; the packet
    // remains the caller's. A packet that waits is orphaned (skb_orphan()): TCP does not retransmit a packet that is
    // still charged to its socket, and so would not try another path.
    [[nodiscard]] bool push(sk_buff* skb, unsigned int limit)
    {
        if (length_ >= limit || shim_skb_orphan_frags(skb) != 0)
            return false;
        shim_skb_orphan(skb);
        append(skb);
        return true;
    }
    // Appends a packet that waits for milliseconds only, and so stays charged to its socket.
    void append(sk_buff* skb)
    {
        shim_skb_set_next(skb, nullptr);
        if (last_) {
            shim_skb_set_next(last_, skb);
        } else {
            first_ = skb;
            since_ = shim_jiffies();
        }
        last_ = skb;
        ++length_;
    }
    // Returns nullptr if it is empty.
    sk_buff* pop()
    {
        sk_buff* skb = first_;
        if (!skb)
            return nullptr;
        first_ = shim_skb_next(skb);
        if (!first_)
            last_ = nullptr;
        shim_skb_set_next(skb, nullptr);
        --length_;
        return skb;
    }
    // Appends all packets of other, which is empty afterwards.
    void take(PacketQueue& other)
    {
        while (sk_buff* skb = other.pop())
            append(skb);
    }
    // Drops all packets if the oldest has waited for more than max_wait_s: packets leave together, so it has waited
    // since the queue was last empty. Returns their number.
    unsigned int drop_overdue(shim_drop why)
    {
        const bool overdue = !empty() && elapsed(since_, shim_jiffies()) > seconds(max_wait_s);
        return overdue ? drop_all(why) : 0;
    }
    // Returns the number of packets.
    unsigned int drop_all(shim_drop why)
    {
        unsigned int dropped = 0;
        for (; sk_buff* skb = pop(); ++dropped)
            shim_kfree_skb_reason(skb, why);
        return dropped;
    }

private:
    sk_buff* first_ = nullptr;
    sk_buff* last_ = nullptr;
    unsigned int length_ = 0;
    // Time since which the queue is not empty, in jiffies.
    unsigned long since_ = 0;
};

} // namespace kernel
