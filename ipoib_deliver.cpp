// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The end of every receive path: a message becomes a packet and is passed to the stack.
#include <cstring>

#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <ipoib/rx_queue.hpp>

namespace ipoib {

sk_buff* RxQueue::allocate(unsigned int bytes)
{
    sk_buff* skb = shim_napi_alloc_skb(napi_.native(), ip_padding + bytes);
    if (skb && ip_padding) [[likely]]
        shim_skb_reserve(skb, ip_padding);
    return skb;
}

sk_buff* RxQueue::copy(const void* message, unsigned int bytes)
{
    sk_buff* skb = allocate(sizeof(HwAddr) + bytes);
    if (!skb) [[unlikely]]
        return nullptr;
    copied.add();
    shim_skb_put(skb, sizeof(HwAddr) + bytes);
    std::memcpy(shim_skb_data(skb) + sizeof(HwAddr), message, bytes);
    return skb;
}

void RxQueue::split(sk_buff* skb, std::byte* message, unsigned int header_bytes, unsigned int bytes,
                    unsigned int buffer_bytes)
{
    shim_skb_mark_for_recycle(skb);
    shim_skb_put(skb, sizeof(HwAddr) + header_bytes);
    std::memcpy(shim_skb_data(skb) + sizeof(HwAddr), message, header_bytes);
    shim_helper_skb_add_rx_frag(skb, message + header_bytes, bytes - header_bytes, buffer_bytes);
}

void RxQueue::finish(sk_buff* skb, shim_packet_type type, bool verified)
{
    // Sniffers see a hard header with an empty destination as link header.
    std::memset(shim_skb_data(skb), 0, sizeof(HwAddr));
    const auto& header = *reinterpret_cast<const HardHeader*>(shim_skb_data(skb));
    shim_skb_set_protocol(skb, header.encapsulation.type.value());
    shim_helper_skb_pull_mac_header(skb, sizeof(HardHeader));
    shim_skb_set_device(skb, interface_.dev());
    shim_skb_record_rx_queue(skb, static_cast<std::uint16_t>(index_));
    shim_skb_set_packet_type(skb, type);
    if (verified)
        shim_skb_set_checksum_unnecessary(skb);
    packets.add();
    bytes.add(shim_skb_len(skb));
    if (type == SHIM_PACKET_MULTICAST)
        multicast.add();
}

bool RxQueue::merges() const { return !alone_ && shim_netdev_has_gro_hw(interface_.dev()); }

SegmentMerger::Segment RxQueue::read_segment(void* message, unsigned int bytes, bool& verified)
{
    auto* const encapsulation = static_cast<Encapsulation*>(message);
    if (encapsulation->type.value() != static_cast<std::uint16_t>(EtherType::ipv4))
        return {};
    SegmentMerger::Segment segment(encapsulation + 1, bytes - static_cast<unsigned int>(sizeof(Encapsulation)));
    if (segment.mergeable) {
        verified = verified || segment.tcp_checksum_holds();
        // The merged packet gets a new checksum of its IP header.
        segment.mergeable = verified && segment.ip_checksum_holds();
    }
    return segment;
}

sk_buff* RxQueue::start_packet(SegmentMerger::Segment& segment, unsigned int buffer_bytes)
{
    const auto header_bytes = static_cast<unsigned int>(sizeof(Encapsulation)) + segment.header_bytes;
    sk_buff* skb = allocate(sizeof(HwAddr) + header_bytes);
    if (!skb) [[unlikely]]
        return nullptr;
    split(skb, reinterpret_cast<std::byte*>(segment.ip) - sizeof(Encapsulation), header_bytes,
          header_bytes + segment.data_bytes, buffer_bytes);
    segment.move_headers(shim_skb_data(skb) + sizeof(HardHeader));
    return skb;
}

void RxQueue::count_merged(unsigned int ip_bytes)
{
    packets.add();
    bytes.add(ip_bytes);
    merged.add();
}

void RxQueue::pass_up_behind_held(sk_buff* skb, void* ip, unsigned int bytes)
{
    merger.flush_flow_of(ip, bytes);
    pass_up(skb);
}

void RxQueue::pass_up_or_hold(sk_buff* skb, const SegmentMerger::Segment& segment, void* ip, unsigned int bytes)
{
    if (!segment.is_tcp())
        pass_up_behind_held(skb, ip, bytes);
    else if (segment.starts_packet())
        merger.hold(segment, skb);
    else
        pass_up(skb);
}

} // namespace ipoib
