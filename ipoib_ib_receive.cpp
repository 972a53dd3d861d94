// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The datagram receive path (RFC 4391): the receive ring of the UD queue pair, from a completion to the stack.

#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <ipoib/wr_id.hpp>
#include <kernel/log.hpp>
#include <shim/trace.h>

namespace ipoib {

kernel::Status UdReceiveRing::create(unsigned int size)
{
    size_ = size;
    reposts_.set_batch(size);
    if (!slots_.allocate(size))
        return kernel::no_memory;
    return {};
}

kernel::Status UdReceiveRing::fill(unsigned int ib_mtu)
{
    ib_mtu_ = ib_mtu;
    const unsigned int wire_bytes = sizeof(Grh) + ib_mtu;
    buffer_bytes_ =
        datagram_buffer(shim_page_size(), shim_skb_buffer_headroom() + wire_bytes + shim_skb_buffer_tailroom());
    TRY(pool_.create(interface_.dev(), queue_.napi().native(), size_, buffer_bytes_));
    for (unsigned int i = 0; i < size_; ++i) {
        Slot& slot = slots_[i];
        slot.sge.length = wire_bytes;
        slot.sge.lkey = interface_.queues.lkey();
        shim_recv_wr_init(slot.native(), WrId::of(WrId::Kind::ud, i), &slot.sge, 1);
        if (!refill(slot)) {
            log_warning(interface_.dev(), "no memory for receive buffer %u of %u", i, size_);
            return kernel::no_memory;
        }
        (void)reposts_.add(slot.native());
    }
    return post();
}

void UdReceiveRing::empty()
{
    reposts_.reset();
    if (!pool_)
        return;
    for (unsigned int i = 0; i < size_; ++i) {
        Slot& slot = slots_[i];
        if (!slot.buffer)
            continue;
        shim_dma_unmap_from_device(interface_.ca(), slot.sge.address, slot.sge.length);
        pool_.put(slot.buffer, false);
        slot.buffer = nullptr;
    }
    pool_.destroy();
}

bool UdReceiveRing::refill(Slot& slot)
{
    std::byte* const buffer = pool_.allocate();
    if (!buffer)
        return false;
    const std::uint64_t address =
        shim_dma_map_from_device(interface_.ca(), buffer + shim_skb_buffer_headroom(), slot.sge.length);
    if (shim_dma_mapping_error(interface_.ca(), address)) {
        pool_.put(buffer, false);
        return false;
    }
    slot.buffer = buffer;
    slot.sge.address = address;
    return true;
}

void UdReceiveRing::repost(Slot& slot)
{
    if (reposts_.add(slot.native()) && !post().ok()) [[unlikely]]
        interface_.state.restart_queues();
}

kernel::Status UdReceiveRing::post()
{
    queue_.doorbells.add();
    const int error = reposts_.post([this](shim_recv_wr* first, shim_recv_wr** refused) {
        return shim_helper_post_recv(interface_.queues.qp(), first, refused);
    });
    if (error) [[unlikely]]
        log_warning(interface_.dev(), "post_recv failed, error %d", error);
    return error;
}

bool UdReceiveRing::sent_by_ourselves(const shim_wc* wc, const Grh& grh) const
{
    if (shim_wc_source_qpn(wc) != interface_.identity.qpn() || shim_wc_slid(wc) != interface_.identity.lid())
        return false;
    return grh.sgid.same_interface_id(interface_.identity.gid());
}

void UdReceiveRing::complete(const shim_wc* wc)
{
    const std::uint32_t index = WrId::index(wc);
    if (index >= size_) [[unlikely]] {
        log_warning(interface_.dev(), "receive completion for index %u of %u", index, size_);
        return;
    }
    log_data(interface_.dev(), "recv completion: id %u, status: %d", index, shim_wc_status(wc));
    reposts_.completed();
    Slot& slot = slots_[index];
    if (!shim_wc_ok(wc)) [[unlikely]] {
        // Out of service: the buffer stays in its slot until empty().
        if (shim_wc_flushed(wc))
            return;
        log_warning(interface_.dev(), "failed recv event (status=%d, wrid=%u vend_err %#x)", shim_wc_status(wc), index,
                    shim_wc_vendor_error(wc));
        queue_.errors.add();
        repost(slot);
        return;
    }
    const unsigned int wire_bytes = shim_wc_bytes(wc);
    if (wire_bytes < sizeof(Grh) + sizeof(Encapsulation) || wire_bytes > slot.sge.length) [[unlikely]] {
        queue_.errors.add();
        repost(slot);
        return;
    }
    std::byte* const buffer = slot.buffer;
    const std::uint64_t mapped = slot.sge.address;
    if (wire_bytes <= sizeof(Grh) + RxQueue::copybreak) {
        shim_dma_sync_for_cpu(interface_.ca(), mapped, wire_bytes);
        deliver_copy(buffer, wc);
        shim_dma_sync_for_device(interface_.ca(), mapped, wire_bytes);
        repost(slot);
        return;
    }
    if (!refill(slot)) [[unlikely]] {
        queue_.dropped.add();
        shim_trace_ring(interface_.dev(), "receive", "no memory", outstanding(), size_);
        repost(slot);
        return;
    }
    shim_dma_unmap_from_device(interface_.ca(), mapped, slot.sge.length);
    repost(slot);
    if (!deliver_buffer(buffer, wc))
        pool_.put(buffer, true);
}

sk_buff* UdReceiveRing::build(std::byte* buffer, unsigned int bytes)
{
    sk_buff* skb = shim_helper_napi_build_skb(buffer, buffer_bytes_);
    if (!skb) [[unlikely]]
        return nullptr;
    // The GRH's last bytes become the link header.
    shim_skb_reserve(skb, shim_skb_buffer_headroom() + sizeof(Grh) - sizeof(HwAddr));
    shim_skb_put(skb, sizeof(HwAddr) + bytes);
    return skb;
}

inline std::uint8_t* UdReceiveRing::Datagram::ip() const { return message + sizeof(Encapsulation); }
inline unsigned int UdReceiveRing::Datagram::ip_bytes() const { return message_bytes - sizeof(Encapsulation); }

inline bool UdReceiveRing::read(Datagram& datagram, std::byte* buffer, const shim_wc* wc) const
{
    auto* const start = reinterpret_cast<std::uint8_t*>(buffer) + shim_skb_buffer_headroom();
    const Grh& grh = *reinterpret_cast<const Grh*>(start);
    const bool to_group = shim_wc_has_grh(wc) && grh.dgid.multicast();
    if (to_group && sent_by_ourselves(wc, grh))
        return false;
    datagram.type = SHIM_PACKET_HOST;
    if (to_group)
        datagram.type =
            grh.dgid == interface_.identity.broadcast().gid() ? SHIM_PACKET_BROADCAST : SHIM_PACKET_MULTICAST;
    datagram.message = start + sizeof(Grh);
    datagram.message_bytes = shim_wc_bytes(wc) - static_cast<unsigned int>(sizeof(Grh));
    datagram.verified = shim_wc_checksum_ok(wc) && shim_netdev_has_rxcsum(interface_.dev());
    return true;
}

void UdReceiveRing::deliver_copy(std::byte* buffer, const shim_wc* wc)
{
    Datagram datagram;
    if (!read(datagram, buffer, wc))
        return;
    sk_buff* skb = queue_.copy(datagram.message, datagram.message_bytes);
    if (!skb) [[unlikely]] {
        queue_.dropped.add();
        return;
    }
    queue_.finish(skb, datagram.type, datagram.verified);
    queue_.pass_up_behind_held(skb, datagram.ip(), datagram.ip_bytes());
}

bool UdReceiveRing::deliver_buffer(std::byte* buffer, const shim_wc* wc)
{
    Datagram datagram;
    if (!read(datagram, buffer, wc))
        return false;
    SegmentMerger::Segment segment;
    if (datagram.type == SHIM_PACKET_HOST && queue_.merges()) {
        segment = queue_.read_segment(datagram.message, datagram.message_bytes, datagram.verified);
        if (SegmentMerger::Flow* const flow = queue_.merger.find_or_flush(segment)) {
            queue_.merger.append(*flow, segment, buffer_bytes_);
            return true;
        }
    }
    sk_buff* skb =
        segment.starts_packet() ? queue_.start_packet(segment, buffer_bytes_) : build(buffer, datagram.message_bytes);
    if (!skb) [[unlikely]] {
        queue_.dropped.add();
        return false;
    }
    queue_.finish(skb, datagram.type, datagram.verified);
    queue_.pass_up_or_hold(skb, segment, datagram.ip(), datagram.ip_bytes());
    return true;
}

} // namespace ipoib
