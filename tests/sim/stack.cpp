// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "stack.hpp"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "world.hpp"

namespace sim {

namespace {

// Longest time that a queue may be stopped, or hold unsent packets.
constexpr Time max_stop = 60 * second, max_oblivion = 5 * second, watchdog = 10 * second;
// Longest time until a completion is polled.
constexpr Time max_unseen = second;
// Longest time until the other hosts know a new address.
constexpr Time max_untold = 30 * second;

} // namespace

// Netdevs

net_device* Stack::find(Party party) const
{
    const auto it = by_party_.find(index(party));
    return it == by_party_.end() ? nullptr : it->second;
}

net_device* Stack::create(ib_device* ca, net_device* parent, const char* name)
{
    may_sleep("alloc_netdev");
    if (world->memory.fails())
        return nullptr;
    auto dev = std::make_unique<net_device>();
    dev->ca = ca;
    dev->parent = parent;
    dev->party = {ca->node, parent ? 1U : 0U};
    dev->name = parent ? name : "ib" + std::to_string(ca->node);
    dev->limit_bytes = world->scheduler.random().log_between(2000, 200'000);
    dev->neighbours = make_neighbours();
    world->memory.hold("netdev", 1);
    world->all_devs.push_back(std::move(dev));
    return world->all_devs.back().get();
}

int Stack::register_dev(net_device* dev)
{
    if (const int error = ipoib_ndo_init(dev))
        return error;
    if (world->memory.fails()) {
        ipoib_ndo_uninit(dev);
        return -12;
    }
    dev->registered = true;
    shim_netdev_update_features(dev);
    devs.push_back(dev);
    SIM_CHECK(by_party_.emplace(index(dev->party), dev).second, "%s is there twice", dev->name.c_str());
    return 0;
}

void Stack::unregister_dev(net_device* dev)
{
    SIM_CHECK(dev->registered, "%s is unregistered twice", dev->name.c_str());
    if (dev->up)
        close(dev);
    dev->registered = false;
    std::erase(devs, dev);
    by_party_.erase(index(dev->party));
    dev->multicast.clear();
    synchronize_rcu();
    check_sums(dev);
    ipoib_ndo_uninit(dev);
    going.push_back(dev);
}

void Stack::end(net_device* dev)
{
    // Holders are notified again, under RTNL.
    if (dev->holds)
        const RtnlGuard rtnl;
    world->scheduler.wait(&dev->holds, "a netdev to be let go", [dev] { return dev->holds == 0; });
    ipoib_netdev_gone(dev);
    free_dev(dev);
}

void Stack::free_dev(net_device* dev)
{
    SIM_CHECK(dev->napis.empty(), "a netdev is freed with NAPI contexts");
    dev->owner = nullptr;
    world->memory.hold("netdev", -1);
}

int Stack::open(net_device* dev)
{
    SIM_CHECK(dev->registered, "a netdev is opened that is not registered");
    if (dev->up)
        return 0;
    dev->running = true;
    if (const int error = ipoib_ndo_open(dev)) {
        dev->running = false;
        return error;
    }
    dev->up = true;
    {
        const Bh bh;
        world->lockdep.acquire(Lockdep::addresses, &dev->multicast);
        ipoib_ndo_set_rx_mode(dev);
        world->lockdep.release(&dev->multicast);
    }
    if (dev->carrier)
        activate(dev);
    return 0;
}

void Stack::close(net_device* dev)
{
    if (!dev->up)
        return;
    dev->running = false;
    deactivate(dev);
    synchronize_rcu();
    ipoib_ndo_stop(dev);
    dev->up = false;
    check_sums(dev);
}

void Stack::activate(net_device* dev)
{
    dev->active = true;
    dev->active_since = world->scheduler.now();
    for (TransmitQueue& queue : dev->queues)
        queue.last_sent = queue.stuck_since = queue.forgotten_since = dev->active_since;
}

void Stack::deactivate(net_device* dev)
{
    dev->active = false;
    empty_queues(dev, 0);
}

void Stack::empty_queues(net_device* dev, unsigned int first)
{
    for (unsigned int i = first; i < dev->queues.size(); ++i) {
        TransmitQueue& queue = dev->queues[i];
        for (; !queue.packets.empty(); queue.packets.pop_front())
            lose(queue.packets.front());
        world->scheduler.wait(&queue, "a queue to stop", [&queue] { return !queue.runs && !queue.transmitter; });
    }
}

void Stack::carrier(net_device* dev, bool on)
{
    world->scheduler.point();
    if (std::exchange(dev->carrier, on) == on || !dev->registered || std::exchange(dev->linkwatch, true))
        return;
    SIM_NOTE("%s: carrier %s", dev->name.c_str(), on ? "on" : "off");
    Random& random = world->scheduler.random();
    world->scheduler.after(random.one_in(2) ? random.below(10 * millisecond) : random.below(second), [this, dev] {
        world->scheduler.spawn("linkwatch", Fiber::Kind::process, [this, dev] { watch_link(dev); });
    });
}

void Stack::watch_link(net_device* dev)
{
    const RtnlGuard rtnl;
    dev->linkwatch = false;
    if (dev->registered && dev->up) {
        if (!dev->carrier)
            deactivate(dev);
        else if (!dev->active)
            activate(dev);
    }
}

void Stack::check_sums(net_device* dev)
{
    shim_stats stats{};
    ipoib_ndo_get_stats(dev, &stats);
    SIM_CHECK(dev->handed == stats.tx_packets + stats.tx_dropped + dev->again,
              "%s: %llu packets handed over, %llu of them again, but %llu sent and %llu dropped", dev->name.c_str(),
              static_cast<unsigned long long>(dev->handed), static_cast<unsigned long long>(dev->again),
              static_cast<unsigned long long>(stats.tx_packets), static_cast<unsigned long long>(stats.tx_dropped));
    SIM_CHECK(dev->came == stats.rx_packets, "%s: %llu packets came up, %llu are counted", dev->name.c_str(),
              static_cast<unsigned long long>(dev->came), static_cast<unsigned long long>(stats.rx_packets));
    const auto same = [dev](const char* what, std::uint64_t counted, std::uint64_t seen) {
        SIM_CHECK(counted == seen, "%s: %s is %llu, and %llu were seen", dev->name.c_str(), what,
                  static_cast<unsigned long long>(counted), static_cast<unsigned long long>(seen));
    };
    same("tx_packets", stats.tx_packets, dev->sent_packets);
    same("tx_bytes", stats.tx_bytes, dev->sent_payload);
    same("tx_dropped", stats.tx_dropped, dev->dropped + dev->too_long);
    same("tx_errors", stats.tx_errors, dev->bad_sends + dev->too_long);
    same("rx_bytes", stats.rx_bytes, dev->came_bytes);
    same("multicast", stats.multicast, dev->came_multicast);
    same("rx_errors", stats.rx_errors, dev->bad_receives);
    SIM_CHECK(stats.rx_dropped >= dev->starved && stats.rx_dropped <= dev->starved + dev->starved_of_large,
              "%s: rx_dropped is %llu; there was no memory for %llu packets, and for %llu large pieces",
              dev->name.c_str(), static_cast<unsigned long long>(stats.rx_dropped),
              static_cast<unsigned long long>(dev->starved), static_cast<unsigned long long>(dev->starved_of_large));
    // Own packets to groups must not be delivered.
    const std::uint64_t silent = dev->good_receives - dev->came - stats.rx_dropped;
    SIM_CHECK(silent <= dev->echoes && silent + dev->came_own + stats.rx_dropped >= dev->echoes,
              "%s: %llu packets did not come up, of %llu from itself", dev->name.c_str(),
              static_cast<unsigned long long>(silent), static_cast<unsigned long long>(dev->echoes));
}

// Transmission

void Stack::lock_transmit(net_device* dev, unsigned int queue)
{
    Fiber*& transmitter = dev->queues[queue].transmitter;
    shim_local_bh_disable();
    world->scheduler.point();
    world->lockdep.acquire(Lockdep::transmit, &transmitter);
    world->scheduler.wait(&transmitter, "the transmit lock", [&transmitter] { return !transmitter; });
    transmitter = world->scheduler.current();
}

void Stack::unlock_transmit(net_device* dev, unsigned int queue)
{
    Fiber*& transmitter = dev->queues[queue].transmitter;
    SIM_CHECK(transmitter == world->scheduler.current(), "the transmit lock is not held");
    transmitter = nullptr;
    world->lockdep.release(&transmitter);
    world->scheduler.wake(&transmitter);
    world->scheduler.wake(&dev->queues[queue]);
    shim_local_bh_enable();
}

bool Stack::within_transmit(const net_device* dev) const
{
    return std::any_of(dev->queues.begin(), dev->queues.end(), [](const TransmitQueue& queue) {
        return queue.transmitter && queue.transmitter == world->scheduler.current();
    });
}

void Stack::lose(sk_buff* skb)
{
    excuse(skb);
    skb_free(skb);
}

unsigned int Stack::enqueue(net_device* dev, sk_buff* skb)
{
    const int selected = dev->real_queues > 1 ? ipoib_ndo_select_queue(skb, dev) : 0;
    // The core chooses by the packet's flow, and uses the first queue for a number that is not in use any more.
    unsigned int queue = selected < 0 ? shim_skb_get_hash(skb) % dev->real_queues : static_cast<unsigned int>(selected);
    if (queue >= dev->real_queues)
        queue = 0;
    if (!dev->active || dev->queues[queue].packets.size() >= dev->queue_length) {
        lose(skb);
    } else {
        note_order(skb);
        dev->queues[queue].packets.push_back(skb);
    }
    return queue;
}

void Stack::transmit(net_device* dev, sk_buff* skb)
{
    SIM_CHECK(world->scheduler.current()->bh > 0, "dev_queue_xmit with bottom halves on");
    run_queue(dev, enqueue(dev, skb));
}

void Stack::transmit(net_device* dev, const std::vector<sk_buff*>& packets)
{
    SIM_CHECK(world->scheduler.current()->bh > 0, "dev_queue_xmit with bottom halves on");
    std::set<unsigned int> used;
    for (sk_buff* skb : packets)
        used.insert(enqueue(dev, skb));
    for (const unsigned int queue : used)
        run_queue(dev, queue);
}

bool Stack::transmit_directly(net_device* dev, unsigned int queue, sk_buff* skb)
{
    lock_transmit(dev, queue);
    // The core counts what it drops because the device is down.
    const bool stopped = dev->active && dev->queues[queue].stopped;
    if (dev->active && !stopped)
        hand_over(dev, queue, skb);
    else
        lose(skb);
    unlock_transmit(dev, queue);
    return !stopped;
}

void Stack::hand_over(net_device* dev, unsigned int queue, sk_buff* skb)
{
    skb->tx_queue = queue;
    ++dev->handed;
    shim_rcu_read_lock();
    ipoib_ndo_start_xmit(skb, dev);
    shim_rcu_read_unlock();
    dev->queues[queue].last_sent = world->scheduler.now();
}

void Stack::schedule_queue(net_device* dev, unsigned int queue)
{
    if (std::exchange(dev->queues[queue].scheduled, true))
        return;
    world->scheduler.after(world->scheduler.random().below(20 * microsecond), [this, dev, queue] {
        world->scheduler.spawn("queue of " + dev->name, Fiber::Kind::softirq, [this, dev, queue] {
            dev->queues[queue].scheduled = false;
            run_queue(dev, queue);
        });
    });
}

void Stack::run_queue(net_device* dev, unsigned int number)
{
    TransmitQueue& queue = dev->queues[number];
    if (queue.runs)
        return;
    queue.runs = true;
    Fiber* self = world->scheduler.current();
    while (dev->active && !queue.packets.empty() && !queue.xoff()) {
        std::deque<sk_buff*> batch;
        for (auto left = world->scheduler.random().between(1, 8); left && !queue.packets.empty(); --left) {
            sk_buff* skb = queue.packets.front();
            queue.packets.pop_front();
            // A packet that the driver does not segment is lost here; the stack would segment it.
            if (skb->segments > 1 && (!dev->segments || skb->segments > dev->max_segments))
                lose(skb);
            else
                batch.push_back(skb);
        }
        lock_transmit(dev, number);
        // Only the driver ends a batch: a packet marked with more is followed by another one, whatever the limit.
        const bool begun = !queue.xoff();
        while (begun && !batch.empty() && !queue.stopped) {
            sk_buff* skb = batch.front();
            batch.pop_front();
            self->more = !batch.empty();
            hand_over(dev, number, skb);
            self->more = false;
        }
        unlock_transmit(dev, number);
        // A packet that met a stopped queue is the first of the next batch.
        for (; !batch.empty(); batch.pop_back())
            if (dev->active)
                queue.packets.push_front(batch.back());
            else
                skb_free(batch.back());
    }
    queue.runs = false;
    world->scheduler.wake(&queue);
}

// Checks that a sent packet announced a new address.
void Stack::check_told(const net_device* dev)
{
    if (!dev->untold_since || !dev->up || !dev->active || !dev->carrier)
        return;
    const Time since = std::max(dev->untold_since, dev->active_since);
    SIM_CHECK(world->scheduler.now() - since < max_untold, "%s: its new address is not announced", dev->name.c_str());
}

// Checks that the completion queue has the moderation that the user set, unless RTNL is held: the setting may be
// changing.
void Stack::check_moderation(const net_device* dev)
{
    if (dev->adaptive || world->rtnl.owner || !dev->ca->moderates)
        return;
    for (const auto& [_, qp] : dev->ca->qps) {
        const ib_cq& cq = *qp->recv_cq;
        SIM_CHECK(cq.dev != dev || (cq.moderated_usecs == dev->usecs && cq.moderated_frames == dev->frames),
                  "%s: moderation of %u us and %u frames, and %u and %u is in force", dev->name.c_str(), dev->usecs,
                  dev->frames, cq.moderated_usecs, cq.moderated_frames);
    }
}

void Stack::watch_queue(net_device* dev, unsigned int number, bool works)
{
    const Time now = world->scheduler.now();
    TransmitQueue& queue = dev->queues[number];
    if (!works || !queue.xoff())
        queue.stuck_since = now;
    if (!works || queue.xoff() || queue.packets.empty() || queue.runs || queue.scheduled)
        queue.forgotten_since = now;
    SIM_CHECK(now - queue.stuck_since < max_stop, "%s: the transmit queue is lost (stopped %d, limited %d)",
              dev->name.c_str(), queue.stopped, queue.limited);
    SIM_CHECK(now - queue.forgotten_since < max_oblivion, "%s: %zu packets wait in a queue that is not run",
              dev->name.c_str(), queue.packets.size());
    // A packet that is being transmitted may have stopped the queue; last_sent becomes its time afterwards.
    if (!works || !queue.xoff() || queue.transmitter || now - queue.last_sent < watchdog)
        return;
    SIM_CHECK(now < dev->ca->excused_until, "%s: a transmit timeout without a fault", dev->name.c_str());
    queue.last_sent = now;
    world->scheduler.spawn("watchdog", Fiber::Kind::softirq, [this, dev, &queue, number] {
        lock_transmit(dev, number);
        if (dev->active && dev->carrier && queue.xoff())
            ipoib_ndo_tx_timeout(dev, number);
        unlock_transmit(dev, number);
    });
}

void Stack::watch()
{
    const Time now = world->scheduler.now();
    std::unordered_set<const net_device*> working;
    for (net_device* dev : devs) {
        const bool works = dev->up && dev->active && dev->carrier;
        check_told(dev);
        check_moderation(dev);
        if (works)
            working.insert(dev);
        for (unsigned int i = 0; i < dev->queues.size(); ++i)
            watch_queue(dev, i, works);
    }
    for (const auto& [_, cq] : world->cqs) {
        if (cq->entries.empty() || now - cq->entries.front().since < max_unseen)
            continue;
        SIM_CHECK(!working.count(cq->dev), "%s: a completion waits, and is not polled", cq->dev->name.c_str());
    }
}

} // namespace sim
