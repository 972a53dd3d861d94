// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The connected receive path (RFC 4755): buffers of pages, from a completion to the stack.
#include <algorithm>
#include <cstring>
#include <utility>

#include <ipoib/connected.hpp>
#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <ipoib/wr_id.hpp>
#include <kernel/log.hpp>

namespace ipoib {

namespace {

// Pieces of allocated pages, each with a reference to its page. CONTEXT: process.
class Pages {
public:
    std::byte* allocate(unsigned int bytes)
    {
        Open& open = bytes == MessageBuffer::small_piece ? small_ : large_;
        if (open.page && open.used + bytes <= shim_page_size())
            shim_get_page(open.page);
        else
            open = {static_cast<std::byte*>(shim_get_free_pages(smallest_order(shim_page_size(), bytes))), 0};
        return open.page ? open.page + std::exchange(open.used, open.used + bytes) : nullptr;
    }
    void put(std::byte* piece, unsigned int)
    {
        shim_put_page(piece);
        // The page may have been freed.
        small_ = large_ = {};
    }

private:
    // The page that the last piece of a size is of, and how much of it is used.
    struct Open {
        std::byte* page;
        unsigned int used;
    };
    Open small_{}, large_{};
};

// Pieces of the page pools. CONTEXT: the poll.
class PooledPieces {
public:
    explicit PooledPieces(SharedReceiveQueue& queue) : queue_(queue) {}
    std::byte* allocate(unsigned int bytes) { return queue_.pool(bytes).allocate(); }
    void put(std::byte* piece, unsigned int bytes) { queue_.pool(bytes).put(piece, true); }

private:
    SharedReceiveQueue& queue_;
};

} // namespace

template <class Source>
bool RcReceiveRing::append(Pieces& to, unsigned int bytes, Source& from) const
{
    std::byte* const piece = from.allocate(bytes);
    if (!piece)
        return false;
    shim_sge& sge = to.sge[to.count];
    sge.length = to.count == 0 ? first_bytes_ : bytes;
    sge.lkey = interface_.queues.lkey();
    sge.address = shim_dma_map_from_device(interface_.ca(), piece + offset(to.count), sge.length);
    if (shim_dma_mapping_error(interface_.ca(), sge.address)) {
        from.put(piece, bytes);
        return false;
    }
    to.pieces[to.count++] = piece;
    return true;
}

template <class Source>
bool RcReceiveRing::extend(Pieces& to, unsigned int bytes, unsigned int max, Source& from) const
{
    while (bytes) {
        const unsigned int large = shape_.other_bytes, small = MessageBuffer::small_piece;
        if (to.count == max)
            return false;
        // Once for each large piece, and not again for each small one in its place.
        if (bytes % large == 0 && append(to, large, from))
            bytes -= large;
        else if (append(to, small, from))
            bytes -= small;
        else
            return false;
    }
    return true;
}

kernel::Status RcReceiveRing::create(unsigned int size, unsigned int elements)
{
    size_ = size;
    shape_ = MessageBuffer::of(shim_page_size(), elements);
    elements_ = elements;
    const unsigned int headroom = shim_skb_buffer_headroom() + sizeof(HwAddr);
    const unsigned int around = headroom + shim_skb_buffer_tailroom();
    headroom_ = shape_.bytes() >= MessageBuffer::max_message + around ? headroom : 0;
    first_bytes_ = shape_.first_bytes - (builds_in_page() ? around : 0);
    max_bytes_ = queue_.srq.max_mtu() + static_cast<unsigned int>(sizeof(Encapsulation));
    reposts_.set_batch(size);
    if (!slots_.allocate(size))
        return kernel::no_memory;
    // Only the poll may allocate from the page pools.
    Pages pages;
    for (unsigned int i = 0; i < size; ++i) {
        Slot& slot = slots_[i];
        if (!append(slot, shape_.first_bytes, pages) ||
            !extend(slot, shape_.bytes() - shape_.first_bytes, elements_, pages)) {
            log_warning(interface_.dev(), "no memory for connected receive buffer %u of %u", i, size);
            empty();
            return kernel::no_memory;
        }
        prepare(slot, i);
    }
    return {};
}

void RcReceiveRing::prepare(Slot& slot, unsigned int index)
{
    shim_recv_wr_init(slot.native(), WrId::of(WrId::Kind::rc, index), slot.sge, slot.count);
}

void RcReceiveRing::remove_pieces(Slot& slot)
{
    for (unsigned int i = 0; i < slot.count; ++i) {
        shim_dma_unmap_from_device(interface_.ca(), slot.sge[i].address, slot.sge[i].length);
        if (slot.pooled & 1U << i)
            queue_.srq.pool(bytes_of(slot, i)).put(slot.pieces[i], false);
        else
            shim_put_page(slot.pieces[i]);
    }
    slot.count = 0;
}

void RcReceiveRing::empty()
{
    if (!slots_)
        return;
    for (unsigned int i = 0; i < size_; ++i)
        remove_pieces(slots_[i]);
    slots_.reset();
    reposts_.reset();
}

kernel::Status RcReceiveRing::post_to(ib_srq* srq, ib_qp* qp)
{
    srq_ = srq;
    qp_ = qp;
    for (unsigned int i = 0; i < size_; ++i)
        (void)reposts_.add(slots_[i].native());
    return post();
}

kernel::Status RcReceiveRing::post()
{
    return reposts_.post([this](shim_recv_wr* first, shim_recv_wr** refused) {
        return srq_ ? shim_helper_post_srq_recv(srq_, first, refused) : shim_helper_post_recv(qp_, first, refused);
    });
}

void RcReceiveRing::repost(Slot& slot)
{
    if (!reposts_.add(slot.native()))
        return;
    queue_.doorbells.add();
    if (const kernel::Status status = post(); !status.ok()) [[unlikely]] {
        // The SRQ is replaced; buffers of a connection's own ring are lost until the connection ends.
        log_warning(interface_.dev(), "posting receives for connections failed, error %d", status.code());
        if (srq_)
            queue_.srq.broke();
    }
}

void RcReceiveRing::complete(const shim_wc* wc, PassiveConnection& from)
{
    const std::uint32_t index = WrId::index(wc);
    if (index >= size_) [[unlikely]] {
        log_warning(interface_.dev(), "cm receive completion for index %u of %u", index, size_);
        return;
    }
    log_connected_data(interface_.dev(), "cm recv completion: id %u, status: %d", index, shim_wc_status(wc));
    reposts_.completed();
    Slot& slot = slots_[index];
    if (shim_wc_ok(wc)) [[likely]] {
        const unsigned long now = shim_jiffies();
        if (from.last_used.load_relaxed() != now) {
            const bool first = !from.used();
            from.last_used.store(now);
            if (first) {
                from.proven.store(true);
                interface_.connections.passive.work.queue_now();
            }
        }
        deliver(slot, shim_wc_bytes(wc), from.without_checksums);
        return;
    }
    if (!shim_wc_flushed(wc)) {
        log_debug(interface_.dev(), "failed cm recv event (status=%d, wrid=%u vend_err %#x)", shim_wc_status(wc), index,
                  shim_wc_vendor_error(wc));
        queue_.errors.add();
    }
    // The shared queue continues; a connection's own ring ends with its queue pair.
    if (srq_) {
        repost(slot);
    } else if (reposts_.outstanding() == 0) {
        interface_.connections.passive.flushed(from);
    }
}

sk_buff* RcReceiveRing::copy(const Slot& slot, unsigned int bytes)
{
    shim_dma_sync_for_cpu(interface_.ca(), slot.sge[0].address, bytes);
    sk_buff* skb = queue_.copy(slot.pieces[0] + offset(0), bytes);
    shim_dma_sync_for_device(interface_.ca(), slot.sge[0].address, bytes);
    return skb;
}

bool RcReceiveRing::get_fresh(unsigned int others, unsigned int max)
{
    PooledPieces pools(queue_.srq);
    fresh_.count = 0;
    if (append(fresh_, shape_.first_bytes, pools) && extend(fresh_, others, max, pools)) [[likely]]
        return true;
    put_fresh();
    return false;
}

void RcReceiveRing::put_fresh()
{
    for (unsigned int i = 0; i < fresh_.count; ++i) {
        shim_dma_unmap_from_device(interface_.ca(), fresh_.sge[i].address, fresh_.sge[i].length);
        queue_.srq.pool(bytes_of(fresh_, i)).put(fresh_.pieces[i], true);
    }
}

void RcReceiveRing::replace(Slot& slot, unsigned int used)
{
    const unsigned int fresh = fresh_.count, kept = slot.count - used;
    if (fresh != used) [[unlikely]] {
        std::memmove(slot.pieces + fresh, slot.pieces + used, kept * sizeof(slot.pieces[0]));
        std::memmove(slot.sge + fresh, slot.sge + used, kept * sizeof(slot.sge[0]));
        slot.pooled = slot.pooled >> used << fresh;
        slot.count = fresh + kept;
        prepare(slot, static_cast<unsigned int>(&slot - &slots_[0]));
    }
    for (unsigned int i = 0; i < fresh; ++i) {
        slot.pieces[i] = fresh_.pieces[i];
        slot.sge[i] = fresh_.sge[i];
    }
    slot.pooled |= (1U << fresh) - 1;
}

sk_buff* RcReceiveRing::build(Slot& slot, unsigned int bytes, SegmentMerger::Segment& segment)
{
    if (segment.starts_packet())
        return start_packet(segment, slot);
    unsigned int used = 0, held = 0;
    for (; held < bytes; ++used)
        held += slot.sge[used].length;
    if (!get_fresh(held - first_bytes_, elements_ - (slot.count - used)))
        return nullptr;
    // An allocated packet has space for the link header and for what the stack pulls from the first piece.
    sk_buff* skb = builds_in_page() ? shim_helper_napi_build_skb(slot.pieces[0], shape_.first_bytes)
                                    : queue_.allocate(sizeof(HardHeader) + 128);
    if (!skb) [[unlikely]] {
        put_fresh();
        return nullptr;
    }
    unsigned int left = bytes;
    for (unsigned int i = 0; i < used; ++i) {
        const unsigned int here = std::min(left, slot.sge[i].length);
        left -= here;
        shim_dma_unmap_from_device(interface_.ca(), slot.sge[i].address, slot.sge[i].length);
        if (i != 0) {
            shim_helper_skb_add_rx_frag(skb, slot.pieces[i], here, slot.sge[i].length);
        } else if (builds_in_page()) {
            shim_skb_reserve(skb, headroom_ - sizeof(HwAddr));
            shim_skb_put(skb, sizeof(HwAddr) + here);
        } else {
            queue_.split(skb, slot.pieces[0], sizeof(Encapsulation), here, shape_.first_bytes);
        }
    }
    replace(slot, used);
    return skb;
}

sk_buff* RcReceiveRing::start_packet(SegmentMerger::Segment& segment, Slot& slot)
{
    if (!get_fresh(0, 1)) [[unlikely]]
        return nullptr;
    sk_buff* skb = queue_.start_packet(segment, shape_.first_bytes);
    if (!skb) [[unlikely]] {
        put_fresh();
        return nullptr;
    }
    shim_dma_unmap_from_device(interface_.ca(), slot.sge[0].address, slot.sge[0].length);
    replace(slot, 1);
    return skb;
}

bool RcReceiveRing::append_to_flow(SegmentMerger::Flow& flow, const SegmentMerger::Segment& segment, Slot& slot)
{
    if (!get_fresh(0, 1)) [[unlikely]]
        return false;
    shim_dma_unmap_from_device(interface_.ca(), slot.sge[0].address, slot.sge[0].length);
    queue_.merger.append(flow, segment, shape_.first_bytes);
    replace(slot, 1);
    return true;
}

void RcReceiveRing::deliver_copy(Slot& slot, unsigned int bytes, bool verified)
{
    sk_buff* skb = copy(slot, bytes);
    repost(slot);
    if (!skb) [[unlikely]] {
        queue_.dropped.add();
        return;
    }
    queue_.finish(skb, SHIM_PACKET_HOST, verified);
    queue_.pass_up_behind_held(skb, shim_skb_data(skb), bytes - sizeof(Encapsulation));
}

void RcReceiveRing::deliver_buffer(Slot& slot, unsigned int bytes, bool verified)
{
    // Headers are read from the first piece, since the packet's linear part may be empty.
    std::byte* const message = slot.pieces[0] + offset(0);
    void* const ip = message + sizeof(Encapsulation);
    const unsigned int ip_bytes = std::min(bytes, first_bytes_) - static_cast<unsigned int>(sizeof(Encapsulation));
    // Only messages in one piece are merged.
    const bool may_merge = bytes <= first_bytes_ && builds_in_page() && queue_.merges();
    SegmentMerger::Segment segment;
    if (may_merge) {
        shim_dma_sync_for_cpu(interface_.ca(), slot.sge[0].address, bytes);
        segment = queue_.read_segment(message, bytes, verified);
    }
    sk_buff* skb = nullptr;
    SegmentMerger::Flow* const flow = queue_.merger.find_or_flush(segment);
    const bool delivered = flow ? append_to_flow(*flow, segment, slot) : (skb = build(slot, bytes, segment)) != nullptr;
    if (!delivered) [[unlikely]] {
        queue_.dropped.add();
        if (may_merge)
            shim_dma_sync_for_device(interface_.ca(), slot.sge[0].address, bytes);
    }
    repost(slot);
    if (!skb)
        return;
    queue_.finish(skb, SHIM_PACKET_HOST, verified);
    queue_.pass_up_or_hold(skb, segment, ip, ip_bytes);
}

void RcReceiveRing::deliver(Slot& slot, unsigned int bytes, bool verified)
{
    if (bytes <= sizeof(Encapsulation) || bytes > max_bytes_) [[unlikely]] {
        queue_.errors.add();
        repost(slot);
    } else if (bytes <= RxQueue::copybreak) {
        deliver_copy(slot, bytes, verified);
    } else {
        deliver_buffer(slot, bytes, verified);
    }
}

} // namespace ipoib
