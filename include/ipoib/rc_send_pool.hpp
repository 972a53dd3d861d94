// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The sends of all connections of a transmit queue: a pool of slots, which any connection takes. Filled under the
// transmit lock, emptied by the transmit queue's poll. Sends of one connection complete in order.
#pragma once
#include <cstdint>

#include <ipoib/mapped_packet.hpp>
#include <kernel/counter.hpp>
#include <kernel/lock.hpp>
#include <kernel/memory.hpp>
#include <kernel/result.hpp>
#include <kernel/ring.hpp>

namespace ipoib {

class ActiveConnection;
class Interface;
class TxQueue;

class RcSendPool {
public:
    // Checks, during some 2 s, after which messages end their connections if they take more than half of the pool: the
    // queue would stay stopped for all peers. A slow peer takes its messages sooner, and the stack's watchdog, which
    // restarts the interface, waits longer.
    static constexpr std::uint8_t max_checks = 20;

    RcSendPool(Interface& interface, TxQueue& queue) : interface_(interface), queue_(queue) {}

    // Allocates size slots of up to sges elements. CONTEXT: process.
    kernel::Status create(unsigned int size, unsigned int sges);
    void destroy();

    unsigned int size() const { return available_.size(); }
    unsigned int free() const { return available_.used(); }
    // True if a slot is free, or none is needed.
    bool has_space() const { return free() != 0 || size() == 0; }
    bool half_free() const { return free() >= size() / 2; }
    unsigned int used() const { return size() - free(); }
    // Sends the packet, which begins with its encapsulation; consumes it. more: others follow at once. CONTEXT: under
    // an RcuGuard that covers the connection.
    void send(ActiveConnection& to, sk_buff* skb, bool more) TA_REQUIRES(kernel::transmit_lock);
    // Posts what was built.
    void ring_doorbell() TA_REQUIRES(kernel::transmit_lock);
    // A send completed.
    void complete(const shim_wc* wc, int budget) TA_REQUIRES(kernel::transmit_poll);
    // Takes the bytes of messages that were outstanding at the last call, too, from BQL's count, finds connections that
    // have become silent, and ends those that would keep the queue stopped for long.
    void discount_silent() TA_REQUIRES(kernel::transmit_poll) TA_EXCLUDES(kernel::transmit_lock);
    // Frees the sends of a connection whose queue pair is destroyed. CONTEXT: process.
    void reclaim(ActiveConnection& connection);

    // Written under the transmit lock.
    kernel::Counter doorbells;

private:
    struct Slot : MappedPacket {
        ActiveConnection* connection;
        // The number of the send on its connection, and the slot of the connection's previous send.
        std::uint32_t number, previous;
        // Calls of discount_silent() that have seen the send, up to max_checks; none if the slot is free. Written by
        // the poll.
        std::uint8_t checks;
    };
    // Every 16th send of a connection is signaled, and the last of a doorbell.
    static constexpr std::uint32_t signal_interval = 16;
    // Slots that a silent connection may have: half of them must be free before a stopped queue is woken.
    std::uint32_t silent_limit() const { return size() / 8 * 3; }

    // Frees the connection's sends up to the one in slot last.
    void finish(ActiveConnection& connection, std::uint32_t last, int budget) TA_REQUIRES(kernel::transmit_poll);
    // Ends the connections of sends that max_checks have seen.
    void end_silent() TA_REQUIRES(kernel::transmit_poll);

    Interface& interface_;
    TxQueue& queue_;
    unsigned int sges_ = 1;
    kernel::Array<Slot> slots_;
    // Free slots, as a ring: completions produce, sends consume.
    kernel::Array<std::uint32_t> free_slots_;
    kernel::RingIndex available_{0};
    // Built and not posted: sends of one connection, from first to last.
    ActiveConnection* open_ TA_GUARDED(kernel::transmit_lock) = nullptr;
    Slot* first_ TA_GUARDED(kernel::transmit_lock) = nullptr;
    Slot* last_ TA_GUARDED(kernel::transmit_lock) = nullptr;
};

} // namespace ipoib
