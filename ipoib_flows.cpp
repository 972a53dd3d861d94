// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Several connections to one peer: which flow uses which, and how a busy one changes.
#include <ipoib/flow_balancer.hpp>
#include <ipoib/interface.hpp>
#include <kernel/log.hpp>
#include <kernel/sequence.hpp>
#include <kernel/time.hpp>
#include <shim/trace.h>

namespace ipoib {

namespace {

// Removes the hard header. more: other packets follow at once. CONTEXT: under an RcuGuard that covers the connection.
TA_REQUIRES(kernel::transmit_lock)
void send_over(ActiveConnection& connection, sk_buff* skb, TxQueue& queue, bool more)
{
    shim_skb_pull(skb, sizeof(HwAddr));
    queue.pool.send(connection, skb, more);
}

} // namespace

// Sending

ActiveConnection* FlowBalancer::at(ActiveConnection& first, unsigned int queue)
{
    if (first.queue->index() == queue)
        return &first;
    return first.flows ? first.flows->others[queue].load() : nullptr;
}

unsigned int FlowBalancer::open(ActiveConnection& first)
{
    unsigned int queues = 0;
    for (unsigned int queue = 0; queue < FlowTable::max_queues; ++queue)
        if (at(first, queue))
            queues |= 1U << queue;
    return queues;
}

bool FlowBalancer::has_others(ActiveConnection& first) { return open(first) != 1U << first.queue->index(); }

unsigned int FlowBalancer::select_queue(ActiveConnection& first, sk_buff* skb)
{
    PeerFlows* const flows = first.flows.get();
    if (!flows)
        return first.queue->index();
    const unsigned long now = shim_jiffies();
    const unsigned int flow = FlowTable::flow_of(shim_skb_get_hash(skb));
    if (flows->table.count(flow, shim_skb_len(skb), now)) [[unlikely]]
        place(first, flow);
    if (flows->table.due(now)) [[unlikely]] {
        flows->due.store(true);
        // One run serves all peers.
        if (kernel::reached(next_service_.load_relaxed(), now)) {
            next_service_.store(now + kernel::milliseconds(FlowTable::interval_ms));
            interface_.connections.active.work.queue_now();
        }
    }
    const unsigned int queue = flows->table.queue(flow);
    if (at(first, queue)) [[likely]]
        return queue;
    flows->table.set_queue(flow, first.queue->index());
    return first.queue->index();
}

void FlowBalancer::place(ActiveConnection& first, unsigned int flow)
{
    FlowTable& table = first.flows->table;
    const unsigned int queue = table.queue(flow);
    const ActiveConnection* const connection = at(first, queue);
    // Packets of a flow that seems idle may wait in the stack, or for the peer's acknowledgement.
    if (!connection || (!connection->moving.load() && connection->outstanding() == 0 &&
                        !shim_netif_xmit_stopped(interface_.dev(), queue)))
        table.set_queue(flow, table.emptiest(open(first)));
}

void FlowBalancer::send(ActiveConnection& first, sk_buff* skb, TxQueue& queue)
{
    ActiveConnection* const connection = at(first, queue.index());
    if (connection && !connection->moving.load()) [[likely]] {
        send_over(*connection, skb, queue, shim_netdev_xmit_more());
        return;
    }
    PathTable::Guard guard(interface_.paths);
    send_locked(first, skb, queue);
}

void FlowBalancer::send_locked(ActiveConnection& first, sk_buff* skb, TxQueue& queue)
{
    ActiveConnection* const connection = at(first, queue.index());
    if (!connection) {
        interface_.requeuer.push(skb);
        return;
    }
    PeerFlows* const flows = first.flows.get();
    // Before the packet is sent, which may free it.
    const unsigned int flow = flows ? FlowTable::flow_of(shim_skb_get_hash(skb)) : 0;
    const bool moves = flows && flows->move.flows >> flow & 1;
    if (moves && flows->move.to == queue.index()) {
        hold(*connection, *flows, skb, queue);
        return;
    }
    send_over(*connection, skb, queue, shim_netdev_xmit_more());
    // The stack had queued it before it knew of the move; or place() changed the flow's queue at the same time.
    if (moves) {
        flows->table.set_queue(flow, flows->move.to);
        flows->quiet_since = shim_jiffies();
        flows->last_sent = connection->sent.load_relaxed();
    }
}

void FlowBalancer::hold(ActiveConnection& to, PeerFlows& flows, sk_buff* skb, TxQueue& queue)
{
    const bool over = flows.hold_is_over(shim_jiffies());
    if (to.waiting.length() >= (over ? max_held : 2 * max_held)) {
        interface_.paths.dropped.add();
        shim_kfree_skb_reason(skb, SHIM_DROP_NEIGH_QUEUEFULL);
    } else {
        to.waiting.append(skb);
    }
    if (to.waiting.length() < max_held || over)
        return;
    if (!std::exchange(flows.holds, true))
        queue.hold_stack();
    else
        // A poll may have decided to wake the queue just before it was held.
        shim_netif_tx_stop_queue(interface_.dev(), queue.index());
}

// Connections

bool PeerFlows::hold_is_over(unsigned long now) const
{
    return kernel::elapsed(begun, now) > kernel::milliseconds(FlowBalancer::max_hold_ms);
}

void FlowBalancer::begin(ActiveConnection& first)
{
    if (interface_.tx.count() > 1)
        first.flows = kernel::make_owned_atomic<PeerFlows>(first.queue->index(), shim_jiffies());
}

void FlowBalancer::established(ActiveConnection& further)
{
    PeerFlows& flows = *further.first->flows;
    flows.others[further.queue->index()].store(&further);
    flows.pending = nullptr;
}

void FlowBalancer::failed(ActiveConnection& connection)
{
    const bool several = connection.flows && has_others(connection);
    ActiveConnection* const first = connection.further ? connection.first : several ? &connection : nullptr;
    if (!first)
        return;
    first->refused = true;
    first->refused_until = shim_jiffies() + kernel::seconds(refusal_s);
}

void FlowBalancer::ended(ActiveConnection& further, kernel::PacketQueue& ready)
{
    ActiveConnection* const first = std::exchange(further.first, nullptr);
    if (!first)
        return;
    PeerFlows& flows = *first->flows;
    if (flows.pending == &further)
        flows.pending = nullptr;
    if (!further.queue || flows.others[further.queue->index()].load() != &further)
        return;
    const unsigned int queue = further.queue->index();
    if (flows.move.flows && (flows.move.from == queue || flows.move.to == queue)) {
        if (ActiveConnection* const target = at(*first, flows.move.to))
            ready.take(target->waiting);
        end_move(*first);
    }
    flows.others[queue].store(nullptr);
}

void FlowBalancer::end_all(ActiveConnection& first, kernel::PacketQueue& ready)
{
    if (!first.flows)
        return;
    if (first.flows->pending)
        interface_.connections.active.abandon(*first.flows->pending, ready);
    for (auto& other : first.flows->others)
        if (ActiveConnection* const further = other.load())
            interface_.connections.active.abandon(*further, ready);
}

// Decisions and moves

unsigned long FlowBalancer::service(kernel::PacketQueue& ready)
{
    unsigned long now = shim_jiffies();
    bool begun = false, moving = false, several = false;
    {
        PathTable::Guard guard(interface_.paths);
        for (ActiveConnection& first : interface_.connections.active.list()) {
            if (!first.flows || first.life.state() != ActiveLife::State::established)
                continue;
            const bool others = has_others(first);
            several |= others;
            // Without traffic, too: unused connections are to end.
            if (first.flows->due.load() || (others && first.flows->table.due(now))) {
                first.flows->due.store(false);
                service_peer(first, now, ready);
            }
            // Packets to other peers wait for the queue, too.
            if (first.flows->holds && first.flows->hold_is_over(now)) {
                first.flows->holds = false;
                interface_.tx[first.flows->move.to].release_stack();
            }
            begun |= first.flows->move.flows && !first.flows->known;
            moving |= first.flows->move.flows != 0;
        }
    }
    if (begun) {
        // Afterwards each sender sees that the connections' flows are moving.
        shim_synchronize_net();
        now = shim_jiffies();
        PathTable::Guard guard(interface_.paths);
        for (ActiveConnection& first : interface_.connections.active.list())
            if (first.flows && first.flows->move.flows && !first.flows->known)
                senders_know(first, now);
    }
    unsigned int queue;
    while (ActiveConnection* const first = moving ? next_settled(now, queue) : nullptr)
        if (!finish_move(*first, interface_.tx[queue]))
            break;
    return moving ? kernel::milliseconds(settle_ms / 4) : several ? kernel::seconds(check_interval_s) : 0;
}

void FlowBalancer::service_peer(ActiveConnection& first, unsigned long now, kernel::PacketQueue& ready)
{
    PeerFlows& flows = *first.flows;
    const FlowTable::Plan plan = flows.table.plan(open(first), interface_.tx.count(), flows.move.flows == 0, now);
    if (first.refused && kernel::reached(first.refused_until, now))
        first.refused = false;
    if (plan.another && !flows.pending && !first.refused)
        flows.pending = interface_.connections.active.request_another(first);
    if (plan.move.flows)
        begin_move(first, plan.move, now);
    for (unsigned int queue = 0; queue < FlowTable::max_queues; ++queue) {
        ActiveConnection* const further = plan.unused >> queue & 1 ? flows.others[queue].load() : nullptr;
        // A new one has no flows yet.
        if (further && kernel::elapsed(further->since, now) > kernel::seconds(FlowTable::max_unused_s) &&
            !(flows.move.flows && flows.move.to == queue))
            interface_.connections.active.abandon(*further, ready);
    }
}

void FlowBalancer::begin_move(ActiveConnection& first, const FlowTable::Move& move, unsigned long now)
{
    shim_trace_flows(interface_.dev(), first.peer.gid().bytes, move.flows, move.from, move.to);
    PeerFlows& flows = *first.flows;
    flows.move = move;
    flows.known = false;
    flows.begun = now;
    // Set before the flows' queue changes: a sender that reads the new queue also reads moving.
    at(first, move.from)->moving.store(true);
    at(first, move.to)->moving.store(true);
    for (unsigned int flow = 0; flow < FlowTable::max_flows; ++flow)
        if (move.flows >> flow & 1)
            flows.table.set_queue(flow, move.to);
}

void FlowBalancer::senders_know(ActiveConnection& first, unsigned long now)
{
    PeerFlows& flows = *first.flows;
    flows.known = true;
    flows.quiet_since = now;
    flows.drained = false;
    // The backlog first: a packet that is accounted for in between is then counted twice.
    const std::uint32_t backlog = shim_helper_netif_tx_backlog(interface_.dev(), flows.move.from);
    flows.drained_at = backlog + interface_.tx[flows.move.from].accounted.load_relaxed();
    if (const ActiveConnection* const from = at(first, flows.move.from))
        flows.last_sent = from->sent.load();
}

bool FlowBalancer::drained(PeerFlows& flows)
{
    const unsigned int backlog = shim_helper_netif_tx_backlog(interface_.dev(), flows.move.from);
    if (backlog == 0 || kernel::not_before(interface_.tx[flows.move.from].accounted.load_relaxed(), flows.drained_at))
        flows.drained = true;
    // Not every qdisc sends in order: while the queue is stopped, earlier packets may still wait.
    return flows.drained && (backlog == 0 || !shim_netif_xmit_stopped(interface_.dev(), flows.move.from));
}

void FlowBalancer::end_move(ActiveConnection& first)
{
    const FlowTable::Move move = std::exchange(first.flows->move, {});
    for (const unsigned int queue : {move.from, move.to})
        if (ActiveConnection* const connection = at(first, queue))
            connection->moving.store(false);
    if (std::exchange(first.flows->holds, false))
        interface_.tx[move.to].release_stack();
}

bool FlowBalancer::settled(ActiveConnection& first, unsigned long now)
{
    PeerFlows& flows = *first.flows;
    if (!flows.move.flows || !flows.known)
        return false;
    if (!drained(flows) && kernel::elapsed(flows.begun, now) <= kernel::milliseconds(max_drain_ms)) {
        flows.quiet_since = now;
        return false;
    }
    const ActiveConnection* const from = at(first, flows.move.from);
    const bool completed = !from || kernel::not_before(from->completed.load(), flows.last_sent);
    return completed && kernel::elapsed(flows.quiet_since, now) > kernel::milliseconds(settle_ms);
}

ActiveConnection* FlowBalancer::next_settled(unsigned long now, unsigned int& queue)
{
    PathTable::Guard guard(interface_.paths);
    for (ActiveConnection& first : interface_.connections.active.list()) {
        if (!first.flows || !settled(first, now))
            continue;
        queue = first.flows->move.to;
        const ActiveConnection* const to = at(first, queue);
        if (to && interface_.tx[queue].pool.free() >= to->waiting.length())
            return &first;
    }
    return nullptr;
}

bool FlowBalancer::finish_move(ActiveConnection& first, TxQueue& queue)
{
    kernel::TransmitGuard transmit(interface_.dev(), queue.index());
    {
        PathTable::Guard guard(interface_.paths);
        ActiveConnection* const to = at(first, queue.index());
        // Other connections' sends may have filled the pool.
        if (!first.flows->move.flows || first.flows->move.to != queue.index() || !to ||
            queue.pool.free() < to->waiting.length())
            return false;
        kernel::PacketQueue held;
        held.take(to->waiting);
        end_move(first);
        // Under the transmit lock: no packet of these flows is sent in between.
        while (sk_buff* skb = held.pop())
            send_over(*to, skb, queue, !held.empty());
    }
    queue.ring_doorbells();
    return true;
}

} // namespace ipoib
