// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The datagram data path (RFC 4391): sending and its completions. Whom a packet goes to is decided in ipoib_path.cpp
// and ipoib_multicast.cpp; nothing here takes a lock or allocates.
#include <algorithm>

#include <ipoib/datagram.hpp>
#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <kernel/log.hpp>
#include <shim/trace.h>

namespace ipoib {

bool MappedPacket::map_pieces(ib_device* ca, sk_buff* packet, unsigned int skip, unsigned int most)
{
    linear = shim_skb_headlen(packet) > skip ? 1 : 0;
    if (linear + shim_skb_frags(packet) > most) {
        if (shim_skb_linearize(packet) != 0)
            return false;
        linear = 1;
    }
    const unsigned int frags = shim_skb_frags(packet);
    skb = packet;
    sges = 0;
    if (linear && !map_linear(ca, skip)) [[unlikely]]
        return false;
    for (unsigned int frag = 0; frag < frags; ++frag) {
        sge[sges].address = shim_dma_map_frag(ca, packet, frag);
        sge[sges].length = shim_skb_frag_len(packet, frag);
        if (shim_dma_failed(ca, sge[sges].address)) [[unlikely]] {
            unmap_pieces(ca);
            return false;
        }
        ++sges;
    }
    return true;
}

void MappedPacket::unmap_pieces(ib_device* ca)
{
    for (std::uint32_t i = 0; i < linear; ++i)
        shim_dma_unmap_to_device(ca, sge[i].address, sge[i].length);
    for (std::uint32_t i = linear; i < sges; ++i)
        shim_dma_unmap_frag(ca, sge[i].address, sge[i].length);
}

// Transmit

kernel::Status TxRing::create(unsigned int size, unsigned int sges)
{
    sges_ = sges;
    index_.reset(size);
    unposted_ = 0;
    if (!slots_.allocate(size))
        return kernel::no_memory;
    for (unsigned int i = 0; i < size; ++i) {
        slots_[i].set_lkey(interface_.lkey());
    }
    least_room_ = 1;
    if (interface_.cuts_segments()) {
        least_room_ = std::clamp(size / 4, 1U, most_segments);
        limit_segments(least_room_);
        return headers_.allocate(size);
    }
    return {};
}

void TxRing::limit_segments(unsigned int limit)
{
    // A number that this ring did not set is the user's choice, or the kernel's default.
    if (const unsigned int now = shim_netdev_max_segments(interface_.dev()); now != max_segments_)
        wanted_segments_ = now;
    max_segments_ = std::min(wanted_segments_, limit);
    // The limit lowers the stack's number and never raises it.
    shim_netdev_limit_segments(interface_.dev(), limit);
    shim_netdev_set_max_segments(interface_.dev(), max_segments_);
}

void TxRing::destroy()
{
    slots_.reset();
    headers_.reset();
}

void TxRing::start()
{
    closed_.store(false);
    armed_.store(false);
    napi_.start();
    // Until it has seen a send there is no place to be stalled at.
    stalled_at_ = index_.tail() - 1;
    watch_.queue(reap_queue, kernel::seconds(stall_seconds));
}

void TxRing::stop()
{
    watch_.cancel();
    napi_.disable();
    // The end of a poll, behind its completion, may run still, and queue the item.
    shim_rcu_synchronize();
    reap_.cancel();
    reap_queued_.store(false);
}

void TxRing::empty()
{
    if (const unsigned int left = posted())
        log_warning(interface_.dev(), "timing out; %u sends not completed", left);
    if (!index_.empty())
        finish_to(index_.head(), 0);
    unposted_ = index_.head();
    refused_.store(0);
    shim_tx_queue_reset(interface_.dev());
}

void TxRing::send(sk_buff* skb, ib_ah* ah, std::uint32_t qpn)
{
    const unsigned int bytes = shim_skb_len(skb);
    // Of a packet that the HCA cuts into segments, each of these headers and so many bytes.
    const unsigned int segment_bytes = shim_skb_segment_bytes(skb);
    const unsigned int header_bytes = segment_bytes ? shim_skb_tcp_headers(skb) : 0;
    const unsigned int frame_bytes = segment_bytes ? header_bytes + segment_bytes : bytes;
    if (frame_bytes > interface_.longest_frame()) [[unlikely]] {
        // In connected mode the interface's MTU is the connections'.
        if (!interface_.connected())
            log_warning(interface_.dev(), "packet len %u (> %u) too long to send, dropping", frame_bytes,
                        interface_.longest_frame());
        interface_.reject_too_long(skb, ip_mtu(interface_.longest_frame()));
        return;
    }
    if (interface_.lower.present()) [[unlikely]] {
        interface_.lower.send(skb, ah, qpn);
        return;
    }
    if (segment_bytes && !shim_skb_pull_headers(skb, header_bytes)) [[unlikely]] {
        drop(skb);
        return;
    }
    if (segment_bytes && interface_.cuts_segments()) {
        send_segments(skb, header_bytes, segment_bytes, ah, qpn);
        return;
    }
    const bool checksum = shim_skb_wants_checksum(skb);
    const std::uint32_t here = index_.head();
    MappedPacket& slot = slots_[index_.slot(here)];
    if (index_.free() == 0 || closed() ||
        (checksum && !interface_.leaves_checksums() && shim_skb_fill_checksum(skb) != 0) ||
        !slot.map(interface_.ca(), skb, header_bytes, sges_)) [[unlikely]] {
        drop(skb);
        return;
    }
    slot.queued_bytes = bytes;
    slot.packets = 1;
    slot.payload_bytes = bytes - sizeof(Encapsulation);
    request(slot, here, ah, qpn, checksum && interface_.leaves_checksums());
    if (segment_bytes) {
        const unsigned int data_bytes = bytes - header_bytes;
        slot.packets = (data_bytes + segment_bytes - 1) / segment_bytes;
        slot.payload_bytes = data_bytes + slot.packets * (header_bytes - sizeof(Encapsulation));
        segmented.add(slot.packets);
        shim_send_wr_set_segments(slot.native(), shim_skb_data(skb), header_bytes, segment_bytes);
    }
    shim_skb_tx_timestamp(skb);
    log_data(interface_.dev(), "sending packet, length=%u address=%p dqpn=0x%06x", bytes, static_cast<void*>(ah), qpn);
    index_.produce();
    if (account(bytes))
        ring_doorbell();
}

inline void TxRing::request(MappedPacket& slot, std::uint32_t here, ib_ah* ah, std::uint32_t qpn, bool checksum)
{
    shim_send_wr_init(slot.native(), here, slot.sge);
    shim_send_wr_set_datagram(slot.native(), slot.sges, ah, qpn, interface_.qkey());
    shim_send_wr_set_flags(slot.native(), here % signal_every == signal_every - 1, checksum);
    shim_send_wr_set_next(slot.native(), nullptr);
    if (here != unposted_)
        shim_send_wr_set_next(slots_[index_.slot(here - 1)].native(), slot.native());
}

bool TxRing::map_segments(Segmenter& segmenter, std::uint32_t count)
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

// Apart: what it needs of the stack is not to be every packet's.
[[gnu::noinline]] void TxRing::send_segments(sk_buff* skb, unsigned int header_bytes, unsigned int segment_bytes,
                                             ib_ah* ah, std::uint32_t qpn)
{
    Segmenter segmenter(skb, header_bytes, segment_bytes);
    const std::uint32_t first = index_.head(), count = segmenter.count();
    bool mapped = false;
    if (count <= index_.free() && header_bytes <= SegmentHeaders::bytes_each && !closed()) [[likely]]
        mapped = map_segments(segmenter, count);
    // One piece of memory holds what has too many for the HCA.
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
        request(slot, first + i, ah, qpn, false);
    }
    segmented.add(count);
    shim_skb_tx_timestamp(skb);
    log_data(interface_.dev(), "sending packet, length=%u segments=%u address=%p dqpn=0x%06x", bytes, count,
             static_cast<void*>(ah), qpn);
    index_.produce(count);
    if (account(bytes))
        ring_doorbell();
}

void TxRing::drop(sk_buff* skb)
{
    interface_.tx_dropped.add();
    shim_skb_drop(skb, why_dropped());
}

shim_drop TxRing::why_dropped() const
{
    return closed() ? SHIM_DROP_CLOSED : room() ? SHIM_DROP_NO_MEMORY : SHIM_DROP_FULL;
}

inline bool TxRing::room() const { return index_.free() >= least_room_ && interface_.connections.sends.free() != 0; }

bool TxRing::account(unsigned int bytes)
{
    taken_.store(taken_.load_relaxed() + bytes);
    const bool ring_now = shim_tx_queue_sent(interface_.dev(), bytes, shim_xmit_more());
    if (room()) [[likely]]
        return ring_now;
    stops.add();
    shim_trace_ring(interface_.dev(), "send", "stopped", index_.used(), index_.size());
    shim_tx_queue_stop(interface_.dev());
    // Pairs with the one in wake_if_room(): either it sees the stopped queue, or we see the room it made.
    shim_smp_mb();
    if (room())
        shim_tx_queue_start(interface_.dev());
    return true;
}

void TxRing::finished(std::uint32_t count, std::uint64_t payload, std::uint32_t queued)
{
    packets.add(count);
    bytes.add(payload);
    handled_.store(handled_.load_relaxed() + queued);
    shim_tx_queue_completed(interface_.dev(), count, queued);
}

void TxRing::ring_doorbell()
{
    const std::uint32_t end = index_.head();
    if (unposted_ == end)
        return;
    shim_send_wr_signal(slots_[index_.slot(end - 1)].native());
    doorbells.add();
    shim_send_wr* refused;
    const int error = shim_post_send(interface_.qp(), slots_[index_.slot(unposted_)].native(), &refused);
    if (error) [[unlikely]] {
        // Sends before it may complete without a report. All stay until the queue is restarted.
        log_warning(interface_.dev(), "post_send failed, error %d", error);
        while (unposted_ != end && slots_[index_.slot(unposted_)].native() != refused)
            ++unposted_;
        refused_.store(end - unposted_);
        close();
        shim_tx_queue_stop(interface_.dev());
        interface_.restart_queues();
    }
    unposted_ = end;
    expect_completions();
}

unsigned int TxRing::outstanding() const
{
    const SendPool& connected = interface_.connections.sends;
    return index_.used() + connected.size() - connected.free();
}

bool TxRing::hurried() const
{
    return outstanding() > index_.size() / 4 || taken_.load_relaxed() - handled_.load_relaxed() > many_bytes ||
           shim_tx_queue_held(interface_.dev()) || closed();
}

void TxRing::expect_completions()
{
    // Pairs with the barriers of scheduling and completing a poll: either that sees what was posted, or we see that it
    // is over.
    shim_smp_mb();
    if (hurried()) {
        if (armed_.load_relaxed())
            return;
        armed_.store(true);
        if (shim_cq_arm(interface_.send_cq()))
            notified();
    } else if (!reap_queued_.load_relaxed()) {
        reap_queued_.store(true);
        reap_.queue(reap_queue, kernel::milliseconds(1));
    }
}

void TxRing::reap()
{
    reap_queued_.store(false);
    napi_.poll_now();
}

void TxRing::watch()
{
    const std::uint32_t tail = index_.tail();
    // Closed: it is being restarted.
    if (index_.empty() || closed())
        stalled_at_ = tail - 1;
    else if (tail == stalled_at_)
        interface_.tx_timed_out();
    else
        stalled_at_ = tail;
    watch_.queue(reap_queue, kernel::seconds(stall_seconds));
}

void TxRing::finish_to(std::uint32_t end, int budget)
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
            shim_skb_consume(slot.skb, budget);
    }
    if (!count)
        return;
    index_.consume_to(end);
    finished(count, payload, queued);
}

void TxRing::handle(const shim_wc* wc, int budget)
{
    if (shim_wc_id(wc) & SendPool::tag) {
        interface_.connections.sends.handle(wc, budget);
        return;
    }
    const auto index = static_cast<std::uint32_t>(shim_wc_id(wc));
    if (!index_.holds(index)) [[unlikely]] {
        log_warning(interface_.dev(), "send completion for index %u, of %u to %u", index, index_.tail(), index_.head());
        return;
    }
    if (!shim_wc_ok(wc)) [[unlikely]] {
        errors.add();
        if (!shim_wc_flushed(wc)) {
            log_warning(interface_.dev(), "failed send event (status=%d, wrid=%u vend_err %#x)", shim_wc_status(wc),
                        index, shim_wc_vendor_error(wc));
            interface_.recover_send_queue();
        }
    }
    // Sends complete in order: this one tells of all before it too.
    finish_to(index + 1, budget);
}

void TxRing::wake_if_room()
{
    shim_smp_mb();
    if (shim_tx_queue_stopped(interface_.dev()) && index_.free() >= index_.size() / 2 &&
        interface_.connections.sends.free() >= interface_.connections.sends.size() / 2 && !closed_.load()) {
        shim_trace_ring(interface_.dev(), "send", "woken", index_.used(), index_.size());
        shim_tx_queue_wake(interface_.dev());
    }
}

int TxRing::poll(int budget)
{
    int done = 0;
    // Called with a budget of 0 (netpoll), it reaps one batch still.
    const int limit = budget > 0 ? budget : 1;
    while (done < limit) {
        const int wanted = std::min(Completions::most, limit - done);
        const int got = shim_cq_poll(interface_.send_cq(), wanted, completions_.first());
        for (int i = 0; i < got; ++i)
            handle(completions_.at(i), budget);
        if (got > 0)
            done += got;
        if (got < wanted)
            break;
    }
    wake_if_room();
    if (done < budget && napi_.complete(done) && outstanding() != 0)
        expect_completions();
    return std::min(done, budget);
}

// The interface's side

void Interface::transmit(sk_buff* skb)
{
    if (shim_skb_headlen(skb) < sizeof(HardHeader)) [[unlikely]] {
        tx_dropped.add();
        shim_skb_drop(skb, SHIM_DROP_MALFORMED);
    } else {
        // SAFETY: the header is in the linear part, is bytes throughout, and stays there until the tables below
        // pull it, having read it.
        auto& header = *reinterpret_cast<HardHeader*>(shim_skb_data(skb));
        const std::uint16_t type = header.encapsulation.type.value();
        if (header.destination.multicast() && carried(type)) {
            groups.send(skb, header.destination);
        } else if (carried_to_neighbours(type)) [[likely]] {
            paths.send(skb, header.destination);
        } else if (address_resolution(type)) {
            paths.send_address_resolution(skb, header.destination);
        } else {
            tx_dropped.add();
            shim_skb_drop(skb, SHIM_DROP_TYPE);
        }
    }
    // Whatever became of this packet, those before it must not wait for one that may never come.
    if (!shim_xmit_more() || shim_tx_queue_stopped(dev_)) {
        tx.ring_doorbell();
        connections.sends.ring_doorbell();
    }
}

} // namespace ipoib

void ipoib_ndo_start_xmit(sk_buff* skb, net_device* dev) { ipoib::Interface::of(dev).transmit(skb); }

int ipoib_header_create(sk_buff* skb, std::uint16_t ethertype, const void* destination)
{
    using namespace ipoib;
    if (!destination)
        return -static_cast<int>(sizeof(HardHeader));
    ipoib_header_write(shim_skb_push(skb, sizeof(HardHeader)), ethertype, destination);
    return sizeof(HardHeader);
}

void ipoib_header_write(void* to, std::uint16_t ethertype, const void* destination)
{
    using namespace ipoib;
    const HardHeader header{HwAddr::from(destination), {kernel::Be16(ethertype), kernel::Be16(0)}};
    std::memcpy(to, &header, sizeof(header));
}

void ipoib_header_set_destination(void* header, const void* destination)
{
    using namespace ipoib;
    const HwAddr address = HwAddr::from(destination);
    std::memcpy(static_cast<std::byte*>(header) + offsetof(HardHeader, destination), &address, sizeof(address));
}
