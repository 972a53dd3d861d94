// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The datagram transmit path (RFC 4391): the send ring of a UD queue pair, from a packet with a known destination to
// its completion.
#include <algorithm>

#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <ipoib/wr_id.hpp>
#include <kernel/log.hpp>

namespace ipoib {

kernel::Status UdSendRing::create(unsigned int size, unsigned int sges)
{
    // The queue is closed.
    kernel::transmit_lock.assume_excluded();
    sges_ = sges;
    // Does not begin at 0 again: the Reaper may wait for an index of the former ring.
    index_.reset(size, index_.head());
    unposted_ = index_.head();
    if (!slots_.allocate(size))
        return kernel::no_memory;
    for (unsigned int i = 0; i < size; ++i) {
        slots_[i].set_lkey(interface_.queues.lkey());
    }
    min_free_ = 1;
    if (interface_.driver_tso()) {
        min_free_ = std::clamp(size / 4, 1U, max_segments);
        // All rings have this size.
        if (queue_.index() == 0)
            limit_segments(min_free_);
        return headers_.allocate(size);
    }
    return {};
}

void UdSendRing::limit_segments(unsigned int limit)
{
    // A limit that this ring did not set is the user's choice, or the kernel's default.
    if (const unsigned int now = shim_netdev_gso_max_segs(interface_.dev()); now != max_segments_)
        wanted_segments_ = now;
    max_segments_ = std::min(wanted_segments_, limit);
    // This lowers the stack's limit, but never raises it.
    shim_netif_set_tso_max_segs(interface_.dev(), limit);
    shim_netdev_set_gso_max_segs(interface_.dev(), max_segments_);
}

void UdSendRing::destroy()
{
    min_free_ = 0;
    slots_.reset();
    headers_.reset();
}

void UdSendRing::empty()
{
    // The queue is closed, and its poll stopped.
    kernel::transmit_lock.assume_excluded();
    kernel::transmit_poll.assume_excluded();
    if (!index_.empty())
        finish_to(index_.head(), 0);
    unposted_ = index_.head();
    refused_.store(0);
}

void UdSendRing::reject(sk_buff* skb, unsigned int frame_bytes, std::uint32_t qpn)
{
    const unsigned int max_frame = interface_.mtu.max_frame();
    // In connected mode the interface's MTU is larger than a datagram, and the sender of a unicast packet gets an ICMP
    // error.
    if (!interface_.settings.connected() || qpn == HwAddr::multicast_qpn)
        log_warning(interface_.dev(), "packet len %u (> %u) too long to send, dropping", frame_bytes, max_frame);
    interface_.pmtu.reject(skb, ip_mtu(max_frame));
}

void UdSendRing::send(sk_buff* skb, ib_ah* ah, std::uint32_t qpn)
{
    const unsigned int bytes = shim_skb_len(skb);
    // 0 unless the packet is to be segmented: the bytes of data in each segment.
    const unsigned int segment_bytes = shim_skb_gso_size(skb);
    const unsigned int header_bytes = segment_bytes ? shim_skb_tcp_headers(skb) : 0;
    const unsigned int frame_bytes = segment_bytes ? header_bytes + segment_bytes : bytes;
    if (frame_bytes > interface_.mtu.max_frame()) [[unlikely]] {
        reject(skb, frame_bytes, qpn);
        return;
    }
    if (interface_.rdma_netdev.present()) [[unlikely]] {
        interface_.rdma_netdev.send(skb, ah, qpn);
        return;
    }
    if (segment_bytes && !shim_pskb_may_pull(skb, header_bytes)) [[unlikely]] {
        drop(skb);
        return;
    }
    if (segment_bytes && interface_.driver_tso()) {
        send_segments(skb, header_bytes, segment_bytes, ah, qpn);
        return;
    }
    const bool checksum = shim_skb_checksum_partial(skb);
    const std::uint32_t here = index_.head();
    MappedPacket& slot = slots_[index_.slot(here)];
    if (index_.free() == 0 || queue_.closed() ||
        (checksum && !interface_.hca_checksums() && shim_helper_skb_checksum(skb) != 0) ||
        !slot.map(interface_.ca(), skb, header_bytes, sges_)) [[unlikely]] {
        drop(skb);
        return;
    }
    slot.queued_bytes = bytes;
    slot.packets = 1;
    slot.payload_bytes = bytes - sizeof(Encapsulation);
    write_request(slot, here, ah, qpn, checksum && interface_.hca_checksums());
    if (segment_bytes) {
        const unsigned int data_bytes = bytes - header_bytes;
        slot.packets = (data_bytes + segment_bytes - 1) / segment_bytes;
        slot.payload_bytes = data_bytes + slot.packets * (header_bytes - sizeof(Encapsulation));
        segmented.add(slot.packets);
        shim_send_wr_set_segments(slot.native(), shim_skb_data(skb), header_bytes, segment_bytes);
    }
    shim_helper_skb_tx_timestamp(skb);
    log_data(interface_.dev(), "sending packet, length=%u address=%p dqpn=0x%06x", bytes, static_cast<void*>(ah), qpn);
    index_.produce();
    if (queue_.account(bytes, shim_netdev_xmit_more()))
        ring_doorbell();
}

inline void UdSendRing::write_request(MappedPacket& slot, std::uint32_t here, ib_ah* ah, std::uint32_t qpn,
                                      bool checksum)
{
    shim_send_wr_init(slot.native(), WrId::of(WrId::Kind::ud, here), slot.sge);
    shim_send_wr_set_datagram(slot.native(), slot.sges, ah, qpn, interface_.link.qkey());
    shim_send_wr_set_flags(slot.native(), here % signal_interval == signal_interval - 1, checksum);
    shim_send_wr_set_next(slot.native(), nullptr);
    if (here != unposted_)
        shim_send_wr_set_next(slots_[index_.slot(here - 1)].native(), slot.native());
}

bool UdSendRing::map_segments(Segmenter& segmenter, std::uint32_t count)
{
    const std::uint32_t first = index_.head();
    for (std::uint32_t i = 0; i < count; ++i) {
        const unsigned int slot = index_.slot(first + i);
        if (segmenter.next(interface_.ca(), slots_[slot], headers_[slot], sges_)) [[likely]]
            continue;
        while (i-- > 0)
            slots_[index_.slot(first + i)].unmap(interface_.ca());
        return false;
    }
    return true;
}

// Not inlined, to keep its stack frame out of the fast path.
[[gnu::noinline]] void UdSendRing::send_segments(sk_buff* skb, unsigned int header_bytes, unsigned int segment_bytes,
                                                 ib_ah* ah, std::uint32_t qpn)
{
    Segmenter segmenter(skb, header_bytes, segment_bytes);
    const std::uint32_t first = index_.head(), count = segmenter.count();
    bool mapped = false;
    if (count <= index_.free() && header_bytes <= SegmentHeaders::bytes_each && !queue_.closed()) [[likely]]
        mapped = map_segments(segmenter, count);
    // A segment in more pieces than the HCA takes elements is made linear.
    if (segmenter.scattered() && shim_skb_linearize(skb) == 0) [[unlikely]] {
        Segmenter again(skb, header_bytes, segment_bytes);
        mapped = map_segments(again, count);
    }
    if (!mapped) [[unlikely]] {
        drop(skb);
        return;
    }
    const unsigned int bytes = shim_skb_len(skb);
    for (std::uint32_t i = 0; i < count; ++i) {
        MappedPacket& slot = slots_[index_.slot(first + i)];
        slot.packets = 1;
        slot.queued_bytes = i + 1 == count ? bytes : 0;
        write_request(slot, first + i, ah, qpn, false);
    }
    segmented.add(count);
    shim_helper_skb_tx_timestamp(skb);
    log_data(interface_.dev(), "sending packet, length=%u segments=%u address=%p dqpn=0x%06x", bytes, count,
             static_cast<void*>(ah), qpn);
    index_.produce(count);
    if (queue_.account(bytes, shim_netdev_xmit_more()))
        ring_doorbell();
}

void UdSendRing::drop(sk_buff* skb) { interface_.drop(skb, queue_.drop_reason()); }

void UdSendRing::ring_doorbell()
{
    const std::uint32_t end = index_.head();
    if (unposted_ == end)
        return;
    shim_send_wr_signal(slots_[index_.slot(end - 1)].native());
    doorbells.add();
    shim_send_wr* refused;
    const int error = shim_helper_post_send(interface_.queues.qp_of(queue_.index()),
                                            slots_[index_.slot(unposted_)].native(), &refused);
    if (error) [[unlikely]] {
        // The HCA may report no completion for unsignaled sends before the failed one, so all slots remain in use until
        // the queues are restarted.
        log_warning(interface_.dev(), "post_send failed, error %d", error);
        while (unposted_ != end && slots_[index_.slot(unposted_)].native() != refused)
            ++unposted_;
        refused_.store(end - unposted_);
        queue_.close();
        shim_netif_tx_stop_queue(interface_.dev(), queue_.index());
        interface_.state.restart_queues();
    }
    unposted_ = end;
    queue_.expect_completions();
}

void UdSendRing::finish_to(std::uint32_t end, int budget)
{
    std::uint32_t count = 0, queued = 0;
    std::uint64_t payload = 0;
    for (std::uint32_t i = index_.tail(); i != end; ++i) {
        MappedPacket& slot = slots_[index_.slot(i)];
        slot.unmap(interface_.ca());
        count += slot.packets;
        queued += slot.queued_bytes;
        payload += slot.payload_bytes;
        if (slot.skb) [[likely]]
            shim_napi_consume_skb(slot.skb, budget);
    }
    if (!count)
        return;
    index_.consume_to(end);
    queue_.finished(count, payload, queued);
}

void UdSendRing::complete(const shim_wc* wc, int budget)
{
    const std::uint32_t index = WrId::index(wc);
    if (!index_.holds(index)) [[unlikely]] {
        log_warning(interface_.dev(), "send completion for index %u, of %u to %u", index, index_.tail(), index_.head());
        return;
    }
    if (!shim_wc_ok(wc)) [[unlikely]] {
        queue_.errors.add();
        if (!shim_wc_flushed(wc)) {
            log_warning(interface_.dev(), "failed send event (status=%d, wrid=%u vend_err %#x)", shim_wc_status(wc),
                        index, shim_wc_vendor_error(wc));
            interface_.queues.recover();
        }
    }
    // Sends complete in order: all before this one are complete, too.
    finish_to(index + 1, budget);
}

} // namespace ipoib
