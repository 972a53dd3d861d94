// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The receive buffers of the connections of a receive queue: a shared receive queue (SRQ, IBA 10.2.9) and its ring
// where the HCA has SRQs, else the page pools for the rings of the connections' own.
#pragma once
#include <ipoib/buffer_pool.hpp>
#include <ipoib/pieces.hpp>
#include <ipoib/rc_receive_ring.hpp>
#include <kernel/handle.hpp>
#include <kernel/result.hpp>
#include <shim/srq.h>

namespace ipoib {

class Interface;
class RxQueue;

// CONTEXT, if not said otherwise: process, one at a time.
class SharedReceiveQueue {
public:
    SharedReceiveQueue(Interface& interface, RxQueue& queue)
        : ring(interface, queue), interface_(interface), queue_(queue)
    {
    }

    // Creates the SRQ. receives: buffers. Call before creating the completion queues: completions() depends on whether
    // the HCA grants an SRQ.
    void create(unsigned int receives);
    // Creates the page pools, and fills and posts the ring, when the first connection needs them; the SRQ too, after
    // stop().
    kernel::Status fill();
    // If fill() was called, destroys what it created, and the SRQ. CONTEXT: the poll is paused or removed;
    // no connections.
    void stop();
    // Destroys everything. CONTEXT: as stop().
    void destroy();
    // Posting to the SRQ failed: schedules a restart of the queues, which creates another. CONTEXT: any.
    void broke();

    // False if each connection has a ring of its own: the HCA granted no SRQ.
    bool shared() const { return shared_; }
    // nullptr: not shared, or not filled since stop().
    ib_srq* srq() const { return srq_.get(); }
    // The pool of pieces of this size.
    BufferPool& pool(unsigned int piece_bytes) { return piece_bytes == MessageBuffer::small_piece ? small_ : large_; }
    // The number of buffers that create() was given.
    unsigned int buffers() const { return buffers_; }
    // Entries of the receive completion queue for a ring of this size.
    unsigned int completions(unsigned int ring_size) const;
    // Elements that a receive may have, and the shape of a buffer with these.
    unsigned int elements() const;
    MessageBuffer buffer() const;
    // The largest MTU of connections, in bytes of IP.
    unsigned int max_mtu() const;

    RcReceiveRing ring;

private:
    kernel::Status create_srq();
    // Elements that a receive of an SRQ may have; 0: the HCA has none.
    unsigned int srq_elements() const;

    Interface& interface_;
    RxQueue& queue_;
    kernel::Handle<ib_srq, shim_ib_destroy_srq> srq_;
    bool shared_ = false;
    BufferPool small_, large_;
    unsigned int buffers_ = 0;
};

} // namespace ipoib
