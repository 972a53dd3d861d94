// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// include/shim/netdevice.h: one field or one step of the kernel each.
#include "netdevice.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "world.hpp"

using namespace sim;

namespace {

// One call of a poll function, until it is completed: the tail of one may overlap the next.
struct Poll {
    bool completed = false, again = false;
};

} // namespace

struct shim_napi {
    std::uint32_t magic;
    int (*poll)(void*, int);
    void* context;
    net_device* dev;
    // NAPI_STATE_SCHED, MISSED, DISABLE.
    bool scheduled, missed, disabling;
    Poll* running;
    const Fiber* runner;
    // Packets held by GRO.
    std::vector<sk_buff*>* held;
};

namespace {

constexpr std::uint32_t napi_magic = 0x4a914a91;

void check(const shim_napi* napi) { SIM_CHECK(napi->magic == napi_magic, "no NAPI context"); }
void need_rtnl(const char* what)
{
    SIM_CHECK(world->rtnl.owner && world->rtnl.owner == world->scheduler.current(), "%s without RTNL", what);
}
void need_napi_lock(const net_device* dev)
{
    SIM_CHECK(dev->napi_lock_owner == world->scheduler.current(), "a NAPI context is changed without its lock");
}

void start_poll(shim_napi* napi);

// Delivers the packets that GRO holds.
void flush(shim_napi* napi)
{
    for (sk_buff* skb : std::exchange(*napi->held, {}))
        world->stack.receive(napi->dev, skb);
}

void poll(shim_napi* napi)
{
    constexpr int weight = 64;
    check(napi);
    SIM_CHECK(!napi->running, "a NAPI context is polled twice at a time");
    Poll here;
    napi->running = &here;
    napi->runner = world->scheduler.current();
    world->scheduler.current()->polls = napi->dev;
    const int done = napi->poll(napi->context, weight);
    SIM_CHECK(done >= 0 && done <= weight, "a poll handled %d of %d", done, weight);
    if (here.completed) {
        SIM_CHECK(done < weight, "a poll used up its budget and is completed");
        return;
    }
    napi->running = nullptr;
    SIM_CHECK(done == weight || here.again, "a poll ends below its budget and is not completed");
    if (done == weight && napi->disabling) {
        flush(napi);
        napi->scheduled = false;
        world->scheduler.wake(napi);
        return;
    }
    start_poll(napi);
}

void start_poll(shim_napi* napi)
{
    Random& random = world->scheduler.random();
    const Time late = random.one_in(16) ? random.log_between(microsecond, 3 * millisecond) : random.below(microsecond);
    world->scheduler.after(late, [napi] {
        world->scheduler.spawn("poll of " + napi->dev->name, Fiber::Kind::softirq, [napi] { poll(napi); });
    });
}

} // namespace

bool sim::may_poll(const shim_napi* napi) { return !napi->disabling; }

// NAPI

void shim_napi_lock(net_device* dev)
{
    may_sleep("netdev_lock");
    world->lockdep.acquire(Lockdep::napis, &dev->napi_lock_owner);
    world->scheduler.wait(&dev->napi_lock_owner, "NAPI lock", [dev] { return !dev->napi_lock_owner; });
    dev->napi_lock_owner = world->scheduler.current();
}
void shim_napi_unlock(net_device* dev)
{
    need_napi_lock(dev);
    for (const shim_napi* napi : dev->napis)
        SIM_CHECK(!napi->disabling, "the NAPI lock is released while a context is disabled");
    dev->napi_lock_owner = nullptr;
    world->lockdep.release(&dev->napi_lock_owner);
    world->scheduler.wake(&dev->napi_lock_owner);
}
void shim_netif_napi_add(net_device* dev, shim_napi* napi, int (*function)(void*, int), void* context)
{
    need_napi_lock(dev);
    // Disabled at first.
    *napi = {napi_magic, function, context, dev, true, false, true, nullptr, nullptr, new std::vector<sk_buff*>};
    dev->napis.push_back(napi);
}
void shim_netif_napi_add_tx(net_device* dev, shim_napi* napi, int (*function)(void*, int), void* context)
{
    shim_netif_napi_add(dev, napi, function, context);
}
void shim_netif_napi_del(shim_napi* napi)
{
    check(napi);
    need_napi_lock(napi->dev);
    SIM_CHECK(napi->disabling && napi->scheduled && !napi->running, "a NAPI context is removed while enabled");
    std::erase(napi->dev->napis, napi);
    SIM_CHECK(!napi->dev->registered || std::ranges::count(napi->dev->queue_napis, napi) == 0,
              "a NAPI context is removed that a queue is associated with");
    // The tail of a poll may still run.
    synchronize_rcu();
    SIM_CHECK(napi->held->empty(), "a NAPI context is removed with packets that GRO holds");
    delete napi->held;
    napi->magic = 0;
}
void shim_netif_queue_set_napi(net_device* dev, unsigned int queue, shim_napi* napi)
{
    need_rtnl("netif_queue_set_napi");
    SIM_CHECK(!napi || (napi->magic == napi_magic && napi->dev == dev),
              "a queue of %s is associated with a NAPI context that was removed", dev->name.c_str());
    dev->queue_napis.at(queue) = napi;
}
void shim_napi_enable(shim_napi* napi)
{
    check(napi);
    need_napi_lock(napi->dev);
    SIM_CHECK(napi->disabling && napi->scheduled, "a NAPI context is enabled twice");
    napi->scheduled = napi->disabling = napi->missed = false;
    world->scheduler.point();
}
void shim_napi_disable(shim_napi* napi)
{
    may_sleep("napi_disable");
    check(napi);
    need_napi_lock(napi->dev);
    SIM_CHECK(!napi->disabling, "a NAPI context is disabled twice");
    napi->disabling = true;
    world->scheduler.wait(napi, "a NAPI poll to end", [napi] { return !napi->scheduled; });
    napi->scheduled = true;
}
void shim_napi_schedule(shim_napi* napi)
{
    world->scheduler.point();
    SIM_CHECK(napi->magic == napi_magic, "a NAPI context is scheduled that is gone");
    if (napi->disabling)
        return;
    if (std::exchange(napi->scheduled, true)) {
        napi->missed = true;
        return;
    }
    start_poll(napi);
}
bool shim_napi_complete_done(shim_napi* napi, int)
{
    check(napi);
    world->scheduler.point();
    SIM_CHECK(napi->running && napi->runner == world->scheduler.current(), "a poll is completed that does not run");
    if (std::exchange(napi->missed, false)) {
        // The next poll follows on the same processor.
        napi->running->again = true;
        return false;
    }
    flush(napi);
    napi->running->completed = true;
    napi->running = nullptr;
    napi->scheduled = false;
    world->scheduler.wake(napi);
    world->scheduler.point();
    return true;
}
void shim_napi_gro_receive(shim_napi* napi, sk_buff* skb)
{
    SIM_CHECK(napi->running && napi->runner == world->scheduler.current(), "a packet comes up outside a poll");
    world->scheduler.point();
    if (!napi->held->empty() || world->scheduler.random().one_in(4))
        napi->held->push_back(skb);
    else
        world->stack.receive(napi->dev, skb);
}
void shim_skb_mark_napi_id(sk_buff* skb, shim_napi* napi)
{
    SIM_CHECK(napi->running && napi->runner == world->scheduler.current(), "a packet comes up outside a poll");
    SIM_CHECK(napi->held->empty(), "a packet overtakes those that GRO holds");
    SIM_CHECK(skb->dev == napi->dev, "a packet comes up through another device's NAPI context");
}
void shim_netif_receive_skb(sk_buff* skb)
{
    world->scheduler.point();
    world->stack.receive(skb->dev, skb);
}
bool shim_napi_holds_packets(const shim_napi* napi) { return !napi->held->empty(); }

// The transmit queues

void shim_netif_tx_lock_bh(net_device* dev, unsigned int queue) { world->stack.lock_transmit(dev, queue); }
void shim_netif_tx_unlock_bh(net_device* dev, unsigned int queue) { world->stack.unlock_transmit(dev, queue); }
void shim_netif_tx_start_queue(net_device* dev, unsigned int queue)
{
    dev->queues.at(queue).stopped = false;
    world->scheduler.point();
}
void shim_netif_tx_stop_queue(net_device* dev, unsigned int queue)
{
    dev->queues.at(queue).stopped = true;
    world->scheduler.point();
}
void shim_netif_tx_wake_queue(net_device* dev, unsigned int queue)
{
    if (std::exchange(dev->queues.at(queue).stopped, false))
        world->stack.schedule_queue(dev, queue);
    world->scheduler.point();
}
bool shim_netif_xmit_stopped(const net_device* dev, unsigned int queue)
{
    world->scheduler.point();
    return dev->queues.at(queue).xoff();
}
unsigned int shim_helper_netif_tx_backlog(const net_device* dev, unsigned int queue)
{
    unsigned int bytes = 0;
    for (const sk_buff* skb : dev->queues.at(queue).packets)
        bytes += shim_skb_len(skb);
    world->scheduler.point();
    return bytes;
}
bool shim_netif_tx_queue_stopped(const net_device* dev, unsigned int queue)
{
    world->scheduler.point();
    return dev->queues.at(queue).stopped;
}
void shim_netif_tx_wake_all_queues(net_device* dev)
{
    for (unsigned int i = 0; i < dev->queues.size(); ++i)
        shim_netif_tx_wake_queue(dev, i);
}
void shim_netif_tx_disable(net_device* dev)
{
    for (unsigned int i = 0; i < dev->queues.size(); ++i) {
        world->stack.lock_transmit(dev, i);
        dev->queues[i].stopped = true;
        world->stack.unlock_transmit(dev, i);
    }
}
bool shim_netdev_tx_sent_queue(net_device* dev, unsigned int queue, unsigned int bytes, bool more)
{
    TransmitQueue& its = dev->queues.at(queue);
    its.sent_bytes += bytes;
    // A packet with more following does not reach the limit.
    if (!more && its.sent_bytes - its.completed_bytes > dev->limit_bytes)
        its.limited = true;
    world->scheduler.point();
    return !more || its.stopped;
}
void shim_netdev_tx_completed_queue(net_device* dev, unsigned int queue, unsigned int, unsigned int bytes)
{
    TransmitQueue& its = dev->queues.at(queue);
    SIM_CHECK(bytes <= its.sent_bytes - its.completed_bytes, "%u bytes complete, and %llu are in flight", bytes,
              static_cast<unsigned long long>(its.sent_bytes - its.completed_bytes));
    its.completed_bytes += bytes;
    world->scheduler.point();
    if (its.limited && its.sent_bytes - its.completed_bytes <= dev->limit_bytes) {
        its.limited = false;
        world->stack.schedule_queue(dev, queue);
    }
}
void shim_netdev_tx_reset_queue(net_device* dev, unsigned int queue)
{
    TransmitQueue& its = dev->queues.at(queue);
    its.sent_bytes = its.completed_bytes = 0;
    its.limited = false;
}
bool shim_netdev_xmit_more()
{
    const Fiber* fiber = world->scheduler.current();
    return fiber->more;
}
unsigned int shim_tx_queue_idle_ms(const net_device* dev, unsigned int queue)
{
    return static_cast<unsigned int>((world->scheduler.now() - dev->queues.at(queue).last_sent) / millisecond);
}

// Registration and end

net_device* shim_helper_alloc_netdev(ib_device* ca, std::uint32_t) { return world->stack.create(ca, nullptr, "ib%d"); }
net_device* shim_helper_alloc_child_netdev(ib_device* ca, std::uint32_t, net_device* parent, const char* name)
{
    return world->stack.create(ca, parent, name);
}
int shim_netif_set_real_num_rx_queues(net_device*, unsigned int) { return 0; }
unsigned int shim_netdev_num_rx_queues(const net_device*) { return SHIM_MAX_RX_QUEUES; }
void shim_netdev_queue_set_dql_min_limit(net_device*, unsigned int, unsigned int) {}
void shim_netdev_set_child(net_device*) {}
unsigned int shim_netdev_real_num_tx_queues(const net_device* dev) { return dev->real_queues; }
unsigned int shim_netdev_num_tx_queues(const net_device* dev) { return static_cast<unsigned int>(dev->queues.size()); }
int shim_netif_set_real_num_tx_queues(net_device* dev, unsigned int count)
{
    // The packets in the queues that go out of use are dropped.
    dev->real_queues = count;
    world->stack.empty_queues(dev, count);
    return 0;
}
void shim_helper_netdev_add_features(net_device* dev, unsigned int features)
{
    dev->can_segment = features & (SHIM_FEATURE_DRIVER_TSO | SHIM_FEATURE_TSO);
}
void shim_netif_set_tso_max_segs(net_device* dev, unsigned int segments)
{
    dev->max_segments = std::min(dev->max_segments, segments);
}
// Packets of the simulated stack have no more than 64 KiB.
void shim_netif_set_tso_max_size(net_device*, unsigned int) {}
unsigned int shim_netdev_tso_max_size(const net_device*) { return 65536; }
unsigned int shim_netdev_gso_max_segs(const net_device* dev) { return dev->max_segments; }
void shim_netdev_set_gso_max_segs(net_device* dev, unsigned int segments) { dev->max_segments = segments; }
void* shim_rdma_netdev_clnt_priv(const net_device* dev)
{
    SIM_CHECK(dev->owner, "%s has no owner (any more)", dev->name.c_str());
    return dev->owner;
}
void shim_rdma_netdev_set_clnt_priv(net_device* dev, void* owner) { dev->owner = owner; }
int shim_helper_register_netdevice(net_device* dev)
{
    need_rtnl("register_netdevice");
    return world->stack.register_dev(dev);
}
// A batch is the first of its netdevs; each one points to the next.
void shim_init_list_head(void* batch) { *static_cast<net_device**>(batch) = nullptr; }
void shim_unregister_netdevice_many(void* batch)
{
    while (net_device* dev = *static_cast<net_device**>(batch)) {
        *static_cast<net_device**>(batch) = dev->next_in_batch;
        shim_unregister_netdevice_queue(dev, nullptr);
    }
}
void shim_unregister_netdevice_queue(net_device* dev, void* batch)
{
    need_rtnl("unregister_netdevice");
    if (!batch) {
        world->stack.unregister_dev(dev);
        return;
    }
    net_device** last = static_cast<net_device**>(batch);
    while (*last)
        last = &(*last)->next_in_batch;
    *last = dev;
}
void shim_free_netdev(net_device* dev)
{
    SIM_CHECK(!dev->registered, "a registered netdev is freed");
    world->stack.free_dev(dev);
}
bool shim_netdev_is_ours(const net_device*) { return true; }
bool shim_netif_is_bond_slave(const net_device*) { return false; }
bool shim_netdev_iff_up(const net_device* dev) { return dev->up; }
void shim_dev_change_flags(net_device* dev, bool up)
{
    need_rtnl("dev_change_flags");
    if (up)
        (void)world->stack.open(dev);
    else
        world->stack.close(dev);
}
bool shim_netdev_need_ops_lock(const net_device*) { return false; }
void shim_netdev_lock_ops(net_device*) { need_rtnl("netdev_lock_ops"); }
void shim_netdev_unlock_ops(net_device*) {}
bool shim_ns_capable(const net_device*) { return true; }
bool shim_sscanf_int(const char* text, int* value) { return std::sscanf(text, "%i", value) == 1; }

// Fields

const char* shim_netdev_name(const net_device* dev) { return dev->name.c_str(); }
const std::uint8_t* shim_netdev_dev_addr(const net_device* dev) { return dev->address.data(); }
bool shim_netdev_addr_set_by_user(const net_device*) { return false; }
void shim_dev_addr_mod(net_device* dev, unsigned int offset, const void* address, unsigned int bytes)
{
    if (dev->registered)
        need_rtnl("dev_addr_mod");
    if (std::memcmp(dev->address.data() + offset, address, bytes) != 0) {
        dev->address_changed = world->scheduler.now();
        // A change of the GID alone needs no announcement.
        if (dev->registered && offset == 0 && std::memcmp(dev->address.data(), address, 4) != 0)
            dev->untold_since = world->scheduler.now();
    }
    std::memcpy(dev->address.data() + offset, address, bytes);
}
bool shim_helper_netdev_has_address(net_device*, const sockaddr*) { return false; }
void shim_dev_hold(net_device* dev) { ++dev->holds; }
void shim_dev_put(net_device* dev)
{
    --dev->holds;
    world->scheduler.wake(&dev->holds);
}
net_device* shim_helper_netdev_hold_master(net_device* dev)
{
    ++dev->holds;
    return dev;
}
void shim_helper_notify_changeaddr(net_device* dev)
{
    if (dev->registered)
        need_rtnl("NETDEV_CHANGEADDR");
    world->stack.address_changed(dev);
}
void shim_netdev_notify_peers(net_device* dev)
{
    need_rtnl("NETDEV_NOTIFY_PEERS");
    world->stack.notify_peers(dev);
}
std::uint8_t* shim_netdev_broadcast(net_device* dev) { return dev->broadcast.data(); }
unsigned int shim_netdev_mtu(const net_device* dev) { return dev->mtu; }
void shim_netdev_set_mtu(net_device* dev, unsigned int mtu) { dev->mtu = mtu; }
int shim_dev_set_mtu(net_device* dev, unsigned int mtu)
{
    need_rtnl("dev_set_mtu");
    return mtu == dev->mtu ? 0 : ipoib_ndo_change_mtu(dev, static_cast<int>(mtu));
}
bool shim_netdev_has_rxcsum(const net_device* dev) { return dev->rx_checksum; }
bool shim_netdev_has_gro_hw(const net_device* dev) { return dev->gro_hw; }
void shim_netdev_update_features(net_device* dev)
{
    need_rtnl("netdev_update_features");
    dev->segments = dev->can_segment && ipoib_offloads_sends(dev);
}
void shim_helper_netdev_for_each_mc_addr(net_device* dev, void (*visit)(void*, const std::uint8_t*), void* context)
{
    const Bh bh;
    world->lockdep.acquire(Lockdep::addresses, &dev->multicast);
    // The lock is the list's: it does not change meanwhile.
    const auto addresses = dev->multicast;
    for (const auto& address : addresses)
        visit(context, address.bytes);
    world->lockdep.release(&dev->multicast);
}
void shim_netif_carrier_on(net_device* dev) { world->stack.carrier(dev, true); }
void shim_netif_carrier_off(net_device* dev) { world->stack.carrier(dev, false); }
unsigned long shim_arp_tbl_gc_interval() { return 30 * World::jiffies_per_second; }

int shim_scnprintf(char* buffer, std::size_t bytes, const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int written = std::vsnprintf(buffer, bytes, format, arguments);
    va_end(arguments);
    return written;
}
