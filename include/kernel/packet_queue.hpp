// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A bounded first-in first-out queue of packets, chained through their own link. Its user's lock guards it.
#pragma once
#include <shim/skbuff.h>

namespace kernel {

class PacketQueue {
public:
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
    // False, and the packet stays the caller's, when limit packets wait already. One that waits no longer counts for
    // its socket: TCP would take it for sent and not yet gone, and never send it again by another way.
    [[nodiscard]] bool push(sk_buff* skb, unsigned int limit)
    {
        if (length_ >= limit)
            return false;
        shim_skb_orphan(skb);
        shim_skb_set_next(skb, nullptr);
        if (last_)
            shim_skb_set_next(last_, skb);
        else
            first_ = skb;
        last_ = skb;
        ++length_;
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
            (void)push(skb, ~0U);
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
    sk_buff* first_ = nullptr;
    sk_buff* last_ = nullptr;
    unsigned int length_ = 0;
};

} // namespace kernel
