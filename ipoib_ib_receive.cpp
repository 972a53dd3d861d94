// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The datagram data path (RFC 4391): received datagrams and their buffers. Nothing here takes a lock, and buffers alone
// are allocated.
#include <algorithm>

#include <ipoib/datagram.hpp>
#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <kernel/log.hpp>
#include <shim/trace.h>

namespace ipoib {

RxRing::RxRing(Interface& interface) : interface_(interface)
{
    shim_dim_init(
        dim(),
        [](void* context, unsigned int usecs, unsigned int frames) {
            (void)static_cast<Interface*>(context)->moderate({usecs, frames}).ok();
        },
        &interface);
}

kernel::Status RxRing::create(unsigned int size)
{
    size_ = size;
    reposts_.set_batch(size);
    if (!slots_.allocate(size))
        return kernel::no_memory;
    return {};
}

kernel::Status RxRing::fill(unsigned int ib_mtu)
{
    ib_mtu_ = ib_mtu;
    const unsigned int wire_bytes = sizeof(Grh) + ib_mtu;
    shape_ = DatagramBuffer::of(shim_page_size(), shim_skb_buffer_headroom() + wire_bytes + shim_skb_buffer_tailroom());
    pool_ = shim_pool_create((size_ + shape_.per_page - 1) / shape_.per_page, shape_.page_order, shape_.is_piece());
    if (int error = shim_pointer_error(pool_)) {
        pool_ = nullptr;
        return error;
    }
    for (unsigned int i = 0; i < size_; ++i) {
        Slot& slot = slots_[i];
        slot.sge.length = wire_bytes;
        slot.sge.lkey = interface_.lkey();
        shim_recv_wr_init(slot.native(), i, &slot.sge, 1);
        if (!refill(slot)) {
            log_warning(interface_.dev(), "no memory for receive buffer %u of %u", i, size_);
            return kernel::no_memory;
        }
        (void)reposts_.add(slot.native());
    }
    return post();
}

void RxRing::start() { napi_.start(); }

void RxRing::stop()
{
    napi_.disable();
    shim_dim_cancel(dim());
}

void RxRing::empty()
{
    reposts_.reset();
    if (!pool_)
        return;
    for (unsigned int i = 0; i < size_; ++i) {
        Slot& slot = slots_[i];
        if (!slot.buffer)
            continue;
        shim_dma_unmap_from_device(interface_.ca(), slot.sge.address, slot.sge.length);
        shim_pool_put(pool_, slot.buffer, false);
        slot.buffer = nullptr;
    }
    shim_pool_destroy(pool_);
    pool_ = nullptr;
}

bool RxRing::refill(Slot& slot)
{
    void* const memory = shape_.is_piece() ? shim_pool_get_piece(pool_, shape_.bytes) : shim_pool_get(pool_);
    if (!memory)
        return false;
    auto* const buffer = static_cast<std::byte*>(memory);
    const std::uint64_t address =
        shim_dma_map_from_device(interface_.ca(), buffer + shim_skb_buffer_headroom(), slot.sge.length);
    if (shim_dma_failed(interface_.ca(), address)) {
        shim_pool_put(pool_, buffer, false);
        return false;
    }
    slot.buffer = buffer;
    slot.sge.address = address;
    return true;
}

void RxRing::repost(Slot& slot)
{
    if (reposts_.add(slot.native()) && !post().ok()) [[unlikely]]
        interface_.restart_queues();
}

kernel::Status RxRing::post()
{
    doorbells.add();
    const int error = reposts_.post([this](shim_recv_wr* first, shim_recv_wr** refused) {
        return shim_post_recv(interface_.qp(), first, refused);
    });
    if (error) [[unlikely]]
        log_warning(interface_.dev(), "post_recv failed, error %d", error);
    return error;
}

bool RxRing::sent_by_ourselves(const shim_wc* wc, const Grh& grh) const
{
    if (shim_wc_source_qpn(wc) != interface_.qpn() || shim_wc_slid(wc) != interface_.lid())
        return false;
    return !shim_wc_has_grh(wc) || grh.sgid.same_interface_id(interface_.gid());
}

void RxRing::handle(const shim_wc* wc)
{
    const std::uint64_t index = shim_wc_id(wc);
    if (index & (PageRing::tag | Connections::drain_tag)) {
        interface_.connections.received(wc);
        return;
    }
    if (index >= size_) [[unlikely]] {
        log_warning(interface_.dev(), "receive completion for index %llu of %u", static_cast<unsigned long long>(index),
                    size_);
        return;
    }
    log_data(interface_.dev(), "recv completion: id %llu, status: %d", static_cast<unsigned long long>(index),
             shim_wc_status(wc));
    reposts_.completed();
    Slot& slot = slots_[index];
    if (!shim_wc_ok(wc)) [[unlikely]] {
        // Out of service: the buffer stays in its slot until empty().
        if (shim_wc_flushed(wc))
            return;
        log_warning(interface_.dev(), "failed recv event (status=%d, wrid=%llu vend_err %#x)", shim_wc_status(wc),
                    static_cast<unsigned long long>(index), shim_wc_vendor_error(wc));
        errors.add();
        repost(slot);
        return;
    }
    const unsigned int wire_bytes = shim_wc_bytes(wc);
    if (wire_bytes < sizeof(Grh) + sizeof(Encapsulation) || wire_bytes > slot.sge.length) [[unlikely]] {
        errors.add();
        repost(slot);
        return;
    }
    std::byte* const buffer = slot.buffer;
    const std::uint64_t mapped = slot.sge.address;
    // With LRO no message is copied: it appends a segment by its buffer.
    if (wire_bytes <= sizeof(Grh) + copybreak && !shim_netdev_lro(interface_.dev())) {
        shim_dma_sync_for_cpu(interface_.ca(), mapped, wire_bytes);
        (void)deliver(buffer, wc, true);
        shim_dma_sync_for_device(interface_.ca(), mapped, wire_bytes);
        repost(slot);
        return;
    }
    if (!refill(slot)) [[unlikely]] {
        dropped.add();
        shim_trace_ring(interface_.dev(), "receive", "no memory", outstanding(), size_);
        repost(slot);
        return;
    }
    shim_dma_unmap_from_device(interface_.ca(), mapped, slot.sge.length);
    repost(slot);
    if (!deliver(buffer, wc, false))
        shim_pool_put(pool_, buffer, true);
}

sk_buff* RxRing::allocate(unsigned int bytes)
{
    sk_buff* skb = shim_skb_alloc(napi_.native(), ip_padding + bytes);
    if (skb && ip_padding) [[likely]]
        shim_skb_reserve(skb, ip_padding);
    return skb;
}

sk_buff* RxRing::copy(const void* message, unsigned int bytes)
{
    sk_buff* skb = allocate(sizeof(HwAddr) + bytes);
    if (!skb) [[unlikely]]
        return nullptr;
    copied.add();
    shim_skb_put(skb, sizeof(HwAddr) + bytes);
    std::memcpy(shim_skb_data(skb) + sizeof(HwAddr), message, bytes);
    return skb;
}

void RxRing::pass_up_behind_held(sk_buff* skb, const void* ip, unsigned int bytes)
{
    merger_.make_way(ip, bytes);
    pass_up(skb);
}

sk_buff* RxRing::build(std::byte* buffer, unsigned int bytes)
{
    sk_buff* skb = shim_skb_build(buffer, shape_.bytes);
    if (!skb) [[unlikely]]
        return nullptr;
    // The GRH's last bytes become the link header.
    shim_skb_reserve(skb, shim_skb_buffer_headroom() + sizeof(Grh) - sizeof(HwAddr));
    shim_skb_put(skb, sizeof(HwAddr) + bytes);
    return skb;
}

bool RxRing::deliver(std::byte* buffer, const shim_wc* wc, bool stays)
{
    auto* const start = reinterpret_cast<std::uint8_t*>(buffer) + shim_skb_buffer_headroom();
    const Grh& grh = *reinterpret_cast<const Grh*>(start);
    const bool to_group = shim_wc_has_grh(wc) && grh.dgid.multicast();
    if (to_group && sent_by_ourselves(wc, grh))
        return false;
    shim_packet_type type = SHIM_PACKET_HOST;
    if (to_group)
        type = grh.dgid == interface_.broadcast().gid() ? SHIM_PACKET_BROADCAST : SHIM_PACKET_MULTICAST;

    std::uint8_t* const message = start + sizeof(Grh);
    const unsigned int message_bytes = shim_wc_bytes(wc) - sizeof(Grh);
    const auto& encapsulation = *reinterpret_cast<const Encapsulation*>(message);
    std::uint8_t* const ip = message + sizeof(Encapsulation);
    const unsigned int ip_bytes = message_bytes - sizeof(Encapsulation);
    const bool verified = shim_wc_checksum_ok(wc) && shim_netdev_rx_checksum(interface_.dev());
    SegmentMerger::Segment segment;
    if (!stays && verified && type == SHIM_PACKET_HOST && shim_netdev_lro(interface_.dev()) &&
        encapsulation.type.value() == static_cast<std::uint16_t>(EtherType::ipv4)) {
        segment = SegmentMerger::Segment(ip, ip_bytes);
        if (merger_.append(segment, shape_.bytes)) {
            packets.add();
            bytes.add(ip_bytes);
            merged.add();
            return true;
        }
    }

    sk_buff* skb = stays ? copy(message, message_bytes) : build(buffer, message_bytes);
    if (!skb) [[unlikely]] {
        dropped.add();
        return false;
    }
    // The link header that sniffers see is a hard header with no destination.
    std::memset(shim_skb_data(skb), 0, sizeof(HwAddr));
    shim_skb_set_protocol(skb, encapsulation.type.value());
    shim_skb_set_mac_header(skb, sizeof(HardHeader));
    shim_skb_set_device(skb, interface_.dev());
    shim_skb_set_packet_type(skb, type);
    if (verified)
        shim_skb_checksum_verified(skb);

    packets.add();
    bytes.add(ip_bytes);
    if (type == SHIM_PACKET_MULTICAST)
        multicast.add();
    if (!segment.of_flow())
        pass_up_behind_held(skb, ip, ip_bytes);
    else if (!merger_.hold(segment, skb))
        pass_up(skb);
    return true;
}

int RxRing::poll(int budget)
{
    int done = 0;
    while (done < budget) {
        const int wanted = std::min(Completions::most, budget - done);
        const int got = shim_cq_poll(interface_.recv_cq(), wanted, completions_.first());
        alone_ = done == 0 && got == 1;
        for (int i = 0; i < got; ++i)
            handle(completions_.at(i));
        if (got > 0)
            done += got;
        if (got < wanted)
            break;
    }
    merger_.deliver_all();
    if (interface_.tx.outstanding() != 0)
        interface_.tx.napi().schedule();
    if (done == budget)
        return done;
    if (adaptive())
        shim_dim_look(dim(), static_cast<std::uint16_t>(events.value()), packets.value(), bytes.value());
    if (napi_.complete(done) && shim_cq_arm(interface_.recv_cq()))
        napi_.schedule();
    return done;
}

} // namespace ipoib
