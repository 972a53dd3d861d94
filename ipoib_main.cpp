// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The module's start and stop, an interface's birth and death, and its netdev's operations.
#include <algorithm>

#include <ipoib/interface.hpp>
#include <kernel/log.hpp>
#include <kernel/memory.hpp>
#include <kernel/ring.hpp>
#include <shim/client.h>
#include <shim/ndo.h>
#include <shim/netlink.h>
#include <shim/queue_stats.h>

namespace ipoib {

constinit kernel::WorkQueue flush_queue, reap_queue;

// Birth and death

Interface::Interface(net_device* dev, Hca& hca, std::uint32_t port)
    : dev_(dev), hca_(hca), identity(dev, hca, port), further_queues(*this, hca.take_vector())
{
}

Interface::Interface(net_device* dev, Interface& parent, PKey pkey)
    : dev_(dev), hca_(parent.hca_), parent_(&parent), identity(dev, parent.identity, pkey),
      further_queues(*this, parent.hca_.take_vector())
{
    shim_dev_hold(parent.dev());
    held_parent_.reset(parent.dev());
}

kernel::Status Interface::attach()
{
    // Before an rdma_netdev sets one.
    const unsigned int wanted_mtu = shim_netdev_mtu(dev_);
    if (hca_.uses_rdma_netdev())
        TRY(rdma_netdev.start());
    shim_rdma_netdev_set_clnt_priv(dev_, this);
    TRY(prepare(wanted_mtu));
    if (parent_)
        shim_netdev_set_child(dev_);
    TRY(shim_helper_register_netdevice(dev_));
    hca_.add(*this);
    debug_files.create();
    events.start();
    return {};
}

kernel::Status Interface::prepare(unsigned int wanted_mtu)
{
    shim_port attributes;
    TRY(shim_helper_ib_query_port(ca(), identity.port(), &attributes));
    unsigned int features = features_of(ca());
    if (rdma_netdev.present()) { // The rdma_netdev sets the other features itself.
        features &= SHIM_FEATURE_VF;
    } else {
        // The netdev was allocated with as many queues as an rdma_netdev may need.
        TRY(shim_netif_set_real_num_tx_queues(dev_, 1));
        tx.set_count(further_queues.default_count(further_queues.max_transmit()));
        TRY(set_receive_queues(further_queues.default_count(further_queues.max_receive())));
        if (SHIM_HAS_TSO && features & SHIM_FEATURE_SG && !(features & SHIM_FEATURE_TSO))
            features |= SHIM_FEATURE_DRIVER_TSO;
        features |= SHIM_FEATURE_GRO_HW;
    }
    add_features(features);
    mtu.begin(attributes.max_mtu, wanted_mtu);
    shim_netif_carrier_off(dev_);
    identity.begin();
    return {};
}

kernel::Status Interface::init()
{
    kernel::Status status = [&]() TA_REQUIRES(kernel::rtnl) -> kernel::Status {
        if (!work_queue.create("ipoib_wq", true))
            return kernel::no_memory;
        TRY(paths.create());
        TRY(groups.create());
        TRY(queues.create_pd());
        return rdma_netdev.present() ? rdma_netdev.init() : queues.init();
    }();
    if (!status.ok()) {
        log_warning(dev_, "%s: failed to create the queues of port %u, error %d", shim_ib_device_name(ca()),
                    identity.port(), status.code());
        destroy();
        return status;
    }
    // An rdma_netdev has put its queue pair into the address.
    if (rdma_netdev.present())
        identity.set_queue_pair(HwAddr::from(shim_netdev_dev_addr(dev_)).qpn(), has_queues() ? HwAddr::flag_rc : 0);
    alive_ = true;
    return {};
}

void Interface::uninit()
{
    alive_ = false;
    pmtu.stop();
    reaper.drain();
    if (rdma_netdev.present())
        rdma_netdev.uninit();
    else
        queues.uninit();
    destroy();
}

void Interface::destroy()
{
    queues.destroy_pd();
    groups.destroy();
    paths.destroy();
    work_queue.destroy();
}

void Interface::detach(void* batch)
{
    children.detach_all(batch);
    static_cast<kernel::ListNode<Interface>&>(*this).unlink();
    hca_.remove(*this);
    events.stop();
    debug_files.remove();
    shim_unregister_netdevice_queue(dev_, batch);
}

void Interface::cancel_work()
{
    events.cancel();
    // A transmit timeout may have queued a restart until the very end.
    state.cancel();
    link.cancel();
    announcer.cancel();
    children.cancel();
    further_queues.cancel();
}

// The netdev's operations

kernel::Status Interface::open()
{
    if (!identity.has_pkey())
        log_warning(dev_, "P_Key 0x%04x is not found", identity.pkey().value());
    if (identity.gid_index() < 0)
        log_warning(dev_, "GID %pI6 is not in the port's table: waiting for it", identity.gid().bytes);
    TRY(state.open());
    children.follow_state(true);
    return {};
}

void Interface::stop()
{
    state.close();
    requeuer.stop();
    children.follow_state(false);
}

void Interface::tx_timed_out(unsigned int queue)
{
    log_warning(dev_, "transmit timeout: latency %u msecs", shim_tx_queue_idle_ms(dev_, queue));
    if (rdma_netdev.present())
        rdma_netdev.tx_timed_out(queue);
    if (has_queues()) {
        // An rdma_netdev may have more queues than there are objects; its packets are in no ring.
        const kernel::RingIndex& ring = tx[rdma_netdev.present() ? 0 : queue].ring.index();
        log_warning(dev_, "queue stopped %d, tx_head %u, tx_tail %u", shim_netif_tx_queue_stopped(dev_, queue),
                    ring.head(), ring.tail());
    }
    state.restart_queues();
}

void Interface::stack_timed_out(unsigned int queue)
{
    // If messages alone keep the queue stopped, a restart would end the connections of all peers. TxQueue::watch()
    // finds datagrams that do not complete.
    if (!rdma_netdev.present() && tx[queue].ring.half_free() && !tx[queue].pool.half_free())
        tx[queue].check_silence();
    else
        tx_timed_out(queue);
}

// Multicast groups

kernel::Status Interface::attach_group(const Gid& mgid, std::uint16_t mlid, bool broadcast)
{
    if (rdma_netdev.present())
        return rdma_netdev.attach_group(mgid, mlid, broadcast);
    const shim_gid native = mgid.native();
    return shim_ib_attach_mcast(queues.qp(), &native, mlid);
}

void Interface::detach_group(const Gid& mgid, std::uint16_t mlid)
{
    if (rdma_netdev.present())
        return rdma_netdev.detach_group(mgid, mlid);
    const shim_gid native = mgid.native();
    shim_ib_detach_mcast(queues.qp(), &native, mlid);
}

// Queues, features and address

kernel::Status Interface::set_receive_queues(unsigned int count)
{
    TRY(shim_netif_set_real_num_rx_queues(dev_, count));
    rx.set_count(count);
    return {};
}

void Interface::add_features(unsigned int features)
{
    features_ |= features;
    shim_helper_netdev_add_features(dev_, features_);
}

kernel::Status Interface::set_address(const HwAddr& address)
{
    if (shim_netdev_iff_up(dev_))
        return kernel::busy;
    TRY(identity.set_guid(address));
    children.follow_guid();
    return {};
}

// Statistics

void Interface::sum_statistics(shim_stats& stats) const
{
    stats.rx_packets = rx.sum(&RxQueue::packets);
    stats.rx_bytes = rx.sum(&RxQueue::bytes);
    stats.rx_errors = rx.sum(&RxQueue::errors);
    stats.rx_dropped = rx.sum(&RxQueue::dropped);
    stats.multicast = rx.sum(&RxQueue::multicast);
    stats.tx_packets = tx.sum(&TxQueue::packets);
    stats.tx_bytes = tx.sum(&TxQueue::bytes);
    stats.tx_errors = tx.sum(&TxQueue::errors) + pmtu.too_long.value();
    stats.tx_dropped = tx_dropped.value() + paths.dropped.value() + groups.dropped.value();
    if (rdma_netdev.present())
        rdma_netdev.add_statistics(stats);
}

// The module

namespace {

// Stores the value that is used, for sysfs to show.
void clamp_parameter(const char* name, int& value, int clamped)
{
    if (value != clamped)
        log_info(nullptr, "%s=%d is now %d", name, value, clamped);
    value = clamped;
}

void clamp_parameters()
{
    struct shim_parameters& p = shim_parameters;
    clamp_parameter("send_queue_size", p.send_queue_size,
                    kernel::clamp_ring_size(p.send_queue_size, RingSizes::min_sends, RingSizes::max_slots));
    clamp_parameter("recv_queue_size", p.recv_queue_size,
                    kernel::clamp_ring_size(p.recv_queue_size, RingSizes::min_receives, RingSizes::max_slots));
    clamp_parameter("ipoib_enhanced", p.ipoib_enhanced, p.ipoib_enhanced != 0);
    clamp_parameter("max_nonsrq_conn_qp", p.max_nonsrq_conn_qp, std::clamp(p.max_nonsrq_conn_qp, 0, 4096));
}

} // namespace

} // namespace ipoib

using ipoib::Interface;

int ipoib_start()
{
    ipoib::clamp_parameters();
    int error = kernel::no_memory;
    // Without WQ_MEM_RECLAIM: flush items wait for RTNL, whose holders allocate memory, and cancel DIM's work item,
    // which is on a queue without it.
    if (ipoib::flush_queue.create("ipoib_flush", false) && ipoib::reap_queue.create("ipoib_reap", true))
        error = shim_helper_debugfs_start();
    if (!error) {
        shim_ib_sa_register_client();
        error = shim_rtnl_link_register();
        if (!error) {
            error = shim_ib_register_client();
            if (!error)
                return 0;
            shim_rtnl_link_unregister();
        }
        shim_ib_sa_unregister_client();
        shim_helper_debugfs_stop();
    }
    ipoib::reap_queue.destroy();
    ipoib::flush_queue.destroy();
    return error;
}

void ipoib_stop()
{
    shim_rtnl_link_unregister();
    shim_ib_unregister_client();
    shim_ib_sa_unregister_client();
    shim_helper_debugfs_stop();
    ipoib::reap_queue.destroy();
    ipoib::flush_queue.destroy();
}

void ipoib_netdev_gone(net_device* dev)
{
    kernel::Owned<Interface> interface(&Interface::of(dev));
    interface->cancel_work();
}

TA_REQUIRES(kernel::rtnl) int ipoib_ndo_init(net_device* dev) { return Interface::of(dev).init().code(); }
TA_REQUIRES(kernel::rtnl) void ipoib_ndo_uninit(net_device* dev) { Interface::of(dev).uninit(); }
TA_REQUIRES(kernel::rtnl) int ipoib_ndo_open(net_device* dev) { return Interface::of(dev).open().code(); }
TA_REQUIRES(kernel::rtnl) int ipoib_ndo_stop(net_device* dev)
{
    Interface::of(dev).stop();
    return 0;
}
TA_REQUIRES(kernel::rtnl) int ipoib_ndo_change_mtu(net_device* dev, int mtu)
{
    return Interface::of(dev).mtu.change(static_cast<unsigned int>(mtu)).code();
}
ib_device* ipoib_port_of(const net_device* dev, std::uint32_t* port)
{
    *port = Interface::of(dev).identity.port();
    return Interface::of(dev).ca();
}
TA_REQUIRES(kernel::rtnl) int ipoib_ndo_set_address(net_device* dev, const std::uint8_t* address)
{
    return Interface::of(dev).set_address(ipoib::HwAddr::from(address)).code();
}
void ipoib_ndo_tx_timeout(net_device* dev, unsigned int queue) { Interface::of(dev).stack_timed_out(queue); }
bool ipoib_offloads_sends(const net_device* dev) { return !Interface::of(dev).settings.connected(); }

bool ipoib_offers_checksums(const net_device* dev)
{
    const Interface& interface = Interface::of(dev);
    return !interface.settings.connected() || interface.settings.icrc_as_checksum();
}
void ipoib_ndo_get_stats(net_device* dev, shim_stats* stats) { Interface::of(dev).sum_statistics(*stats); }

bool ipoib_queue_stats(const net_device* dev, shim_queue_direction direction, unsigned int first, unsigned int end,
                       shim_queue_stats* stats)
{
    const Interface& interface = Interface::of(dev);
    if (interface.rdma_netdev.present())
        return false;
    *stats = {};
    const auto add = [stats](const auto& queue) {
        stats->packets += queue.packets.value();
        stats->bytes += queue.bytes.value();
    };
    for (unsigned int i = first; i < end; ++i) {
        if (direction == SHIM_QUEUE_RX) {
            add(interface.rx[i]);
        } else {
            add(interface.tx[i]);
            stats->stops += interface.tx[i].stops.value();
        }
    }
    return true;
}
