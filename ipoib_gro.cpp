// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Merges received TCP segments (ethtool -K rx-gro-hw).
#include <ipoib/rx_queue.hpp>
#include <ipoib/segment_merger.hpp>
#include <shim/skbuff.h>

namespace ipoib {

namespace {

constexpr std::uint8_t protocol_tcp = 6;
// Both IPv4 addresses, and both TCP ports, each pair read in one access.
constexpr unsigned int address_bytes = 8, port_bytes = 4;

// Compares inline, where the kernel's memcmp() would be a call.
template <unsigned int bytes>
bool same(const void* one, const void* other)
{
    return __builtin_memcmp(one, other, bytes) == 0;
}
template <class Field>
bool same(const Field& one, const Field& other)
{
    return same<sizeof(Field)>(&one, &other);
}

} // namespace

SegmentMerger::Segment::Segment(void* start, unsigned int bytes)
{
    constexpr std::uint8_t version_4_without_options = 0x45;
    constexpr std::uint16_t fragment_bits = 0x3fff;
    auto* const header = static_cast<Ipv4Header*>(start);
    if (bytes < sizeof(Ipv4Header) + sizeof(TcpHeader) || header->version_and_length != version_4_without_options ||
        header->protocol != protocol_tcp || header->fragment.value() & fragment_bits ||
        header->total_bytes.value() != bytes)
        return;
    ip = header;
    tcp = reinterpret_cast<TcpHeader*>(header + 1);
    const unsigned int tcp_bytes = (tcp->length >> 4) * 4U;
    header_bytes = sizeof(Ipv4Header) + tcp_bytes;
    if (tcp_bytes < sizeof(TcpHeader) || header_bytes >= bytes)
        return;
    data_bytes = bytes - header_bytes;
    if (tcp_bytes == sizeof(TcpHeader) + sizeof(TcpTimestamps)) {
        times = reinterpret_cast<const TcpTimestamps*>(tcp + 1);
        if (times->preamble.value() != TcpTimestamps::usual_preamble)
            return;
    } else if (tcp_bytes != sizeof(TcpHeader)) {
        return;
    }
    mergeable = (tcp->flags & ~tcp_psh) == tcp_ack;
}

void SegmentMerger::Segment::move_headers(void* headers)
{
    ip = static_cast<Ipv4Header*>(headers);
    tcp = reinterpret_cast<TcpHeader*>(ip + 1);
    if (times)
        times = reinterpret_cast<const TcpTimestamps*>(tcp + 1);
}

bool SegmentMerger::Segment::ip_checksum_holds() const { return shim_helper_ip_checksum_holds(ip); }
bool SegmentMerger::Segment::tcp_checksum_holds() const
{
    return shim_helper_tcp_checksum_holds(ip, header_bytes + data_bytes);
}

SegmentMerger::Flow* SegmentMerger::flow_of(const Segment& segment)
{
    for (Flow& flow : flows_)
        if (flow.skb && same<address_bytes>(&flow.first.ip->source, &segment.ip->source) &&
            same<port_bytes>(&flow.first.tcp->source, &segment.tcp->source))
            return &flow;
    return nullptr;
}

// The rules of tcp_gro_receive() and inet_gro_receive(), and stricter: no flag except ACK and PSH, no option except
// timestamps, an equal urgent pointer, and IP identifications that count up.
bool SegmentMerger::fits(const Flow& flow, const Segment& segment)
{
    constexpr unsigned int max_bytes = 65535;
    const Segment& first = flow.first;
    const Ipv4Header &ip = *segment.ip, &first_ip = *first.ip;
    const TcpHeader &tcp = *segment.tcp, &first_tcp = *first.tcp;
    return segment.mergeable && tcp.sequence.value() == first_tcp.sequence.value() + flow.data_bytes &&
           segment.data_bytes <= first.data_bytes &&
           first.header_bytes + flow.data_bytes + segment.data_bytes <= max_bytes &&
           static_cast<std::uint16_t>(first_ip.identification.value() + flow.segments) == ip.identification.value() &&
           ip.service == first_ip.service && same(ip.fragment, first_ip.fragment) &&
           ip.time_to_live == first_ip.time_to_live && tcp.length == first_tcp.length &&
           same(tcp.acknowledgement, first_tcp.acknowledgement) && same(tcp.window, first_tcp.window) &&
           same(tcp.urgent, first_tcp.urgent) && !segment.times == !first.times &&
           (!first.times || same(*segment.times, *first.times));
}

SegmentMerger::Flow* SegmentMerger::find_or_flush(const Segment& segment)
{
    Flow* const flow = held_ && segment.is_tcp() ? flow_of(segment) : nullptr;
    if (!flow || fits(*flow, segment))
        return flow;
    deliver(*flow);
    return nullptr;
}

void SegmentMerger::append(Flow& flow, const Segment& segment, unsigned int buffer_bytes)
{
    shim_helper_skb_add_rx_frag(flow.skb, reinterpret_cast<std::byte*>(segment.ip) + segment.header_bytes,
                                segment.data_bytes, buffer_bytes);
    ++flow.segments;
    flow.data_bytes += segment.data_bytes;
    flow.first.tcp->flags |= segment.tcp->flags;
    queue_.count_merged(segment.header_bytes + segment.data_bytes);
    // The sender paused here, or the packet is full.
    if (segment.tcp->flags & tcp_psh || segment.data_bytes < flow.first.data_bytes || flow.segments == max_segments)
        deliver(flow);
}

void SegmentMerger::hold(const Segment& segment, sk_buff* skb)
{
    Flow* flow = &flows_[next_];
    next_ = (next_ + 1) % max_flows;
    if (flow->skb)
        deliver(*flow);
    ++held_;
    *flow = Flow{
        .skb = skb,
        .first = segment,
        .segments = 1,
        .data_bytes = segment.data_bytes,
    };
}

void SegmentMerger::deliver(Flow& flow)
{
    if (flow.segments > 1) {
        Ipv4Header& ip = *flow.first.ip;
        ip.total_bytes = kernel::Be16(static_cast<std::uint16_t>(flow.first.header_bytes + flow.data_bytes));
        ip.checksum = kernel::Be16(0);
        ip.checksum = kernel::Be16(internet_checksum(&ip, sizeof(ip)));
        shim_helper_skb_set_merged(flow.skb, flow.segments, flow.first.data_bytes);
    }
    queue_.pass_up(flow.skb);
    flow.skb = nullptr;
    --held_;
}

void SegmentMerger::flush_flow_of(void* packet, unsigned int bytes)
{
    const auto& ip = *static_cast<const Ipv4Header*>(packet);
    if (held_ == 0 || bytes < sizeof(Ipv4Header) || ip.version_and_length >> 4 != 4 || ip.protocol != protocol_tcp)
        return;
    if (const Segment segment(packet, bytes); segment.is_tcp()) {
        if (Flow* const flow = flow_of(segment))
            deliver(*flow);
        return;
    }
    for (Flow& flow : flows_)
        if (flow.skb && same<address_bytes>(&flow.first.ip->source, &ip.source))
            deliver(flow);
}

void SegmentMerger::deliver_all()
{
    for (Flow* flow = flows_; held_ != 0; ++flow)
        if (flow->skb)
            deliver(*flow);
}

} // namespace ipoib
