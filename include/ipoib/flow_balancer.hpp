// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Distributes the flows to a peer over several connections. A peer's first connection is always there; others are
// requested while several flows are busy, and ended when they are not used.
//
// A busy flow changes its connection without overtaking itself: its packets are held back until those before have
// completed on the former connection, and the peer has had time to receive them.
#pragma once
#include <cstdint>

#include <ipoib/flow_table.hpp>
#include <ipoib/path_lock.hpp>
#include <kernel/lock.hpp>
#include <kernel/packet_queue.hpp>
#include <kernel/published.hpp>

namespace ipoib {

class ActiveConnection;
class Interface;
class TxQueue;

// The part of a peer's first connection that concerns further ones.
struct PeerFlows {
    PeerFlows(unsigned int queue, unsigned long now) : table(queue, now) {}

    FlowTable table;
    // The peer's further connections that are established, by their queue.
    kernel::Published<ActiveConnection*> others[FlowTable::max_queues];
    // Set by the transmit path: service() is to make a plan from the table.
    kernel::Published<bool> due;
    // The further connection that is being made.
    ActiveConnection* pending TA_GUARDED(path_lock) = nullptr;
    // The move holds the stack's packets of its new queue back.
    bool holds TA_GUARDED(path_lock) = false;

    // The current move; without flows there is none.
    FlowTable::Move move TA_GUARDED(path_lock);
    // Returns true if the stack's packets are not to be held back any more. now: jiffies.
    bool hold_is_over(unsigned long now) const TA_REQUIRES(path_lock);
    // All senders know of the move.
    bool known TA_GUARDED(path_lock) = false;
    // The qdisc of the former queue, if it sends in order, has no packets of the moved flows any more when the queue's
    // `accounted` reaches drained_at, or the qdisc was empty since.
    std::uint32_t drained_at TA_GUARDED(path_lock) = 0;
    bool drained TA_GUARDED(path_lock) = false;
    // Time of the last packet on the former connection, in jiffies, and its number; time of the move's begin.
    unsigned long quiet_since TA_GUARDED(path_lock) = 0, begun TA_GUARDED(path_lock) = 0;
    std::uint32_t last_sent TA_GUARDED(path_lock) = 0;
};

// All that a peer needs beside its connections; the limit is in Documentation/connected-mode.md.
static_assert(sizeof(PeerFlows) < 2048);

class FlowBalancer {
public:
    // Time for the peer to receive what has completed.
    static constexpr unsigned int settle_ms = 20;
    // Time to wait for the qdisc of the former queue.
    static constexpr unsigned int max_drain_ms = 500;
    // Packets that are held back, of all flows of a move. More wait in the stack for max_hold_ms after the move began,
    // and are dropped later. At most twice as many are held.
    static constexpr unsigned int max_held = 64;
    static constexpr unsigned int max_hold_ms = 500;
    // Interval of checks of peers with further connections, if there is no traffic.
    static constexpr unsigned int check_interval_s = 10;
    // No further connection is requested from a peer for this time after it has refused or ended one.
    static constexpr unsigned int refusal_s = 60;

    explicit FlowBalancer(Interface& interface) : interface_(interface) {}

    // Returns the number of the transmit queue for a packet to the peer of this first connection. CONTEXT: under an
    // RcuGuard.
    unsigned int select_queue(ActiveConnection& first, sk_buff* skb);
    // Sends a packet, with its hard header, to the peer of this first connection; consumes it. queue: the transmit
    // queue that it is on. CONTEXT: under an RcuGuard.
    void send(ActiveConnection& first, sk_buff* skb, TxQueue& queue) TA_REQUIRES(kernel::transmit_lock)
        TA_EXCLUDES(path_lock);
    // The same under the lock.
    void send_locked(ActiveConnection& first, sk_buff* skb, TxQueue& queue)
        TA_REQUIRES(kernel::transmit_lock, path_lock);

    // Starts to distribute the flows of a first connection that was established.
    void begin(ActiveConnection& first) TA_REQUIRES(path_lock);
    // A further connection is established.
    void established(ActiveConnection& further) TA_REQUIRES(path_lock);
    // A connection was refused or broke, before it is ended: perhaps the peer allows one only.
    void failed(ActiveConnection& connection) TA_REQUIRES(path_lock);
    // A further connection is not usable any more. The caller transmits the packets in ready after releasing the lock.
    void ended(ActiveConnection& further, kernel::PacketQueue& ready) TA_REQUIRES(path_lock);
    // Ends the further connections of this first one.
    void end_all(ActiveConnection& first, kernel::PacketQueue& ready) TA_REQUIRES(path_lock);

    // Queues, as bits, in which the peer has an established connection.
    static unsigned int open(ActiveConnection& first);

    // Decides about connections and flows, and continues moves, as far as they are due. Returns the time until the next
    // call in jiffies, 0: none is needed. CONTEXT: process, one at a time, by the only one that frees connections.
    unsigned long service(kernel::PacketQueue& ready) TA_EXCLUDES(path_lock);

private:
    static ActiveConnection* at(ActiveConnection& first, unsigned int queue);
    static bool has_others(ActiveConnection& first);
    // Has a flow that was idle use the connection with the fewest busy ones, unless sends may be on the way.
    void place(ActiveConnection& first, unsigned int flow);
    void service_peer(ActiveConnection& first, unsigned long now, kernel::PacketQueue& ready) TA_REQUIRES(path_lock);
    // Keeps a packet of a flow that is moved to this connection, or drops it; consumes it.
    void hold(ActiveConnection& to, PeerFlows& flows, sk_buff* skb, TxQueue& queue)
        TA_REQUIRES(kernel::transmit_lock, path_lock);
    void begin_move(ActiveConnection& first, const FlowTable::Move& move, unsigned long now) TA_REQUIRES(path_lock);
    // Every sender knows of the move by now.
    void senders_know(ActiveConnection& first, unsigned long now) TA_REQUIRES(path_lock);
    // Returns true if the qdisc of the former queue should have no packets of the move's flows any more. A shared qdisc
    // keeps the order itself.
    bool drained(PeerFlows& flows) TA_REQUIRES(path_lock);
    void end_move(ActiveConnection& first) TA_REQUIRES(path_lock);
    // Returns true if the flows of the move may use their new connection.
    bool settled(ActiveConnection& first, unsigned long now) TA_REQUIRES(path_lock);
    ActiveConnection* next_settled(unsigned long now, unsigned int& queue) TA_EXCLUDES(path_lock);
    // Sends what is held back for the move to this queue. Returns false if it has ended, or the queue has no space.
    bool finish_move(ActiveConnection& first, TxQueue& queue) TA_EXCLUDES(path_lock);

    Interface& interface_;
    // Limits the rate at which the transmit path queues service(). In jiffies.
    kernel::Published<unsigned long> next_service_{shim_jiffies()};
};

} // namespace ipoib
