// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The netdev, its queue, NAPI and the processors that run it, packets and their pages.
#include "kernel.hpp"

#include <cstdlib>
#include <new>

#include <gtest/gtest.h>
#include <ipoib/encapsulation.hpp>

// netdevice.h

static std::mutex rtnl;

void shim_rtnl_lock() { rtnl.lock(); }
void shim_rtnl_unlock()
{
    net_device* gone = std::exchange(Machine::get().going, false) ? Machine::get().netdev : nullptr;
    rtnl.unlock();
    if (gone)
        ipoib_netdev_gone(gone);
}

net_device* shim_helper_alloc_netdev(ib_device*, std::uint32_t) { return Machine::get().netdev = new net_device; }
void shim_free_netdev(net_device*) {}
void shim_dev_hold(net_device*) {}
void shim_dev_put(net_device*) {}
void* shim_rdma_netdev_clnt_priv(const net_device* dev) { return dev->owner; }
void shim_rdma_netdev_set_clnt_priv(net_device* dev, void* owner) { dev->owner = owner; }
int shim_netif_set_real_num_rx_queues(net_device*, unsigned int) { return 0; }
unsigned int shim_netdev_num_rx_queues(const net_device*) { return SHIM_MAX_RX_QUEUES; }
unsigned int shim_netdev_real_num_tx_queues(const net_device* dev) { return dev->real_queues.load(); }
unsigned int shim_netdev_num_tx_queues(const net_device*) { return SHIM_MAX_TX_QUEUES; }
int shim_netif_set_real_num_tx_queues(net_device* dev, unsigned int count)
{
    dev->real_queues.store(count);
    return 0;
}
bool shim_netif_is_bond_slave(const net_device*) { return false; }
void shim_helper_netdev_add_features(net_device*, unsigned int) {}
int shim_helper_register_netdevice(net_device* dev) { return ipoib_ndo_init(dev); }
// Unregistering a single netdev takes effect at once.
void shim_init_list_head(void*) {}
void shim_unregister_netdevice_many(void*) {}
void shim_unregister_netdevice_queue(net_device* dev, void*)
{
    if (dev->up.exchange(false))
        (void)ipoib_ndo_stop(dev);
    ipoib_ndo_uninit(dev);
    Machine::get().going = true;
}
bool shim_netdev_need_ops_lock(const net_device*) { return false; }
void shim_netdev_lock_ops(net_device*) {}
void shim_netdev_unlock_ops(net_device*) {}
bool shim_netdev_is_ours(const net_device*) { return true; }
bool shim_netdev_iff_up(const net_device* dev) { return dev->up.load(); }
const char* shim_netdev_name(const net_device*) { return "ib0"; }
const std::uint8_t* shim_netdev_dev_addr(const net_device* dev) { return dev->address; }
bool shim_netdev_addr_set_by_user(const net_device*) { return false; }
void shim_dev_addr_mod(net_device* dev, unsigned int offset, const void* address, unsigned int bytes)
{
    std::memcpy(dev->address + offset, address, bytes);
}
void shim_helper_notify_changeaddr(net_device*) {}
void shim_netdev_notify_peers(net_device*) {}
std::uint8_t* shim_netdev_broadcast(net_device* dev) { return dev->broadcast; }
unsigned int shim_netdev_mtu(const net_device* dev) { return dev->mtu.load(); }
void shim_netdev_set_mtu(net_device* dev, unsigned int mtu) { dev->mtu.store(mtu); }
int shim_dev_set_mtu(net_device* dev, unsigned int mtu) { return ipoib_ndo_change_mtu(dev, static_cast<int>(mtu)); }
bool shim_netdev_has_rxcsum(const net_device*) { return true; }
bool shim_netdev_has_gro_hw(const net_device*) { return false; }
void shim_netdev_update_features(net_device*) {}
void shim_netif_set_tso_max_size(net_device*, unsigned int) {}
unsigned int shim_netdev_tso_max_size(const net_device*) { return 65536; }
void shim_helper_netdev_for_each_mc_addr(net_device*, void (*)(void*, const std::uint8_t*), void*) {}
void shim_netif_carrier_on(net_device* dev) { dev->carrier.store(true); }
void shim_netif_carrier_off(net_device* dev) { dev->carrier.store(false); }
unsigned long shim_arp_tbl_gc_interval() { return 50; }

// The queues. Their state bits order nothing by itself, as the kernel's bit operations without a result do not.

void shim_netif_tx_lock_bh(net_device* dev, unsigned int queue)
{
    shim_local_bh_disable();
    dev->queues[queue].lock.lock();
}
void shim_netif_tx_unlock_bh(net_device* dev, unsigned int queue)
{
    dev->queues[queue].lock.unlock();
    shim_local_bh_enable();
}
void shim_netif_tx_start_queue(net_device* dev, unsigned int queue)
{
    dev->queues[queue].stopped.store(false, std::memory_order_relaxed);
}
void shim_netif_tx_stop_queue(net_device* dev, unsigned int queue)
{
    dev->queues[queue].stopped.store(true, std::memory_order_relaxed);
}
void shim_netif_tx_wake_queue(net_device* dev, unsigned int queue) { shim_netif_tx_start_queue(dev, queue); }
void shim_netif_tx_wake_all_queues(net_device* dev)
{
    for (TransmitQueue& queue : dev->queues)
        queue.stopped.store(false, std::memory_order_relaxed);
}
bool shim_netif_tx_queue_stopped(const net_device* dev, unsigned int queue)
{
    return dev->queues[queue].stopped.load(std::memory_order_relaxed);
}
bool shim_netif_xmit_stopped(const net_device* dev, unsigned int queue)
{
    return shim_netif_tx_queue_stopped(dev, queue);
}
// Without a qdisc.
unsigned int shim_helper_netif_tx_backlog(const net_device*, unsigned int) { return 0; }
void shim_netif_tx_disable(net_device* dev)
{
    for (TransmitQueue& queue : dev->queues) {
        std::lock_guard guard(queue.lock);
        queue.stopped.store(true, std::memory_order_relaxed);
    }
}
static thread_local bool more_follow = false;
bool shim_netdev_xmit_more() { return more_follow; }
bool shim_netdev_tx_sent_queue(net_device*, unsigned int, unsigned int, bool more) { return !more; }
void shim_netdev_tx_completed_queue(net_device*, unsigned int, unsigned int, unsigned int) {}
void shim_netdev_tx_reset_queue(net_device*, unsigned int) {}
void shim_netdev_queue_set_dql_min_limit(net_device*, unsigned int, unsigned int) {}
// Called only when sends have stalled.
unsigned int shim_tx_queue_idle_ms(const net_device*, unsigned int)
{
    Machine::get().stalls.fetch_add(1);
    return 0;
}

// Transmits under the queue's lock. Returns false if the queue is stopped; the packet remains the caller's.
static bool transmit_on(unsigned int queue, sk_buff* skb, bool more)
{
    if (shim_netif_tx_queue_stopped(skb->dev, queue))
        return false;
    skb->tx_queue = queue;
    more_follow = more;
    ipoib_ndo_start_xmit(skb, skb->dev);
    more_follow = false;
    return true;
}

// The packets of a batch are sent on the queue of the first one, whose lock is held meanwhile.
bool transmit(sk_buff* skb, bool more)
{
    constexpr int none = -1;
    static thread_local int batch = none;
    net_device& dev = *skb->dev;
    if (batch == none) {
        shim_local_bh_disable();
        const unsigned int queues = dev.real_queues.load();
        batch = queues > 1 ? ipoib_ndo_select_queue(skb, &dev) : 0;
        if (batch < 0)
            batch = static_cast<int>(shim_skb_get_hash(skb) % queues);
        dev.queues[batch].lock.lock();
    }
    const auto number = static_cast<unsigned int>(batch);
    const bool sent = transmit_on(number, skb, more);
    if (!more || shim_netif_tx_queue_stopped(&dev, number)) {
        dev.queues[std::exchange(batch, none)].lock.unlock();
        shim_local_bh_enable();
    }
    return sent;
}

bool transmit_soon(sk_buff* skb, bool more)
{
    const unsigned long deadline = shim_jiffies() + patience_ms;
    for (unsigned int times = 0; !transmit(skb, more); ++times) {
        if (kernel::reached(deadline, shim_jiffies())) {
            free_packet(skb);
            return false;
        }
        rest(times);
    }
    return true;
}

// NAPI

struct shim_napi {
    enum : unsigned int { scheduled = 1, missed = 2, disabled = 4, running = 8 };
    int (*poll)(void*, int);
    void* context;
    std::atomic<unsigned int> state;
    unsigned int place;
};
static_assert(sizeof(shim_napi) <= SHIM_SIZEOF_NAPI);

namespace {

std::atomic<shim_napi*> contexts[64];
// The poll that runs on this processor has completed.
thread_local bool completed;

} // namespace

void shim_napi_lock(net_device*) {}
void shim_napi_unlock(net_device*) {}
void shim_netif_napi_add(net_device*, shim_napi* napi, int (*poll)(void*, int), void* context)
{
    new (napi) shim_napi{poll, context, shim_napi::scheduled | shim_napi::running, 0};
    for (shim_napi* none = nullptr; !contexts[napi->place].compare_exchange_strong(none, napi); none = nullptr)
        ++napi->place;
}
void shim_netif_napi_add_tx(net_device* dev, shim_napi* napi, int (*poll)(void*, int), void* context)
{
    shim_netif_napi_add(dev, napi, poll, context);
}
void shim_netif_queue_set_napi(net_device*, unsigned int, shim_napi*) {}
void shim_netif_napi_del(shim_napi* napi)
{
    contexts[napi->place].store(nullptr);
    shim_synchronize_net();
}
void shim_napi_enable(shim_napi* napi) { napi->state.store(0); }
void shim_napi_disable(shim_napi* napi)
{
    unsigned int state = napi->state.fetch_or(shim_napi::disabled) | shim_napi::disabled;
    while (state & shim_napi::scheduled ||
           !napi->state.compare_exchange_weak(state, state | shim_napi::scheduled | shim_napi::running)) {
        std::this_thread::yield();
        state = napi->state.load();
    }
}
void shim_napi_schedule(shim_napi* napi)
{
    unsigned int state = napi->state.load();
    while (!(state & shim_napi::disabled) &&
           !napi->state.compare_exchange_weak(state, state & shim_napi::scheduled ? state | shim_napi::missed
                                                                                  : state | shim_napi::scheduled)) {}
}
bool shim_napi_complete_done(shim_napi* napi, int)
{
    unsigned int state = napi->state.load();
    unsigned int next;
    do {
        next = state & ~unsigned(shim_napi::missed | shim_napi::running | shim_napi::scheduled);
        if (state & shim_napi::missed)
            next |= shim_napi::scheduled;
    } while (!napi->state.compare_exchange_weak(state, next));
    completed = true;
    return !(next & shim_napi::scheduled);
}
void shim_napi_gro_receive(shim_napi*, sk_buff* skb)
{
    skb->dev->received.fetch_add(1, std::memory_order_relaxed);
    free_packet(skb);
}
void shim_skb_mark_napi_id(sk_buff*, shim_napi*) {}
void shim_netif_receive_skb(sk_buff* skb) { shim_napi_gro_receive(nullptr, skb); }
bool shim_napi_holds_packets(const shim_napi*) { return false; }

bool poll_all()
{
    bool any = false;
    shim_rcu_read_lock();
    for (auto& place : contexts) {
        shim_napi* const napi = place.load();
        if (!napi)
            continue;
        unsigned int state = napi->state.load(std::memory_order_relaxed);
        if (!(state & shim_napi::scheduled) || state & shim_napi::running ||
            !napi->state.compare_exchange_strong(state, state | shim_napi::running))
            continue;
        any = true;
        completed = false;
        (void)napi->poll(napi->context, 64);
        if (completed)
            continue;
        // A full budget means more work, unless polling is disabled.
        if (napi->state.load() & shim_napi::disabled)
            (void)shim_napi_complete_done(napi, 0);
        else
            napi->state.fetch_and(~unsigned(shim_napi::running));
    }
    shim_rcu_read_unlock();
    return any;
}

// skbuff.h

sk_buff* make_packet(net_device& dev, const ipoib::HwAddr& to, unsigned int payload)
{
    const unsigned int room = 64;
    auto* memory = static_cast<std::uint8_t*>(std::calloc(1, room + payload));
    auto* skb = new sk_buff{memory, memory + room, payload, nullptr, &dev, 0, 0, {}};
    EXPECT_EQ(ipoib_header_create(skb, 0x0800, to.bytes), IPOIB_HEADER_BYTES);
    return skb;
}
void free_packet(sk_buff* skb)
{
    for (unsigned int i = 0; i < skb->page_count; ++i)
        shim_put_page(skb->pages[i]);
    std::free(skb->memory);
    delete skb;
}

unsigned char* shim_skb_data(const sk_buff* skb) { return skb->data; }
unsigned int shim_skb_len(const sk_buff* skb) { return skb->len; }
unsigned int shim_skb_headlen(const sk_buff* skb) { return skb->len; }
unsigned int shim_skb_nr_frags(const sk_buff*) { return 0; }
unsigned char* shim_skb_push(sk_buff* skb, unsigned int bytes)
{
    skb->len += bytes;
    return skb->data -= bytes;
}
unsigned char* shim_skb_pull(sk_buff* skb, unsigned int bytes)
{
    skb->len -= bytes;
    return skb->data += bytes;
}
void shim_skb_put(sk_buff* skb, unsigned int bytes) { skb->len += bytes; }
void shim_skb_reserve(sk_buff* skb, unsigned int bytes) { skb->data += bytes; }
void shim_helper_skb_pull_mac_header(sk_buff* skb, unsigned int bytes) { shim_skb_pull(skb, bytes); }
unsigned int shim_skb_gso_size(const sk_buff*) { return 0; }
bool shim_skb_checksum_partial(const sk_buff*) { return false; }
void shim_skb_set_protocol(sk_buff*, std::uint16_t) {}
void shim_skb_set_device(sk_buff* skb, net_device* dev) { skb->dev = dev; }
void shim_skb_record_rx_queue(sk_buff*, std::uint16_t) {}
void shim_skb_set_packet_type(sk_buff*, shim_packet_type) {}
void shim_skb_set_checksum_unnecessary(sk_buff*) {}
void shim_helper_skb_tx_timestamp(sk_buff*) {}
void shim_napi_consume_skb(sk_buff* skb, int) { free_packet(skb); }
void shim_kfree_skb_reason(sk_buff* skb, shim_drop) { free_packet(skb); }
void shim_dev_queue_xmit(sk_buff* skb, net_device* dev)
{
    skb->dev = dev;
    if (!transmit(skb))
        free_packet(skb);
}
bool shim_dev_direct_xmit(sk_buff* skb, unsigned int queue)
{
    shim_local_bh_disable();
    std::lock_guard guard(skb->dev->queues[queue].lock);
    const bool sent = transmit_on(queue, skb, false);
    if (!sent)
        free_packet(skb);
    shim_local_bh_enable();
    return sent;
}
unsigned int shim_skb_get_queue_mapping(const sk_buff* skb) { return skb->tx_queue; }
// Each length is a flow.
std::uint32_t shim_skb_get_hash(sk_buff* skb) { return skb->len * 0x9e3779b1; }
void shim_skb_dst_update_pmtu(sk_buff*, unsigned int) {}
void shim_helper_icmp_too_big(sk_buff* skb, net_device*, unsigned int) { free_packet(skb); }
void shim_skb_set_cb(sk_buff* skb, unsigned int note) { skb->note = note; }
unsigned int shim_skb_cb(const sk_buff* skb) { return skb->note; }
void shim_skb_orphan(sk_buff*) {}
int shim_skb_orphan_frags(sk_buff*) { return 0; }
sk_buff* shim_skb_next(const sk_buff* skb) { return skb->next; }
void shim_skb_set_next(sk_buff* skb, sk_buff* next) { skb->next = next; }

struct page_pool {
    unsigned int order;
};

page_pool* shim_page_pool_create(net_device*, shim_napi*, unsigned int, unsigned int order, bool)
{
    return new page_pool{order};
}
void shim_page_pool_destroy(page_pool* pool) { delete pool; }
void* shim_helper_page_pool_alloc(page_pool* pool) { return shim_get_free_pages(pool->order); }
// Pages have 4 KiB and links an MTU of 2048: buffers do not share pages.
void* shim_helper_page_pool_alloc_frag(page_pool*, unsigned int) { std::abort(); }
void shim_page_pool_put_full_page(page_pool*, void* page, bool) { shim_put_page(page); }
void* shim_get_free_pages(unsigned int order) { return std::malloc(std::size_t(shim_page_size()) << order); }
void shim_get_page(void*) { std::abort(); }
void shim_put_page(void* page) { std::free(page); }
sk_buff* shim_helper_napi_build_skb(void* page, unsigned int)
{
    return new sk_buff{nullptr, static_cast<std::uint8_t*>(page), 0, nullptr, nullptr, 0, 1, {page}};
}
sk_buff* shim_napi_alloc_skb(shim_napi*, unsigned int bytes)
{
    auto* memory = static_cast<std::uint8_t*>(std::malloc(bytes));
    return new sk_buff{memory, memory, 0, nullptr, nullptr, 0, 0, {}};
}
void shim_helper_skb_add_rx_frag(sk_buff* skb, void* page, unsigned int, unsigned int)
{
    skb->pages[skb->page_count++] = page;
}
void shim_skb_mark_for_recycle(sk_buff*) {}
unsigned int shim_skb_buffer_headroom() { return 64; }
unsigned int shim_skb_buffer_tailroom() { return 256; }
unsigned int shim_page_size() { return 4096; }
