// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A bounded first-in first-out queue of packets, chained through their own link. Its user's lock guards it.
#pragma once
#include <kernel/time.hpp>
#include <shim/skbuff.h>

namespace kernel {

class PacketQueue {
public:
    // Longer than any question that packets wait for goes unanswered.
    static constexpr unsigned int max_wait_s = 60;

    PacketQueue() = default;
    PacketQueue(PacketQueue&& other) noexcept { take(other); }
    PacketQueue& operator=(PacketQueue&& other) noexcept
    {
        drop_all(SHIM_DROP_FORGOTTEN);
        take(other);
        return *this;
    }
    PacketQueue(const PacketQueue&) = delete;
    PacketQueue& operator=(const PacketQueue&) = delete;
    ~PacketQueue() { drop_all(SHIM_DROP_FORGOTTEN); }

    unsigned int length() const { return length_; }
    bool empty() const { return !first_; }
    // False, and the packet stays the caller's, when limit packets wait already, or there is no memory for pages that
    // user space has lent. A packet that waits no longer counts for its socket: TCP would take it for sent and not yet
    // gone, and never send it again by another way.
    [[nodiscard]] bool push(sk_buff* skb, unsigned int limit)
    {
        if (length_ >= limit || shim_skb_orphan_frags(skb) != 0)
            return false;
        shim_skb_orphan(skb);
        append(skb);
        return true;
    }
    // nullptr: empty.
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
    // Everything of other, behind what is here; other is empty afterwards.
    void take(PacketQueue& other)
    {
        while (sk_buff* skb = other.pop())
            append(skb);
    }
    // Drops all once the queue has not been empty for longer than max_wait_s. Where all that wait leave together, the
    // oldest has waited for that long. Returns how many.
    unsigned int drop_overdue(shim_drop why)
    {
        const bool overdue = !empty() && elapsed(since_, shim_jiffies()) > seconds(max_wait_s);
        return overdue ? drop_all(why) : 0;
    }
    // Returns how many.
    unsigned int drop_all(shim_drop why)
    {
        unsigned int dropped = 0;
        for (; sk_buff* skb = pop(); ++dropped)
            shim_skb_drop(skb, why);
        return dropped;
    }

private:
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

    sk_buff* first_ = nullptr;
    sk_buff* last_ = nullptr;
    unsigned int length_ = 0;
    // The queue has not been empty since, in jiffies.
    unsigned long since_ = 0;
};

} // namespace kernel
