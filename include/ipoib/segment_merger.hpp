// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Receive offload by GRO's rules (ethtool -K rx-gro-hw): merges consecutive TCP segments of a flow into one packet that
// can be segmented into the same segments again. Only the first segment needs an skb and goes through the stack's GRO;
// doing that for every small segment would double its cost. At the end of a poll the merger is empty.
//
// The stack's GRO of Linux 6.1 to 6.9 may take the IP identifications of a merged packet with DF for equal: a router
// sends all its segments with the first one's. An atomic datagram's identification has no meaning (RFC 6864
// section 4.1).
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

    // An IPv4 packet in its receive buffer, or its headers' copy and its data there. is_tcp() is false if it is not a
    // TCP segment, is a fragment, or has IP options.
    class Segment {
    public:
        Segment() = default;
        Segment(void* ip, unsigned int bytes);
        bool is_tcp() const { return tcp; }
        // Compute a checksum, and return true if it is right.
        bool ip_checksum_holds() const;
        bool tcp_checksum_holds() const;
        // Returns true if other segments may follow in the same packet: such a segment is kept.
        bool starts_packet() const { return mergeable && !(tcp->flags & tcp_psh); }
        // Points ip, tcp and times to a copy of the headers, which begins with the IP header.
        void move_headers(void* headers);
        // The segment has data, no flag except ACK and PSH, and no option except timestamps; read_segment() clears it
        // if a checksum is wrong.
        bool mergeable = false;
        Ipv4Header* ip = nullptr;
        TcpHeader* tcp = nullptr;
        // nullptr: the option is absent.
        const TcpTimestamps* times = nullptr;
        unsigned int header_bytes = 0, data_bytes = 0;
    };

    struct Flow {
        // nullptr: free.
        sk_buff* skb = nullptr;
        Segment first;
        unsigned int segments = 0, data_bytes = 0;
    };

    // Returns the flow whose packet the segment can be appended to. Otherwise delivers the flow's packet, if any, so
    // that the segment can follow, and returns nullptr.
    Flow* find_or_flush(const Segment& segment) TA_REQUIRES(kernel::receive_poll);
    // Appends the segment's data to the flow's packet, which owns the buffer of buffer_bytes then.
    void append(Flow& flow, const Segment& segment, unsigned int buffer_bytes) TA_REQUIRES(kernel::receive_poll);
    // Keeps a packet, so that segments can be appended to it. segment: its first, which starts_packet() and has its
    // headers in the packet's linear part, and nothing else there: the stack's GRO may put the packet into another's
    // frag_list, of which skb_segment() clones members with linear data, with the gso_segs by which inet_gso_segment()
    // counts identifications.
    void hold(const Segment& segment, sk_buff* skb) TA_REQUIRES(kernel::receive_poll);
    // Delivers the flow of a packet that was not passed to find_or_flush() and is delivered next. If the packet's flow
    // is not known, because it is a fragment or cannot be read as a whole, all flows between its two hosts. packet: its
    // first bytes, from the IP header on.
    void flush_flow_of(void* packet, unsigned int bytes) TA_REQUIRES(kernel::receive_poll);
    void deliver_all() TA_REQUIRES(kernel::receive_poll);

private:
    static constexpr unsigned int max_flows = 8;
    // Segments of a packet; each is a fragment (MAX_SKB_FRAGS is 16 at least). Two such packets of MTU 2044 have less
    // than 64 KiB, so that the stack's GRO merges them again, from Linux 6.10 on or without DF.
    static constexpr unsigned int max_segments = 16;

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
