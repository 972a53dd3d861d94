// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Large receive offload: merges consecutive TCP segments of a flow, whose checksums the HCA verified, into one packet.
// The result is that of GRO, but only the first segment needs an skb. At the end of a poll it is empty.
#pragma once
#include <cstdint>

#include <ipoib/tcp.hpp>
#include <kernel/lock.hpp>

struct sk_buff;

namespace ipoib {

class RxQueue;

class SegmentMerger {
public:
    explicit SegmentMerger(RxQueue& queue) : queue_(queue) {}

    // An IPv4 packet in its receive buffer. of_flow() is false if it is not a TCP segment, is a fragment, or has IP
    // options.
    class Segment {
    public:
        Segment() = default;
        Segment(void* ip, unsigned int bytes);
        bool of_flow() const { return tcp; }
        // True if the segment can be merged: data and an acknowledgement, without flags but PSH and options but
        // timestamps.
        bool plain = false;
        Ipv4Header* ip = nullptr;
        TcpHeader* tcp = nullptr;
        // nullptr: the option is absent.
        TcpTimestamps* times = nullptr;
        unsigned int header_bytes = 0, data_bytes = 0;
    };

    // Appends the segment's data to its flow's packet, and returns true; the packet owns the buffer of buffer_bytes
    // then. Otherwise delivers the flow's packet, if any, so that the segment can follow.
    bool append(const Segment& segment, unsigned int buffer_bytes) TA_REQUIRES(kernel::receive_poll);
    // Keeps a packet, whose data begins with the segment, as a flow's first. Returns false if it is not kept.
    bool hold(const Segment& segment, sk_buff* skb) TA_REQUIRES(kernel::receive_poll);
    // Delivers all flows between the two hosts of a packet that was not passed to append() and is delivered next: it
    // may belong to one of them, and a fragment has no ports. packet: its first bytes, from the IP header on.
    void make_way(const void* packet, unsigned int bytes) TA_REQUIRES(kernel::receive_poll);
    void deliver_all() TA_REQUIRES(kernel::receive_poll);

private:
    struct Flow {
        // nullptr: free.
        sk_buff* skb = nullptr;
        Segment first;
        unsigned int segments = 0, data_bytes = 0;
        std::uint32_t next_sequence = 0;
    };
    static constexpr unsigned int max_flows = 8;
    // Segments of a packet, the first included.
    static constexpr unsigned int max_segments = 17;

    Flow* flow_of(const Segment& segment) TA_REQUIRES(kernel::receive_poll);
    static bool fits(const Flow& flow, const Segment& segment);
    void deliver(Flow& flow) TA_REQUIRES(kernel::receive_poll);

    RxQueue& queue_;
    Flow flows_[max_flows] TA_GUARDED(kernel::receive_poll);
    // Flows that are not free.
    unsigned int held_ TA_GUARDED(kernel::receive_poll) = 0;
    // The next flow's slot, in turn; a flow that still has it is delivered first.
    unsigned int next_ TA_GUARDED(kernel::receive_poll) = 0;
};

} // namespace ipoib
