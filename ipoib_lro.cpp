// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Large receive offload (ethtool -K lro): merges received TCP segments.
#include <cstring>

#include <ipoib/rx_queue.hpp>
#include <ipoib/segment_merger.hpp>
#include <kernel/sequence.hpp>
#include <shim/skbuff.h>

namespace ipoib {

namespace {

constexpr std::uint8_t protocol_tcp = 6;
// Both IPv4 addresses, and both TCP ports, each pair read in one access.
constexpr unsigned int address_bytes = 8, port_bytes = 4;

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
        times = reinterpret_cast<TcpTimestamps*>(tcp + 1);
        if (times->preamble.value() != TcpTimestamps::usual_preamble)
            return;
    } else if (tcp_bytes != sizeof(TcpHeader)) {
        return;
    }
    plain = (tcp->flags & ~tcp_psh) == tcp_ack;
}

SegmentMerger::Flow* SegmentMerger::flow_of(const Segment& segment)
{
    for (Flow& flow : flows_)
        if (flow.skb && std::memcmp(&flow.first.ip->source, &segment.ip->source, address_bytes) == 0 &&
            std::memcmp(&flow.first.tcp->source, &segment.tcp->source, port_bytes) == 0)
            return &flow;
    return nullptr;
}

bool SegmentMerger::fits(const Flow& flow, const Segment& segment)
{
    constexpr unsigned int max_bytes = 65535;
    const Segment& first = flow.first;
    const auto not_before = [](kernel::Be32 later, kernel::Be32 earlier) {
        return kernel::not_before(later.value(), earlier.value());
    };
    return segment.plain && segment.tcp->sequence.value() == flow.next_sequence &&
           segment.tcp->length == first.tcp->length && segment.header_bytes == first.header_bytes &&
           segment.data_bytes <= first.data_bytes &&
           first.header_bytes + flow.data_bytes + segment.data_bytes <= max_bytes &&
           segment.ip->service == first.ip->service && segment.ip->fragment.value() == first.ip->fragment.value() &&
           segment.ip->time_to_live == first.ip->time_to_live &&
           not_before(segment.tcp->acknowledgement, first.tcp->acknowledgement) &&
           (!first.times || not_before(segment.times->value, first.times->value));
}

bool SegmentMerger::append(const Segment& segment, unsigned int buffer_bytes)
{
    Flow* flow = segment.of_flow() ? flow_of(segment) : nullptr;
    if (!flow)
        return false;
    if (!fits(*flow, segment)) {
        deliver(*flow);
        return false;
    }
    shim_helper_skb_add_rx_frag(flow->skb, reinterpret_cast<std::byte*>(segment.ip) + segment.header_bytes,
                                segment.data_bytes, buffer_bytes);
    ++flow->segments;
    flow->data_bytes += segment.data_bytes;
    flow->next_sequence += segment.data_bytes;
    // The first segment's headers get the values of the last.
    TcpHeader& tcp = *flow->first.tcp;
    tcp.acknowledgement = segment.tcp->acknowledgement;
    tcp.window = segment.tcp->window;
    tcp.flags |= segment.tcp->flags;
    if (flow->first.times)
        *flow->first.times = *segment.times;
    // The sender paused here, or the packet is full.
    if (segment.tcp->flags & tcp_psh || segment.data_bytes < flow->first.data_bytes || flow->segments == max_segments)
        deliver(*flow);
    return true;
}

bool SegmentMerger::hold(const Segment& segment, sk_buff* skb)
{
    if (!segment.plain || segment.tcp->flags & tcp_psh)
        return false;
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
        .next_sequence = segment.tcp->sequence.value() + segment.data_bytes,
    };
    return true;
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

void SegmentMerger::make_way(const void* packet, unsigned int bytes)
{
    const auto& ip = *static_cast<const Ipv4Header*>(packet);
    if (held_ == 0 || bytes < sizeof(Ipv4Header) || ip.version_and_length >> 4 != 4 || ip.protocol != protocol_tcp)
        return;
    for (Flow& flow : flows_)
        if (flow.skb && std::memcmp(&flow.first.ip->source, &ip.source, address_bytes) == 0)
            deliver(flow);
}

void SegmentMerger::deliver_all()
{
    for (Flow* flow = flows_; held_ != 0; ++flow)
        if (flow->skb)
            deliver(*flow);
}

} // namespace ipoib
