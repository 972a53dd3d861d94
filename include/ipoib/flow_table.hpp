// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Assigns the flows to a peer to the connections to it. A flow uses one connection at a time, so that its packets
// arrive in order. The low bits of the packet's hash identify a flow, the transmit queue a connection: a peer has at
// most one in each.
#pragma once
#include <cstdint>

#include <ipoib/path_lock.hpp>
#include <kernel/published.hpp>
#include <kernel/time.hpp>
#include <shim/netdevice.h>

namespace ipoib {

class FlowTable {
public:
    static constexpr unsigned int max_flows = 64, max_queues = SHIM_MAX_TX_QUEUES;
    // Interval of plans.
    static constexpr unsigned int interval_ms = 200;
    // An interval is busy if the flow sends this many units in it: 1 for each packet, and for each KiB.
    static constexpr unsigned int busy_units = 64;
    // Another connection is wanted if it would have helped in that many consecutive intervals.
    static constexpr unsigned int min_crowded_intervals = 5;
    // A flow that did not send for this long changes its connection at once, unless sends of it may be on the way.
    static constexpr unsigned int max_idle_ms = 1000;
    // A connection whose flows did not send for this long is not needed.
    static constexpr unsigned int max_unused_s = 30;
    // Time from one move between connections with busy flows to the next.
    static constexpr unsigned int move_interval_ms = 1000;

    // Flows that are to change their connection, as bits.
    struct Move {
        std::uint64_t flows = 0;
        unsigned int count = 0, from = 0, to = 0;
    };
    struct Plan {
        // Another connection would take a part of the load.
        bool another = false;
        Move move{};
        // Queues, as bits, whose connection is not needed.
        unsigned int unused = 0;
    };

    // All flows use the connection of this queue. now: jiffies, as everywhere in this class.
    FlowTable(unsigned int queue, unsigned long now)
        : next_check_(now + kernel::milliseconds(interval_ms)), next_move_(now), last_plan_(now)
    {
        for (Flow& flow : flows_) {
            flow.queue.store(queue);
            flow.last_used.store(now);
        }
    }

    static constexpr unsigned int flow_of(std::uint32_t hash) { return hash % max_flows; }

    // Counts a packet that the flow sends. Returns true if the flow was idle. CONTEXT: any; concurrent calls for one
    // flow may lose a count.
    bool count(unsigned int flow, unsigned int bytes, unsigned long now)
    {
        Flow& its = flows_[flow];
        its.units.store(its.units.load_relaxed() + 1 + bytes / 1024);
        const unsigned long last = its.last_used.load_relaxed();
        return kernel::touch(its.last_used, now) && kernel::elapsed(last, now) > kernel::milliseconds(max_idle_ms);
    }
    // The queue of a flow's connection.
    unsigned int queue(unsigned int flow) const { return flows_[flow].queue.load(); }
    void set_queue(unsigned int flow, unsigned int queue) { flows_[flow].queue.store(queue); }
    // Returns the queue with the fewest busy flows of those in open, a set of bits that is not empty; counts another
    // flow for it, until the next plan().
    unsigned int emptiest(unsigned int open);
    // Returns true once in each interval. CONTEXT: any; concurrent calls may both return true.
    bool due(unsigned long now)
    {
        if (!kernel::reached(next_check_.load_relaxed(), now))
            return false;
        next_check_.store(now + kernel::milliseconds(interval_ms));
        return true;
    }
    // Plans by the load since the last call. open: queues with a connection, as bits; max_open: how many there may be.
    // may_move: the last move has ended.
    Plan plan(unsigned int open, unsigned int max_open, bool may_move, unsigned long now) TA_REQUIRES(path_lock);

private:
    struct Flow {
        kernel::Published<unsigned long> last_used;
        kernel::Published<std::uint32_t> units;
        kernel::Published<unsigned int> queue;
        // A bit for each of the last intervals, the lowest for the latest: whether it was busy.
        std::uint8_t history = 0;
        // Busy in one of the last four intervals.
        bool busy() const { return history & 0xf; }
    };
    Move choose_move(const unsigned int* load, unsigned int open, unsigned long now) TA_REQUIRES(path_lock);

    Flow flows_[max_flows];
    // Busy flows of each queue, as of the last plan().
    kernel::Published<unsigned int> load_[max_queues];
    kernel::Published<unsigned long> next_check_;
    unsigned long next_move_ TA_GUARDED(path_lock), last_plan_ TA_GUARDED(path_lock);
    // The last intervals in which another connection would have helped.
    unsigned int crowded_ TA_GUARDED(path_lock) = 0;
};

} // namespace ipoib
