// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The two rings of the UD queue pair. The transmit ring is filled under the netdev queue's transmit lock and emptied
// by its NAPI poll; the receive ring belongs to its NAPI poll alone.
#pragma once
#include <cstdint>

#include <generated/layout.h>
#include <ipoib/mapped_packet.hpp>
#include <ipoib/pieces.hpp>
#include <ipoib/receive_chain.hpp>
#include <ipoib/segment_merger.hpp>
#include <ipoib/segmenter.hpp>
#include <kernel/memory.hpp>
#include <kernel/napi.hpp>
#include <kernel/rcu.hpp>
#include <kernel/result.hpp>
#include <kernel/ring.hpp>
#include <kernel/work.hpp>
#include <shim/dim.h>
#include <shim/skbuff.h>
#include <shim/verbs.h>

namespace ipoib {

class Interface;

// Completions taken from a queue at a time; of a poll, and not on the stack, which kernels zero.
class Completions {
public:
    static constexpr int most = 16;
    shim_wc* first() { return reinterpret_cast<shim_wc*>(storage_); }
    const shim_wc* at(int index) { return shim_wc_at(first(), index); }

private:
    alignas(SHIM_ALIGNOF_WC) std::byte storage_[SHIM_SIZEOF_WC * most] = {};
};

class TxRing {
public:
    // So many bytes complete soon: sockets that may have little under way wait for them, and ICMP drops what it has to
    // send beyond two long packets. Byte queue limits hold nothing below it: they would wait for completions that
    // nobody hurries.
    static constexpr std::uint32_t many_bytes = 16384;

    explicit TxRing(Interface& interface) : interface_(interface), reap_(*this), watch_(*this) {}

    // Memory for size sends of up to sges elements. CONTEXT: process.
    kernel::Status create(unsigned int size, unsigned int sges);
    void destroy();

    // Between these the NAPI poll runs. CONTEXT: process; stop() when it is closed and nothing transmits.
    void start();
    // Takes and wakes for no more packets; completions are handled still. CONTEXT: process.
    void close() { closed_.store(true); }
    void stop();
    // Frees what was never completed. CONTEXT: process; the queue pair is out of service and the poll stopped.
    void empty();

    // Sends the packet, which begins with its encapsulation, to qpn by way of ah; takes it in every case. The
    // doorbell waits for ring_doorbell(). CONTEXT: under the transmit lock and an RcuGuard that covers ah.
    void send(sk_buff* skb, ib_ah* ah, std::uint32_t qpn);
    // Hands what is built to the HCA, if anything is. CONTEXT: under the transmit lock.
    void ring_doorbell();

    // For all that sends on this netdev: a packet of so many bytes was built. Stops the queue when there is no room for
    // another. True: its doorbell can't wait. CONTEXT: under the transmit lock.
    bool account(unsigned int bytes);
    // So many packets left. CONTEXT: the poll.
    void finished(std::uint32_t count, std::uint64_t payload, std::uint32_t queued);
    // For all that sends on this netdev: sends were posted. Few of them raise no event when they complete: the receive
    // poll, or a work item some milliseconds later, has them polled. CONTEXT: bottom halves off.
    void expect_completions();
    // Posted and not handled, connections' included.
    unsigned int outstanding() const;
    // Sends of this ring that the HCA is to give back. CONTEXT: closed.
    unsigned int posted() const { return index_.used() - refused_.load(); }
    // The completion queue got entries. CONTEXT: any.
    void notified()
    {
        armed_.store(false);
        napi_.schedule();
    }
    bool closed() const { return closed_.load_relaxed(); }
    // Of a packet that could not be built.
    shim_drop why_dropped() const;

    const kernel::RingIndex& index() const { return index_; }
    int poll(int budget);
    kernel::Napi<&TxRing::poll>& napi() { return napi_; }

    // Written by the poll.
    kernel::Counter packets, bytes, errors;
    // Written under the transmit lock; segmented: datagrams that were made of larger packets, here or by the HCA.
    kernel::Counter doorbells, stops, segmented;

private:
    // Every so many sends of one doorbell report their completion, beside the last.
    static constexpr std::uint32_t signal_every = 16;

    static constexpr unsigned int stall_seconds = 10;

    // Segments of one packet, at most, that are made here.
    static constexpr std::uint32_t most_segments = 64;

    // The stack sends no packets of more segments, and of fewer if the user wants that. CONTEXT: RTNL.
    void limit_segments(unsigned int limit);
    // Neither this ring nor the connections' pool is full.
    bool room() const;
    void drop(sk_buff* skb);
    // Writes the work request of a mapped packet, or segment, and chains it.
    void request(MappedPacket& slot, std::uint32_t here, ib_ah* ah, std::uint32_t qpn, bool checksum);
    void send_segments(sk_buff* skb, unsigned int header_bytes, unsigned int segment_bytes, ib_ah* ah,
                       std::uint32_t qpn);
    // Maps so many segments into the slots from head on; false: one could not be, and none is mapped.
    bool map_segments(Segmenter& segmenter, std::uint32_t count);
    // Finishes all sends before end.
    void finish_to(std::uint32_t end, int budget);
    void handle(const shim_wc* wc, int budget);
    void wake_if_room();
    // Completions are to be handled as soon as they come: there are many to come, or the stack waits for them.
    bool hurried() const;
    void reap();
    // Once in stall_seconds: sends that were there the last time, and none completed since, never will. The kernel's
    // own watchdog looks at queues that are stopped; few sends stop none, and sockets that wait for them send no more.
    void watch();

    Interface& interface_;
    unsigned int sges_ = 1;
    kernel::Array<MappedPacket> slots_;
    // For segments that are made here.
    SegmentHeaders headers_;
    kernel::RingIndex index_;
    // So many slots are free whenever the stack may send: what its largest packet takes.
    std::uint32_t least_room_ = 1;
    // Segments of one packet: what the stack was last told, and what it would use without a limit.
    unsigned int max_segments_ = 0, wanted_segments_ = 0;
    // Built and not posted: from this index to head. Under the transmit lock.
    std::uint32_t unposted_ = 0;
    // Between service and service, or until the restart that a failed post asked for.
    kernel::Published<bool> closed_{true};
    // The last of the ring, which that post did not give to the HCA.
    kernel::Published<std::uint32_t> refused_;
    Completions completions_;
    kernel::Napi<&TxRing::poll> napi_;
    // Of packets, in bytes: taken, under the transmit lock; and handled, by the poll.
    kernel::Published<std::uint32_t> taken_, handled_;
    // While there are sends outstanding: the next completion raises an event, or the item is queued, or the poll runs.
    kernel::Published<bool> armed_, reap_queued_;
    kernel::Work<&TxRing::reap> reap_;
    kernel::Work<&TxRing::watch> watch_;
    // Where the tail must not be at the next look.
    std::uint32_t stalled_at_ = 0;
};

class RxRing {
public:
    explicit RxRing(Interface& interface);

    kernel::Status create(unsigned int size);
    void destroy() { slots_.reset(); }

    // Fills the ring with buffers for datagrams of ib_mtu bytes and posts them; the queue pair is in INIT at least.
    // CONTEXT: process.
    kernel::Status fill(unsigned int ib_mtu);
    // Between these the NAPI poll runs. CONTEXT: process.
    void start();
    void stop();
    // Frees every buffer. CONTEXT: process; the queue pair is out of service and the poll stopped.
    void empty();

    // The completion queue got entries. CONTEXT: any.
    void notified()
    {
        events.add();
        napi_.schedule();
    }
    // The moderation of its completion queue follows the traffic from now on, or stays as it is.
    void set_adaptive(bool adaptive) { adaptive_.store(adaptive); }
    bool adaptive() const { return adaptive_.load_relaxed(); }

    // Buffers that the HCA has.
    unsigned int outstanding() const { return reposts_.outstanding(); }
    // The largest datagram that buffers are made for.
    unsigned int ib_mtu() const { return ib_mtu_; }
    int poll(int budget);
    kernel::Napi<&RxRing::poll>& napi() { return napi_; }

    // Messages up to this, encapsulation included, are copied, so that their buffer stays: a socket is charged for all
    // of a packet's memory, and a buffer for a few bytes fills it at once.
    static constexpr unsigned int copybreak = 256;
    // An empty packet, with room for so many bytes from its hard header on. Null: no memory. CONTEXT: the poll.
    sk_buff* allocate(unsigned int bytes);
    // A packet of its own for a message, with room for the link header before it; null: no memory. CONTEXT: the poll.
    sk_buff* copy(const void* message, unsigned int bytes);
    // To the stack. CONTEXT: the poll.
    void pass_up(sk_buff* skb) { napi_.receive(skb, alone_); }
    // The same for what the merger has not seen, which must not overtake what is held of its flow. Its IP header, and
    // so many bytes from there on, are at ip.
    void pass_up_behind_held(sk_buff* skb, const void* ip, unsigned int bytes);

    // Written by the poll; merged: those of packets that became part of another.
    kernel::Counter packets, bytes, multicast, errors, dropped, doorbells, merged, copied;
    // Written by the completion queue, which waits for the poll before the next.
    kernel::Counter events;

private:
    struct Slot {
        std::byte* buffer;
        shim_sge sge;
        alignas(SHIM_ALIGNOF_RECV_WR) std::byte wr[SHIM_SIZEOF_RECV_WR];
        shim_recv_wr* native() { return reinterpret_cast<shim_recv_wr*>(wr); }
    };

    // Gives the slot a new buffer; false: no memory, and the slot keeps what it has.
    bool refill(Slot& slot);
    void handle(const shim_wc* wc);
    // Passes on what came in the buffer; a copy, if that stays where it is. True: the buffer went along.
    bool deliver(std::byte* buffer, const shim_wc* wc, bool stays);
    sk_buff* build(std::byte* buffer, unsigned int bytes);
    bool sent_by_ourselves(const shim_wc* wc, const struct Grh& grh) const;
    void repost(Slot& slot);
    kernel::Status post();

    Interface& interface_;
    unsigned int size_ = 0;
    unsigned int ib_mtu_ = 0;
    DatagramBuffer shape_{};
    page_pool* pool_ = nullptr;
    kernel::Array<Slot> slots_;
    ReceiveChain reposts_;
    SegmentMerger merger_{*this};
    Completions completions_;
    // The poll has one completion to handle.
    bool alone_ = false;
    kernel::Published<bool> adaptive_;
    alignas(SHIM_ALIGNOF_DIM) std::byte dim_[SHIM_SIZEOF_DIM] = {};
    shim_dim* dim() { return reinterpret_cast<shim_dim*>(dim_); }
    kernel::Napi<&RxRing::poll> napi_;
};

} // namespace ipoib
