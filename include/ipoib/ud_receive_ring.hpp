// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The receive ring of the UD queue pair: buffers for datagrams, each a page or a part of one. Used by the receive
// queue's poll alone.
#pragma once
#include <cstddef>
#include <cstdint>

#include <ipoib/buffer_pool.hpp>
#include <ipoib/pieces.hpp>
#include <ipoib/receive_chain.hpp>
#include <kernel/lock.hpp>
#include <kernel/memory.hpp>
#include <kernel/opaque.hpp>
#include <kernel/result.hpp>
#include <shim/cq.h>
#include <shim/skbuff.h>
#include <shim/wr.h>

namespace ipoib {

class Interface;
class RxQueue;

class UdReceiveRing {
public:
    UdReceiveRing(Interface& interface, RxQueue& queue) : interface_(interface), queue_(queue) {}

    // Allocates size slots. CONTEXT: process.
    kernel::Status create(unsigned int size);
    void destroy() { slots_.reset(); }
    // Fills the ring with buffers for datagrams of ib_mtu bytes and posts them; the queue pair is in INIT at least.
    // CONTEXT: process.
    kernel::Status fill(unsigned int ib_mtu);
    // Frees every buffer. CONTEXT: process; the queue pair is in RESET, and the poll paused or removed.
    void empty();
    // A receive completed.
    void complete(const shim_wc* wc) TA_REQUIRES(kernel::receive_poll);

    // Buffers that the HCA has.
    unsigned int outstanding() const { return reposts_.outstanding(); }
    // The largest datagram, in bytes, that the buffers take.
    unsigned int ib_mtu() const { return ib_mtu_; }

private:
    struct Slot {
        std::byte* buffer;
        shim_sge sge;
        kernel::Opaque<shim_recv_wr> wr;
        shim_recv_wr* native() { return wr.get(); }
    };
    // A received datagram, in its buffer.
    struct Datagram {
        std::uint8_t* message;
        unsigned int message_bytes;
        shim_packet_type type;
        // The HCA verified its checksums.
        bool verified;
        std::uint8_t* ip() const;
        unsigned int ip_bytes() const;
    };

    // Allocates and maps a buffer for the slot. Returns false if there is no memory; the slot is unchanged.
    bool refill(Slot& slot);
    void repost(Slot& slot) TA_REQUIRES(kernel::receive_poll);
    kernel::Status post();
    // Returns false if the datagram is a multicast of our own.
    bool read(Datagram& datagram, std::byte* buffer, const shim_wc* wc) const;
    bool sent_by_ourselves(const shim_wc* wc, const struct Grh& grh) const;
    // Passes a copy to the stack.
    void deliver_copy(std::byte* buffer, const shim_wc* wc) TA_REQUIRES(kernel::receive_poll);
    // Passes the buffer to the stack. Returns false if the buffer remains the caller's.
    bool deliver_buffer(std::byte* buffer, const shim_wc* wc) TA_REQUIRES(kernel::receive_poll);
    sk_buff* build(std::byte* buffer, unsigned int bytes) TA_REQUIRES(kernel::receive_poll);

    Interface& interface_;
    RxQueue& queue_;
    unsigned int size_ = 0;
    unsigned int ib_mtu_ = 0;
    unsigned int buffer_bytes_ = 0;
    BufferPool pool_;
    kernel::Array<Slot> slots_;
    ReceiveChain reposts_;
};

} // namespace ipoib
