// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Decisions about a peer's flows and connections, from the load of the last intervals.
#include <algorithm>

#include <ipoib/flow_table.hpp>

namespace ipoib {

namespace {

constexpr unsigned int bit(unsigned int queue) { return 1U << queue; }

// Returns the queue of those in open for which less(its load, the others') holds.
template <class Less>
unsigned int find(const unsigned int* load, unsigned int open, Less less)
{
    unsigned int found = FlowTable::max_queues;
    for (unsigned int queue = 0; queue < FlowTable::max_queues; ++queue)
        if (open & bit(queue) && (found == FlowTable::max_queues || less(load[queue], load[found])))
            found = queue;
    return found;
}

} // namespace

unsigned int FlowTable::emptiest(unsigned int open)
{
    unsigned int load[max_queues];
    for (unsigned int queue = 0; queue < max_queues; ++queue)
        load[queue] = load_[queue].load_relaxed();
    const unsigned int queue = find(load, open, std::ranges::less());
    load_[queue].store(load[queue] + 1);
    return queue;
}

FlowTable::Plan FlowTable::plan(unsigned int open, unsigned int max_open, bool may_move, unsigned long now)
{
    unsigned int load[max_queues]{}, busy = 0, used = 0, connections = 0;
    for (unsigned int queue = 0; queue < max_queues; ++queue)
        connections += (open & bit(queue)) != 0;
    // Without traffic plans are rarer.
    const unsigned long passed = kernel::elapsed(last_plan_, now) / kernel::milliseconds(interval_ms);
    const auto intervals = static_cast<unsigned int>(std::clamp(passed, 1UL, 8UL));
    last_plan_ = now;
    for (Flow& flow : flows_) {
        const bool now_busy = flow.units.load_relaxed() >= busy_units * intervals;
        flow.units.store(0);
        flow.history = static_cast<std::uint8_t>(flow.history << intervals | now_busy);
        const unsigned int queue = flow.queue.load_relaxed();
        if (flow.busy()) {
            ++load[queue];
            ++busy;
        }
        if (kernel::elapsed(flow.last_used.load_relaxed(), now) <= kernel::seconds(max_unused_s))
            used |= bit(queue);
    }
    Plan plan;
    const bool crowded = std::any_of(load, load + max_queues, [](unsigned int flows) { return flows > 1; });
    if (!crowded || connections >= std::min(busy, max_open))
        crowded_ = 0;
    else
        crowded_ = intervals == 1 ? crowded_ + 1 : 1;
    plan.another = crowded_ >= min_crowded_intervals;
    if (may_move)
        plan.move = choose_move(load, open, now);
    load[plan.move.from] -= plan.move.count;
    load[plan.move.to] += plan.move.count;
    for (unsigned int queue = 0; queue < max_queues; ++queue)
        load_[queue].store(load[queue]);
    plan.unused = open & ~used;
    return plan;
}

FlowTable::Move FlowTable::choose_move(const unsigned int* load, unsigned int open, unsigned long now)
{
    const unsigned int from = find(load, open, std::ranges::greater()), to = find(load, open, std::ranges::less());
    if (load[from] < load[to] + 2 || (load[to] && !kernel::reached(next_move_, now)))
        return {};
    next_move_ = now + kernel::milliseconds(move_interval_ms);
    Move move{.from = from, .to = to};
    const unsigned int half = (load[from] - load[to]) / 2;
    for (unsigned int flow = 0; flow < max_flows && move.count < half; ++flow)
        if (flows_[flow].busy() && flows_[flow].queue.load_relaxed() == from) {
            move.flows |= std::uint64_t(1) << flow;
            ++move.count;
        }
    return move;
}

} // namespace ipoib
