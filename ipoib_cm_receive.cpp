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

bool RcReceiveRing::map(shim_sge& sge, unsigned int index, std::byte* piece) const
{
    sge.address = shim_dma_map_from_device(interface_.ca(), piece + offset(index), sge.length);
    return !shim_dma_mapping_error(interface_.ca(), sge.address);
}

bool RcReceiveRing::add_piece(Slot& slot, unsigned int index, std::byte* fresh)
{
    if (!fresh)
        return false;
    if (!map(slot.sge[index], index, fresh)) {
        shim_put_page(fresh);
        return false;
    }
    slot.pieces[index] = fresh;
    return true;
}

void RcReceiveRing::remove_piece(Slot& slot, unsigned int index)
{
    if (!slot.pieces[index])
        return;
    shim_dma_unmap_from_device(interface_.ca(), slot.sge[index].address, slot.sge[index].length);
    if (slot.pooled & 1U << index)
        shim_page_pool_put_full_page(queue_.receives.pool(), slot.pieces[index], false);
    else
        shim_put_page(slot.pieces[index]);
    slot.pieces[index] = nullptr;
}

namespace {

// Divides allocated pages into pieces of one size; each piece holds a reference to its page. CONTEXT: process.
class PieceCutter {
public:
    explicit PieceCutter(unsigned int piece_bytes) : piece_bytes_(piece_bytes) {}

    // Returns nullptr if there is no memory. The previous piece must not be freed before.
    std::byte* cut()
    {
        if (!page_ || used_ + piece_bytes_ > shim_page_size()) {
            page_ = static_cast<std::byte*>(shim_get_free_page());
            used_ = 0;
            if (!page_)
                return nullptr;
        } else {
            shim_get_page(page_);
        }
        return page_ + std::exchange(used_, used_ + piece_bytes_);
    }

private:
    const unsigned int piece_bytes_;
    std::byte* page_ = nullptr;
    unsigned int used_ = 0;
};

} // namespace

kernel::Status RcReceiveRing::create(unsigned int size, unsigned int elements)
{
    size_ = size;
    shape_ = MessageBuffer::of(shim_page_size(), elements);
    // Only the poll may allocate from the page pool.
    PieceCutter pieces(shape_.piece_bytes);
    const unsigned int headroom = shim_skb_buffer_headroom() + sizeof(HwAddr);
    const unsigned int around = headroom + shim_skb_buffer_tailroom();
    headroom_ = shape_.pieces * shape_.piece_bytes >= MessageBuffer::max_message + around ? headroom : 0;
    first_bytes_ = shape_.piece_bytes - (builds_in_page() ? around : 0);
    max_bytes_ = queue_.receives.max_mtu() + static_cast<unsigned int>(sizeof(Encapsulation));
    reposts_.set_batch(size);
    if (!slots_.allocate(size))
        return kernel::no_memory;
    for (unsigned int i = 0; i < size; ++i) {
        Slot& slot = slots_[i];
        for (unsigned int piece = 0; piece < shape_.pieces; ++piece) {
            slot.sge[piece].length = piece == 0 ? first_bytes_ : shape_.piece_bytes;
            slot.sge[piece].lkey = interface_.queues.lkey();
            if (!add_piece(slot, piece, pieces.cut())) {
                log_warning(interface_.dev(), "no memory for connected receive buffer %u of %u", i, size);
                empty();
                return kernel::no_memory;
            }
        }
        shim_recv_wr_init(slot.native(), WrId::of(WrId::Kind::rc, i), slot.sge, shape_.pieces);
    }
    return {};
}

void RcReceiveRing::empty()
{
    if (!slots_)
        return;
    for (unsigned int i = 0; i < size_; ++i)
        for (unsigned int piece = 0; piece < shape_.pieces; ++piece)
            remove_piece(slots_[i], piece);
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
            queue_.receives.broke();
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

bool RcReceiveRing::get_fresh(const Slot& slot, unsigned int count)
{
    page_pool* const pool = queue_.receives.pool();
    for (unsigned int i = 0; i < count; ++i) {
        fresh_[i] = static_cast<std::byte*>(shape_.piece_bytes < shim_page_size()
                                                ? shim_helper_page_pool_alloc_frag(pool, shape_.piece_bytes)
                                                : shim_helper_page_pool_alloc(pool));
        if (fresh_[i] && map(fresh_sge_[i] = slot.sge[i], i, fresh_[i])) [[likely]]
            continue;
        if (fresh_[i])
            shim_page_pool_put_full_page(pool, fresh_[i], true);
        put_fresh(i);
        return false;
    }
    return true;
}

void RcReceiveRing::put_fresh(unsigned int count)
{
    for (unsigned int i = 0; i < count; ++i) {
        shim_dma_unmap_from_device(interface_.ca(), fresh_sge_[i].address, fresh_sge_[i].length);
        shim_page_pool_put_full_page(queue_.receives.pool(), fresh_[i], true);
    }
}

sk_buff* RcReceiveRing::take(Slot& slot, unsigned int bytes)
{
    const unsigned int first = std::min(bytes, first_bytes_);
    const unsigned int piece_bytes = shape_.piece_bytes;
    const unsigned int count = 1 + (bytes - first + piece_bytes - 1) / piece_bytes;
    if (!get_fresh(slot, count))
        return nullptr;
    // An allocated packet has space for the link header and for what the stack pulls from the first piece.
    sk_buff* skb = builds_in_page() ? shim_helper_napi_build_skb(slot.pieces[0], piece_bytes)
                                    : queue_.allocate(sizeof(HardHeader) + 128);
    if (!skb) [[unlikely]] {
        put_fresh(count);
        return nullptr;
    }
    for (unsigned int i = 0; i < count; ++i) {
        shim_dma_unmap_from_device(interface_.ca(), slot.sge[i].address, slot.sge[i].length);
        if (i != 0) {
            const unsigned int left = bytes - first - (i - 1) * piece_bytes;
            shim_helper_skb_add_rx_frag(skb, slot.pieces[i], std::min(left, piece_bytes), piece_bytes);
        } else if (builds_in_page()) {
            shim_skb_reserve(skb, headroom_ - sizeof(HwAddr));
            shim_skb_put(skb, sizeof(HwAddr) + first);
        } else {
            shim_skb_mark_for_recycle(skb);
            shim_skb_put(skb, sizeof(HardHeader));
            std::memcpy(shim_skb_data(skb) + sizeof(HwAddr), slot.pieces[0], sizeof(Encapsulation));
            shim_helper_skb_add_rx_frag(skb, slot.pieces[0] + sizeof(Encapsulation), first - sizeof(Encapsulation),
                                        piece_bytes);
        }
        slot.pieces[i] = fresh_[i];
        slot.sge[i].address = fresh_sge_[i].address;
        slot.pooled |= 1U << i;
    }
    return skb;
}

void RcReceiveRing::deliver(Slot& slot, unsigned int bytes, bool without_checksum)
{
    if (bytes <= sizeof(Encapsulation) || bytes > max_bytes_) [[unlikely]] {
        queue_.errors.add();
        repost(slot);
        return;
    }
    const bool copied = bytes <= RxQueue::copybreak;
    const void* ip = slot.pieces[0] + offset(0) + sizeof(Encapsulation);
    sk_buff* skb = copied ? copy(slot, bytes) : take(slot, bytes);
    repost(slot);
    if (!skb) [[unlikely]] {
        queue_.dropped.add();
        return;
    }
    queue_.finish(skb, SHIM_PACKET_HOST, without_checksum);
    // A copied message's IP header is read from the copy, since its buffer is posted again; that of other messages from
    // the first piece, since the packet's linear part may be empty.
    if (copied)
        ip = shim_skb_data(skb);
    queue_.pass_up_behind_held(skb, ip, std::min(bytes, first_bytes_) - sizeof(Encapsulation));
}

} // namespace ipoib
