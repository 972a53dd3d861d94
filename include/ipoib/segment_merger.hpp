// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Large receive offload: TCP segments of a flow that arrive one behind the other, their checksums verified by the HCA,
// become one packet before the stack sees them. What comes out is what GRO would have made of them, for less: only the
// first segment gets a packet of its own. CONTEXT: a receive ring's poll, at whose end it is empty.
#pragma once
#include <cstdint>

#include <ipoib/tcp.hpp>

struct sk_buff;

namespace ipoib {

class RxQueue;

class SegmentMerger {
public:
    explicit SegmentMerger(RxQueue& queue) : queue_(queue) {}

    // A packet of TCP over IPv4, as it lies in its buffer; not TCP, or not whole: no flow.
    class Segment {
    public:
        Segment() = default;
        Segment(void* ip, unsigned int bytes);
        bool of_flow() const { return tcp; }
        // It can be joined with others: data and an acknowledgement, nothing out of the ordinary.
        bool plain = false;
        Ipv4Header* ip = nullptr;
        TcpHeader* tcp = nullptr;
        // nullptr: without the option.
        TcpTimestamps* times = nullptr;
        unsigned int header_bytes = 0, data_bytes = 0;
    };

    // Appends the segment's data to its flow's packet; true: the buffer it lies in, of so many bytes, went with it.
    // Otherwise what the flow has so far is delivered, so that the segment can follow.
    bool append(const Segment& segment, unsigned int buffer_bytes);
    // A packet, whose data begins with the segment, may become a flow's first. False: it can't, and is the caller's.
    bool hold(const Segment& segment, sk_buff* skb);
    // A packet that append() was not asked for, and begins with these bytes, is about to be delivered: what is held of
    // TCP between its two hosts is delivered first. Its flow may be one of these; a fragment does not tell.
    void make_way(const void* packet, unsigned int bytes);
    void deliver_all();

private:
    struct Flow {
        // nullptr: free.
        sk_buff* skb = nullptr;
        Segment first;
        unsigned int segments = 0, data_bytes = 0;
        std::uint32_t next_sequence = 0;
    };
    static constexpr unsigned int most_flows = 8;
    // What a packet has room for: MAX_SKB_FRAGS behind the first.
    static constexpr unsigned int most_segments = 17;

    Flow* flow_of(const Segment& segment);
    static bool fits(const Flow& flow, const Segment& segment);
    void deliver(Flow& flow);

    RxQueue& queue_;
    Flow flows_[most_flows];
    // So many of them are not free.
    unsigned int held_ = 0;
    // Which one goes when there is no room for another.
    unsigned int oldest_ = 0;
};

} // namespace ipoib
