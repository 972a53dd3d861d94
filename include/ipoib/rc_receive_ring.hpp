// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Receive buffers for messages of connections, of up to 64 KiB; posted to a shared receive queue or to one queue pair.
// A buffer consists of pieces (MessageBuffer): pages of some order, or parts of pages. If the pieces have space for an
// skb's headroom and tailroom besides the longest message, the packet is built in the first piece, except one to which
// TCP segments may be appended.
#pragma once
#include <cstddef>
#include <cstdint>

#include <ipoib/encapsulation.hpp>
#include <ipoib/pieces.hpp>
#include <ipoib/receive_chain.hpp>
#include <ipoib/segment_merger.hpp>
#include <kernel/lock.hpp>
#include <kernel/memory.hpp>
#include <kernel/opaque.hpp>
#include <kernel/result.hpp>
#include <shim/cq.h>
#include <shim/header_ops.h>
#include <shim/qp.h>
#include <shim/srq.h>
#include <shim/wr.h>

namespace ipoib {

class Interface;
class PassiveConnection;
class RxQueue;

class RcReceiveRing {
public:
    // Elements of a receive on a queue pair without SRQ. Small pieces can replace three of the four large ones.
    static constexpr unsigned int own_elements = 16;
    static_assert(own_elements >= 1 + 3 * MessageBuffer::large_piece / MessageBuffer::small_piece + 1);
    static_assert(MessageBuffer::max_message == IPOIB_MAX_MTU + sizeof(Encapsulation));

    RcReceiveRing(Interface& interface, RxQueue& queue) : interface_(interface), queue_(queue) {}
    ~RcReceiveRing() { empty(); }

    // Allocates size buffers, whose receives have up to `elements` elements. CONTEXT: process.
    kernel::Status create(unsigned int size, unsigned int elements);
    // Posts all buffers. CONTEXT: process; none was posted before.
    kernel::Status post_to(ib_srq* srq, ib_qp* qp);
    // Frees all buffers. CONTEXT: process; none is posted, and the poll does not use the ring.
    void empty();

    // A receive completed.
    void complete(const shim_wc* wc, PassiveConnection& from) TA_REQUIRES(kernel::receive_poll);

    bool created() const { return static_cast<bool>(slots_); }
    unsigned int outstanding() const { return reposts_.outstanding(); }

private:
    // Pieces that are mapped for the HCA, one for each element of a receive.
    struct Pieces {
        unsigned int count;
        std::byte* pieces[MessageBuffer::max_pieces];
        shim_sge sge[MessageBuffer::max_pieces];
    };
    struct Slot : Pieces {
        // Bit i: piece i belongs to a page pool.
        std::uint32_t pooled;
        kernel::Opaque<shim_recv_wr> wr;
        shim_recv_wr* native() { return wr.get(); }
    };

    bool builds_in_page() const { return headroom_ != 0; }
    // Offset of the data in a piece, and size of a piece.
    unsigned int offset(unsigned int index) const { return index == 0 ? headroom_ : 0; }
    unsigned int bytes_of(const Pieces& of, unsigned int index) const
    {
        return index == 0 ? shape_.first_bytes : of.sge[index].length;
    }
    // Appends and maps a piece from a source, which has allocate(bytes) and put(piece, bytes). Returns false without
    // memory.
    template <class Source>
    bool append(Pieces& to, unsigned int bytes, Source& from) const;
    // Appends pieces of `bytes` in sum: large ones, and small ones where there is no memory for those. Returns false if
    // there is none for these either, or the buffer would have more than `max` pieces.
    template <class Source>
    bool extend(Pieces& to, unsigned int bytes, unsigned int max, Source& from) const;
    void prepare(Slot& slot, unsigned int index);
    void remove_pieces(Slot& slot);
    kernel::Status post();
    void repost(Slot& slot) TA_REQUIRES(kernel::receive_poll);
    // verified: checksums need no check.
    void deliver(Slot& slot, unsigned int bytes, bool verified) TA_REQUIRES(kernel::receive_poll);
    void deliver_copy(Slot& slot, unsigned int bytes, bool verified) TA_REQUIRES(kernel::receive_poll);
    void deliver_buffer(Slot& slot, unsigned int bytes, bool verified) TA_REQUIRES(kernel::receive_poll);
    // Appends a message of one piece to its flow's packet. Returns false without memory.
    bool append_to_flow(SegmentMerger::Flow& flow, const SegmentMerger::Segment& segment, Slot& slot)
        TA_REQUIRES(kernel::receive_poll);
    sk_buff* copy(const Slot& slot, unsigned int bytes) TA_REQUIRES(kernel::receive_poll);
    // Builds the packet of a message. segment: empty unless the message may be merged. nullptr: no memory.
    sk_buff* build(Slot& slot, unsigned int bytes, SegmentMerger::Segment& segment) TA_REQUIRES(kernel::receive_poll);
    // The same of a message whose segment starts_packet().
    sk_buff* start_packet(SegmentMerger::Segment& segment, Slot& slot) TA_REQUIRES(kernel::receive_poll);
    // Allocates and maps a first piece and further ones of `others` bytes in sum, up to `max` pieces. Returns false
    // without memory for all.
    bool get_fresh(unsigned int others, unsigned int max) TA_REQUIRES(kernel::receive_poll);
    void put_fresh() TA_REQUIRES(kernel::receive_poll);
    // Puts the pieces of get_fresh() in the place of the first `used` ones.
    void replace(Slot& slot, unsigned int used) TA_REQUIRES(kernel::receive_poll);

    Interface& interface_;
    RxQueue& queue_;
    unsigned int size_ = 0;
    MessageBuffer shape_{};
    // Elements that a receive may have.
    unsigned int elements_ = 0;
    // Bytes in the first piece before its data, link header included; 0: packets are not built in it.
    unsigned int headroom_ = 0;
    // Bytes of data in the first piece.
    unsigned int first_bytes_ = 0;
    // The longest message that peers may send, encapsulation included. The buffers may hold a longer one.
    unsigned int max_bytes_ = 0;
    ib_srq* srq_ = nullptr;
    ib_qp* qp_ = nullptr;
    kernel::Array<Slot> slots_;
    ReceiveChain reposts_;
    // The pieces of get_fresh(). Not on the stack, where the compiler zeroes them in each call
    // (CONFIG_INIT_STACK_ALL_ZERO).
    Pieces fresh_ TA_GUARDED(kernel::receive_poll){};
};

} // namespace ipoib
