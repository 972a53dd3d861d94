// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Netdevs, their queues and polls, and an HCA's rdma_netdev.
#include "fakes_inside.hpp"

#include <algorithm>
#include <cstdarg>

static_assert(sizeof(shim_napi) <= SHIM_SIZEOF_NAPI);

// netdevice.h

net_device* shim_helper_alloc_netdev(ib_device*, std::uint32_t)
{
    EXPECT_TRUE(world->rtnl);
    if (world->refuses("netdev_create"))
        return nullptr;
    auto* dev = new net_device;
    world->netdevs.push_back(dev);
    return dev;
}
void* shim_rdma_netdev_clnt_priv(const net_device* dev) { return dev->owner; }
void shim_rdma_netdev_set_clnt_priv(net_device* dev, void* owner) { dev->owner = owner; }
net_device* shim_helper_alloc_child_netdev(ib_device*, std::uint32_t, net_device*, const char* name)
{
    if (world->refuses("netdev_create_child"))
        return nullptr;
    auto* dev = new net_device;
    dev->name = name;
    world->netdevs.push_back(dev);
    return dev;
}
int shim_netif_set_real_num_rx_queues(net_device* dev, unsigned int count)
{
    EXPECT_TRUE(world->rtnl);
    if (world->refuses("netdev_use_rx_queues"))
        return -12;
    dev->rx_queues = count;
    return 0;
}
unsigned int shim_netdev_num_rx_queues(const net_device*) { return SHIM_MAX_RX_QUEUES; }
void shim_netdev_queue_set_dql_min_limit(net_device* dev, unsigned int queue, unsigned int bytes)
{
    dev->transmit_queues.at(queue).min_limit = bytes;
}
unsigned int shim_netdev_real_num_tx_queues(const net_device* dev) { return dev->tx_queues; }
unsigned int shim_netdev_num_tx_queues(const net_device*) { return SHIM_MAX_TX_QUEUES; }
int shim_netif_set_real_num_tx_queues(net_device* dev, unsigned int count)
{
    EXPECT_TRUE(world->rtnl);
    if (world->refuses("netdev_use_tx_queues"))
        return -12;
    dev->tx_queues = count;
    return 0;
}
void shim_helper_netdev_add_features(net_device* dev, unsigned int features) { dev->features |= features; }
void shim_netdev_set_child(net_device* dev)
{
    EXPECT_FALSE(dev->registered);
    dev->child = true;
}
// Lowers gso_max_segs to the limit, as the kernel does, and never raises it.
void shim_netif_set_tso_max_segs(net_device* dev, unsigned int segments)
{
    dev->segments_limit = segments;
    dev->max_segments = std::min(dev->max_segments, segments);
}
void shim_netif_set_tso_max_size(net_device* dev, unsigned int bytes) { dev->max_gso_bytes = bytes; }
unsigned int shim_netdev_tso_max_size(const net_device* dev) { return dev->max_gso_bytes; }
unsigned int shim_netdev_gso_max_segs(const net_device* dev) { return dev->max_segments; }
void shim_netdev_set_gso_max_segs(net_device* dev, unsigned int segments)
{
    EXPECT_LE(segments, dev->segments_limit);
    dev->max_segments = segments;
}
int shim_helper_register_netdevice(net_device* dev)
{
    EXPECT_TRUE(world->rtnl);
    const int error = ipoib_ndo_init(dev);
    dev->registered = !error;
    return error;
}
void shim_init_list_head(void*) { EXPECT_TRUE(world->batch.empty()); }
void shim_unregister_netdevice_many(void*)
{
    world->batches.push_back(world->batch.size());
    for (net_device* dev : std::exchange(world->batch, {}))
        shim_unregister_netdevice_queue(dev, nullptr);
}
void shim_unregister_netdevice_queue(net_device* dev, void* batch)
{
    EXPECT_TRUE(world->rtnl);
    if (batch) {
        world->batch.push_back(dev);
        return;
    }
    shim_netdev_lock_ops(dev);
    ipoib_ndo_stop(dev);
    shim_netdev_unlock_ops(dev);
    ipoib_ndo_uninit(dev);
    EXPECT_TRUE(dev->lower.empty() || dev->lower.back() == "uninit");
    dev->registered = false;
    std::erase(world->netdevs, dev);
    world->going.push_back(dev);
}
bool shim_netdev_is_ours(const net_device* dev) { return dev->ours; }
bool shim_netif_is_bond_slave(const net_device* dev) { return dev->bonded; }
bool shim_netdev_iff_up(const net_device* dev) { return dev->up; }
bool shim_netdev_need_ops_lock(const net_device* dev) { return dev->ops_lock; }
void shim_netdev_lock_ops(net_device* dev)
{
    EXPECT_TRUE(world->rtnl);
    // The core takes the ops lock of any netdev, so a driver holds one at a time.
    for (const net_device* other : world->netdevs)
        EXPECT_FALSE(other->ops_locked);
    dev->ops_locked = dev->ops_lock;
}
void shim_netdev_unlock_ops(net_device* dev) { dev->ops_locked = false; }
void shim_dev_change_flags(net_device* dev, bool up)
{
    EXPECT_TRUE(world->rtnl);
    shim_netdev_lock_ops(dev);
    // A netdev whose open fails stays down.
    dev->up = up && ipoib_ndo_open(dev) == 0;
    if (!up)
        ipoib_ndo_stop(dev);
    shim_netdev_unlock_ops(dev);
}
bool shim_ns_capable(const net_device*) { return world->administrator; }
bool shim_sscanf_int(const char* text, int* value) { return sscanf(text, "%i", value) == 1; }
void shim_free_netdev(net_device* dev)
{
    std::erase(world->netdevs, dev);
    delete dev;
}
const char* shim_netdev_name(const net_device* dev) { return dev->name.c_str(); }
void shim_dev_addr_mod(net_device* dev, unsigned int offset, const void* address, unsigned int bytes)
{
    std::memcpy(dev->address.data() + offset, address, bytes);
}
uint8_t* shim_netdev_broadcast(net_device* dev) { return dev->broadcast.data(); }
void shim_netdev_set_mtu(net_device* dev, unsigned int mtu) { dev->mtu = mtu; }
int shim_dev_set_mtu(net_device* dev, unsigned int mtu)
{
    EXPECT_TRUE(world->rtnl);
    if (world->refuses("netdev_change_mtu"))
        return -16;
    return mtu == dev->mtu ? 0 : ipoib_ndo_change_mtu(dev, static_cast<int>(mtu));
}
unsigned int shim_netdev_mtu(const net_device* dev) { return dev->mtu; }
bool shim_netdev_has_rxcsum(const net_device* dev) { return dev->rx_checksum; }
bool shim_netdev_has_gro_hw(const net_device* dev) { return dev->gro_hw; }
const std::uint8_t* shim_netdev_dev_addr(const net_device* dev) { return dev->address.data(); }
bool shim_netdev_addr_set_by_user(const net_device* dev) { return dev->address_given; }
bool shim_helper_netdev_has_address(net_device* dev, const sockaddr* address) { return dev->ip == address; }
void shim_dev_hold(net_device* dev) { ++dev->holds; }
void shim_dev_put(net_device* dev)
{
    EXPECT_GT(dev->holds, 0U);
    --dev->holds;
}
net_device* shim_helper_netdev_hold_master(net_device* dev)
{
    ++dev->holds;
    return dev;
}
void shim_helper_notify_changeaddr(net_device* dev)
{
    EXPECT_TRUE(world->rtnl);
    dev->address_changes += dev->registered;
}
void shim_netdev_notify_peers(net_device* dev)
{
    EXPECT_TRUE(world->rtnl);
    ++dev->announcements;
}
void shim_netdev_update_features(net_device* dev)
{
    EXPECT_TRUE(world->rtnl);
    ++dev->feature_updates;
}
void shim_helper_netdev_for_each_mc_addr(net_device* dev, void (*visit)(void*, const std::uint8_t*), void* context)
{
    ++world->spinning;
    for (const auto& address : dev->multicast)
        visit(context, address.bytes);
    --world->spinning;
}
void shim_netif_carrier_on(net_device* dev) { dev->carrier = true; }
void shim_netif_carrier_off(net_device* dev) { dev->carrier = false; }
void shim_netif_tx_lock_bh(net_device*, unsigned int) { ++world->spinning; }
void shim_netif_tx_unlock_bh(net_device*, unsigned int) { --world->spinning; }
void shim_netif_tx_start_queue(net_device* dev, unsigned int queue) { dev->transmit_queues.at(queue).stopped = false; }
void shim_netif_tx_stop_queue(net_device* dev, unsigned int queue) { dev->transmit_queues.at(queue).stopped = true; }
void shim_netif_tx_wake_queue(net_device* dev, unsigned int queue)
{
    dev->wakes += std::exchange(dev->transmit_queues.at(queue).stopped, false);
}
bool shim_netif_tx_queue_stopped(const net_device* dev, unsigned int queue)
{
    return dev->transmit_queues.at(queue).stopped;
}
bool shim_netif_xmit_stopped(const net_device* dev, unsigned int queue)
{
    return shim_netif_tx_queue_stopped(dev, queue) || dev->limited;
}
unsigned int shim_helper_netif_tx_backlog(const net_device* dev, unsigned int queue)
{
    return dev->transmit_queues.at(queue).backlog;
}
void shim_netif_tx_disable(net_device* dev)
{
    for (TransmitQueue& queue : dev->transmit_queues)
        queue.stopped = true;
}
void shim_netif_tx_wake_all_queues(net_device* dev)
{
    for (unsigned int i = dev->transmit_queues.size(); i-- > 1;)
        dev->transmit_queues[i].stopped = false;
    shim_netif_tx_wake_queue(dev, 0);
}
bool shim_netdev_tx_sent_queue(net_device* dev, unsigned int queue, unsigned int bytes, bool more)
{
    dev->transmit_queues.at(queue).queued_bytes += static_cast<int>(bytes);
    dev->transmit_queues.at(queue).more = more;
    return !more;
}
void shim_netdev_tx_completed_queue(net_device* dev, unsigned int queue, unsigned int, unsigned int bytes)
{
    dev->transmit_queues.at(queue).queued_bytes -= static_cast<int>(bytes);
    EXPECT_GE(dev->transmit_queues.at(queue).queued_bytes, 0);
}
void shim_netdev_tx_reset_queue(net_device* dev, unsigned int queue)
{
    dev->transmit_queues.at(queue).queued_bytes = 0;
}
bool shim_netdev_xmit_more() { return world->more; }
unsigned int shim_tx_queue_idle_ms(const net_device*, unsigned int) { return 0; }
void shim_napi_lock(net_device* dev)
{
    may_sleep();
    EXPECT_FALSE(dev->napis_locked) << "the netdev's lock is taken twice";
    dev->napis_locked = true;
}
void shim_napi_unlock(net_device* dev)
{
    for (const shim_napi* napi : dev->contexts)
        EXPECT_TRUE(napi->enabled) << "the kernel would wait for this context";
    dev->napis_locked = false;
}
void shim_netif_napi_add(net_device* dev, shim_napi* napi, int (*poll)(void*, int), void* context)
{
    EXPECT_TRUE(dev->napis_locked);
    *napi = {poll, context, dev, false};
    EXPECT_TRUE(dev->contexts.insert(napi).second) << "a context is added twice";
}
void shim_netif_napi_add_tx(net_device* dev, shim_napi* napi, int (*poll)(void*, int), void* context)
{
    shim_netif_napi_add(dev, napi, poll, context);
}
void shim_netif_queue_set_napi(net_device* dev, unsigned int queue, shim_napi* napi)
{
    EXPECT_TRUE(world->rtnl);
    dev->napis.at(queue) = napi;
}
void shim_netif_napi_del(shim_napi* napi)
{
    EXPECT_TRUE(napi->dev->napis_locked);
    EXPECT_FALSE(napi->enabled);
    EXPECT_EQ(napi->dev->contexts.erase(napi), 1U) << "a context is removed twice";
}
void shim_napi_enable(shim_napi* napi)
{
    EXPECT_TRUE(napi->dev->napis_locked);
    napi->enabled = true;
    ++world->polls_enabled;
}
void shim_napi_disable(shim_napi* napi)
{
    may_sleep();
    EXPECT_TRUE(napi->dev->napis_locked);
    EXPECT_TRUE(napi->enabled) << "polling is disabled twice, which never returns";
    if (world->before_napi_disable)
        std::exchange(world->before_napi_disable, nullptr)();
    napi->enabled = false;
    --world->polls_enabled;
    std::erase(world->scheduled, napi);
}
void shim_napi_schedule(shim_napi* napi)
{
    if (std::find(world->scheduled.begin(), world->scheduled.end(), napi) == world->scheduled.end())
        world->scheduled.push_back(napi);
}
bool shim_napi_complete_done(shim_napi*, int done)
{
    EXPECT_LT(done, World::poll_budget) << "a poll that used its budget up must not end";
    return true;
}
void shim_napi_gro_receive(shim_napi*, sk_buff* skb) { world->received.push_back(skb); }
void shim_skb_mark_napi_id(sk_buff*, shim_napi*) {}
void shim_netif_receive_skb(sk_buff* skb)
{
    world->received.push_back(skb);
    ++world->unmerged;
}
bool shim_napi_holds_packets(const shim_napi*) { return world->gro_holds_packets; }
unsigned long shim_arp_tbl_gc_interval() { return 3000; }
int shim_scnprintf(char* buffer, std::size_t bytes, const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(buffer, bytes, format, arguments);
    va_end(arguments);
    return written;
}

// rdma_netdev.h

// Queue pair with the QPN in the hardware address, which a filtering rdma_netdev uses.
static ib_qp* qp_in_address(const net_device* dev)
{
    const std::uint32_t qpn = ipoib::HwAddr::from(dev->address.data()).qpn();
    for (ib_qp* qp : world->qps)
        if (qp->number == qpn)
            return qp;
    return nullptr;
}

int shim_helper_rdma_netdev_start(shim_rdma_netdev* lower, net_device* dev, ib_device*, std::uint32_t)
{
    if (!world->have_rdma_netdev)
        return -95;
    if (out_of_memory())
        return -12;
    *lower = {dev};
    dev->tx_queues = 2;
    // As mlx5's does.
    if (world->rdma_netdev_max_mtu)
        dev->mtu = world->rdma_netdev_max_mtu;
    dev->ops_lock = world->rdma_netdev_needs_ops_lock;
    ++world->rdma_netdevs;
    return 0;
}
void shim_helper_rdma_netdev_end(shim_rdma_netdev*, net_device*) { --world->rdma_netdevs; }
int shim_helper_rdma_netdev_init(const shim_rdma_netdev* lower, net_device* dev)
{
    EXPECT_EQ(lower->dev, dev);
    EXPECT_FALSE(std::exchange(dev->in_lower, true)) << "the rdma_netdev calls itself";
    dev->lower.push_back("init");
    if (world->rdma_netdev_filters) {
        if (const int error = ipoib_queues_init(dev))
            return error;
        EXPECT_TRUE(qp_in_address(dev));
    } else {
        dev->address[3] = 0x77;
    }
    if (world->refuses("rdma_netdev_init")) {
        if (world->rdma_netdev_filters)
            ipoib_queues_uninit(dev);
        return -16;
    }
    dev->in_lower = false;
    return 0;
}
void shim_helper_rdma_netdev_uninit(const shim_rdma_netdev*, net_device* dev)
{
    dev->lower.push_back("uninit");
    if (!world->rdma_netdev_filters)
        return;
    // QPN that the filter knows the queue pair by.
    EXPECT_TRUE(qp_in_address(dev) || world->qps.empty());
    ipoib_queues_uninit(dev);
}
int shim_helper_rdma_netdev_open(const shim_rdma_netdev*, net_device* dev, std::uint16_t pkey_index)
{
    EXPECT_EQ(dev->ops_locked, dev->ops_lock);
    dev->rdma_netdev_pkey_index = pkey_index;
    if (world->refuses("rdma_netdev_open"))
        return -5;
    if (world->rdma_netdev_filters) {
        if (const int error = ipoib_queues_open(dev))
            return error;
        EXPECT_EQ(qp_in_address(dev)->state, "rts");
    }
    dev->lower.push_back("open");
    for (TransmitQueue& queue : dev->transmit_queues)
        queue.stopped = false;
    return 0;
}
void shim_helper_rdma_netdev_stop(const shim_rdma_netdev*, net_device* dev)
{
    EXPECT_EQ(dev->ops_locked, dev->ops_lock);
    dev->lower.push_back("stop");
    if (world->rdma_netdev_filters)
        ipoib_queues_stop(dev);
}
int shim_helper_rdma_netdev_change_mtu(const shim_rdma_netdev*, net_device* dev, unsigned int mtu)
{
    EXPECT_EQ(dev->ops_locked, dev->ops_lock);
    if (world->refuses("rdma_netdev_change_mtu"))
        return -12;
    dev->mtu = mtu;
    return 0;
}
void shim_helper_rdma_netdev_tx_timeout(net_device* dev, unsigned int queue)
{
    dev->lower.push_back("timeout of queue " + std::to_string(queue));
}
void shim_helper_rdma_netdev_get_stats(const shim_rdma_netdev*, net_device*, shim_stats* stats)
{
    stats->tx_packets += 1000;
}
void shim_rdma_netdev_set_mtu(net_device* dev, unsigned int mtu) { dev->rdma_netdev_mtu = mtu; }
void shim_rdma_netdev_send(net_device* dev, sk_buff* skb, ib_ah* ah, std::uint32_t)
{
    EXPECT_TRUE(world->ahs.contains(ah));
    dev->lower.push_back("send");
    free_skb(skb);
}
int shim_rdma_netdev_attach(net_device* dev, ib_device*, const shim_gid* mgid, std::uint16_t mlid, bool set_qkey,
                            std::uint32_t)
{
    dev->lower.push_back(set_qkey ? "attach broadcast" : "attach");
    return world->rdma_netdev_filters ? shim_ib_attach_mcast(qp_in_address(dev), mgid, mlid) : 0;
}
void shim_rdma_netdev_detach(net_device* dev, ib_device*, const shim_gid* mgid, std::uint16_t mlid)
{
    dev->lower.push_back("detach");
    if (world->rdma_netdev_filters)
        shim_ib_detach_mcast(qp_in_address(dev), mgid, mlid);
}
