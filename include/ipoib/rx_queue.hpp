// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A receive queue of the netdev: completion queue, NAPI, interrupt moderation (DIM), delivery to the stack and
// counters. The first one receives for the UD queue pair, and each for the connections that are assigned to it.
#pragma once
#include <cstddef>
#include <cstdint>

#include <ipoib/completions.hpp>
#include <ipoib/path_lock.hpp>
#include <ipoib/segment_merger.hpp>
#include <ipoib/shared_receive_queue.hpp>
#include <ipoib/ud_receive_ring.hpp>
#include <kernel/counter.hpp>
#include <kernel/handle.hpp>
#include <kernel/lock.hpp>
#include <kernel/napi.hpp>
#include <kernel/opaque.hpp>
#include <kernel/published.hpp>
#include <kernel/result.hpp>
#include <shim/cq.h>
#include <shim/dim.h>

namespace ipoib {

class Interface;

// Interrupt moderation of a receive completion queue: an event after usecs microseconds, or frames packets.
struct Moderation {
    unsigned int usecs, frames;
};

class RxQueue {
public:
    // Messages up to this size, in bytes with the encapsulation, are copied and their buffer is posted again. Without
    // the copy a socket would be charged for the whole buffer, and reach its limit with few bytes.
    static constexpr unsigned int copybreak = 256;

    RxQueue(Interface& interface, unsigned int index);

    // Creates the SRQ if the HCA grants one, the completion queue on a vector of the HCA, and a UD receive ring of
    // `datagrams` slots (0: none). messages: receives of connections. On failure destroy() undoes what was done.
    // CONTEXT: process.
    kernel::Status create(unsigned int datagrams, unsigned int messages, unsigned int vector);
    // CONTEXT: process; no queue pair uses the completion queue.
    void destroy();
    ib_cq* cq() const { return cq_.get(); }
    // The netdev's number of the queue, from 0.
    unsigned int index() const { return index_; }

    // The poll runs between start() and stop(). CONTEXT: process.
    void start() { napi_.start(); }
    void stop();
    // The completion queue raised its event. CONTEXT: any.
    void notified()
    {
        events.add();
        napi_.schedule();
    }
    // Sets the moderation. CONTEXT: process; under the lock of FurtherQueues while the queue is in service.
    kernel::Status moderate(Moderation wanted);
    Moderation moderation() const { return {usecs_.load_relaxed(), frames_.load_relaxed()}; }
    // Whether DIM adjusts the moderation.
    void set_adaptive(bool adaptive) { adaptive_.store(adaptive); }
    bool adaptive() const { return adaptive_.load_relaxed(); }
    int poll(int budget) TA_REQUIRES(kernel::receive_poll);
    kernel::Napi<&RxQueue::poll>& napi() { return napi_; }
    using PollPause = kernel::Napi<&RxQueue::poll>::Pause;

    // Allocates an empty packet with space for `bytes` bytes from the link header on. nullptr: no memory.
    sk_buff* allocate(unsigned int bytes) TA_REQUIRES(kernel::receive_poll);
    // Copies a message into a packet of its own, with space for the link header before it. nullptr: no memory.
    sk_buff* copy(const void* message, unsigned int bytes) TA_REQUIRES(kernel::receive_poll);
    // Copies the first header_bytes bytes of a message of `bytes` bytes into an allocated packet, behind space for the
    // link header, and appends the others as a fragment. The packet owns the message's buffer of buffer_bytes then.
    void split(sk_buff* skb, std::byte* message, unsigned int header_bytes, unsigned int bytes,
               unsigned int buffer_bytes) TA_REQUIRES(kernel::receive_poll);
    // Removes the link header, at which the packet's data begins, fills in the fields that the stack reads, and counts
    // the packet. verified: its checksum needs no check.
    void finish(sk_buff* skb, shim_packet_type type, bool verified) TA_REQUIRES(kernel::receive_poll);
    // Returns true if received segments are to be merged. A packet that comes alone goes the short way.
    bool merges() const TA_REQUIRES(kernel::receive_poll);
    // Reads a unicast message of `bytes` bytes, encapsulation included, in its receive buffer. verified: in: its
    // checksum needs no check; out: also true if it was computed here and is right. Called if merges().
    SegmentMerger::Segment read_segment(void* message, unsigned int bytes, bool& verified)
        TA_REQUIRES(kernel::receive_poll);
    // Builds the packet of a segment that starts_packet(): a copy of its headers, to which the segment refers then, and
    // its data in the buffer of buffer_bytes, which the packet owns. nullptr: no memory; the buffer remains the
    // caller's.
    sk_buff* start_packet(SegmentMerger::Segment& segment, unsigned int buffer_bytes) TA_REQUIRES(kernel::receive_poll);
    // Counts a segment of ip_bytes bytes that became part of another packet.
    void count_merged(unsigned int ip_bytes);
    // Passes a packet to the stack.
    void pass_up(sk_buff* skb) TA_REQUIRES(kernel::receive_poll) { napi_.receive(skb, alone_); }
    // The same for a packet that the merger was not given; it must not overtake packets that the merger holds. ip: its
    // IP header, of which `bytes` bytes can be read.
    void pass_up_behind_held(sk_buff* skb, void* ip, unsigned int bytes) TA_REQUIRES(kernel::receive_poll);
    // The same, or keeps the packet of start_packet(), so that segments can be appended to it until the end of the
    // poll. segment: empty, or was passed to find_or_flush(), which returned nullptr.
    void pass_up_or_hold(sk_buff* skb, const SegmentMerger::Segment& segment, void* ip, unsigned int bytes)
        TA_REQUIRES(kernel::receive_poll);

    UdReceiveRing ring;
    SharedReceiveQueue srq;
    SegmentMerger merger TA_GUARDED(kernel::receive_poll){*this};
    // Connections that are assigned to the queue.
    unsigned int connections TA_GUARDED(path_lock) = 0;
    // Written by the poll; merged: packets that became part of another.
    kernel::Counter packets, bytes, multicast, errors, dropped, doorbells, merged, copied;
    // Written by the completion queue's event, which comes once between two polls.
    kernel::Counter events;

private:
    // DIM chose a moderation. CONTEXT: process.
    static void moderation_chosen(void* context, unsigned int usecs, unsigned int frames);

    Interface& interface_;
    const unsigned int index_;
    kernel::Handle<ib_cq, shim_ib_destroy_cq> cq_;
    Completions completions_ TA_GUARDED(kernel::receive_poll);
    // The poll has one completion to handle.
    bool alone_ TA_GUARDED(kernel::receive_poll) = false;
    kernel::Published<unsigned int> usecs_, frames_;
    kernel::Published<bool> adaptive_;
    kernel::Opaque<shim_dim> dim_{};
    kernel::Napi<&RxQueue::poll> napi_;
};

} // namespace ipoib
