// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The module's start and stop, and an interface's life: from birth to death, up and down, its link and its settings.
#include <algorithm>

#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <kernel/log.hpp>
#include <kernel/memory.hpp>
#include <kernel/ring.hpp>
#include <kernel/time.hpp>
#include <shim/client.h>
#include <shim/ndo.h>
#include <shim/netlink.h>
#include <shim/trace.h>

namespace ipoib {

constinit kernel::WorkQueue flush_queue, reap_queue;

// Birth and death

Interface::Interface(net_device* dev, Hca& hca, std::uint32_t port)
    : dev_(dev), hca_(hca), identity(dev, hca, port), queues(*this, hca.take_vector())
{
}

Interface::Interface(net_device* dev, Interface& parent, PKey pkey)
    : dev_(dev), hca_(parent.hca_), parent_(&parent), identity(dev, parent.identity, pkey),
      queues(*this, parent.hca_.take_vector())
{
}

kernel::Status Interface::attach()
{
    if (hca_.accelerates())
        TRY(rdma_netdev.start());
    shim_rdma_netdev_set_clnt_priv(dev_, this);
    TRY(prepare());
    if (parent_)
        shim_netdev_set_child(dev_);
    TRY(shim_helper_register_netdevice(dev_));
    hca_.add(*this);
    debug_files.create();
    events.start();
    return {};
}

kernel::Status Interface::prepare()
{
    shim_port attributes;
    TRY(shim_helper_ib_query_port(ca(), identity.port(), &attributes));
    unsigned int abilities = abilities_of(ca());
    if (rdma_netdev.present()) { // It sets the other features itself.
        abilities &= SHIM_IS_FUNCTION;
    } else {
        // The netdev was allocated with as many queues as an rdma_netdev may need.
        TRY(shim_netif_set_real_num_tx_queues(dev_, 1));
        TRY(shim_netif_set_real_num_rx_queues(dev_, 1));
        if (abilities & SHIM_CAN_GATHER && !(abilities & SHIM_CAN_SEGMENT))
            abilities |= SHIM_CUT_BY_DRIVER;
    }
    add_abilities(abilities);
    mtu.begin(attributes.max_mtu);
    shim_netif_carrier_off(dev_);
    identity.begin();
    return {};
}

kernel::Status Interface::init()
{
    kernel::Status status = [&]() -> kernel::Status {
        if (!work_queue.create("ipoib_wq", true))
            return kernel::no_memory;
        TRY(paths.create());
        paths_created_ = true;
        TRY(groups.create());
        groups_created_ = true;
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
    if (std::exchange(groups_created_, false))
        groups.destroy();
    if (std::exchange(paths_created_, false))
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
    // A transmit timeout may have queued it until the very end.
    restart_.cancel();
    joined_.cancel();
    announce_.cancel();
    children.cancel();
}

// Up and down

kernel::Status Interface::perform(InterfaceLife::Event event)
{
    const auto before = life_.state();
    const auto step = life_.on(event);
    if (step.next != before) {
        shim_trace_interface(dev_, InterfaceLife::name(before), InterfaceLife::name(step.next));
        log_debug(dev_, "%s -> %s", InterfaceLife::name(before), InterfaceLife::name(step.next));
    }
    if (step.actions & InterfaceLife::bring_down)
        bring_down();
    if (step.actions & InterfaceLife::stop_queues)
        stop_queues();
    if (step.actions & InterfaceLife::start_queues) {
        if (kernel::Status status = start_queues(); !status.ok()) {
            // An interface without queues is not up. ndo_open returns the error; otherwise nobody sees it, so starting
            // is tried again.
            life_ = InterfaceLife();
            if (event != InterfaceLife::Event::opened)
                start_later();
            return status;
        }
    }
    if (step.actions & InterfaceLife::bring_up)
        bring_up();
    if (step.actions & InterfaceLife::doubt_paths)
        paths.invalidate_all();
    if (step.actions & InterfaceLife::rejoin_groups)
        groups.rejoin_all();
    if (step.actions & InterfaceLife::carrier_on) {
        shim_netif_carrier_on(dev_);
        if (announcements_left_) {
            announcements_left_ = max_announcements;
            announce_.queue();
        }
    }
    return {};
}

kernel::Status Interface::open()
{
    const bool found = identity.has_pkey();
    if (!found)
        log_warning(dev_, "P_Key 0x%04x is not found", identity.pkey().value());
    if (identity.gid_index() < 0)
        log_warning(dev_, "GID %pI6 is not in the port's table: waiting for it", identity.gid().bytes);
    TRY(perform(found ? InterfaceLife::Event::opened : InterfaceLife::Event::opened_without_pkey));
    children.follow_state(true);
    return {};
}

void Interface::stop()
{
    (void)perform(InterfaceLife::Event::closed).ok();
    children.follow_state(false);
}

bool Interface::close_for_change()
{
    const bool open = life_.state() != InterfaceLife::State::closed;
    if (open)
        (void)perform(InterfaceLife::Event::closed).ok();
    return open;
}

kernel::Status Interface::reopen()
{
    const kernel::Status opened =
        perform(identity.has_pkey() ? InterfaceLife::Event::opened : InterfaceLife::Event::opened_without_pkey);
    if (!opened.ok())
        start_later();
    return opened;
}

void Interface::start_later()
{
    life_.on(InterfaceLife::Event::opened_without_pkey);
    restart_.queue(kernel::seconds(1));
}

void Interface::run_restart()
{
    kernel::Guard guard(ops_lock);
    // Without its P_Key the interface waits for it.
    if (!alive_ || !identity.has_pkey())
        return;
    (void)perform(InterfaceLife::Event::restart).ok();
}

kernel::Status Interface::start_queues()
{
    if (rdma_netdev.present())
        return rdma_netdev.open();
    TRY(queues.open());
    // The stack holds packets since the queue was stopped; no completion will wake it.
    shim_netif_tx_wake_all_queues(dev_);
    return {};
}

void Interface::stop_queues()
{
    if (rdma_netdev.present())
        rdma_netdev.stop();
    else
        queues.close();
    reaper.drain();
}

void Interface::bring_up()
{
    paths.start();
    groups.start();
    garbage_.queue(work_queue, shim_arp_tbl_gc_interval());
}

void Interface::bring_down()
{
    shim_netif_carrier_off(dev_);
    garbage_.cancel();
    groups.leave_all();
    // No response can set it any more, and run_joined(), if queued, finds it cleared.
    broadcast_joined_.store(false);
    paths.flush();
}

void Interface::run_garbage()
{
    // As the stack's neighbour tables: entries are looked at once in an interval, and kept for two.
    const unsigned long interval = shim_arp_tbl_gc_interval();
    paths.collect_garbage(2 * interval);
    connections.passive.collect_garbage();
    groups.collect_garbage(2 * interval);
    garbage_.queue(work_queue, interval);
}

void Interface::tx_timed_out()
{
    log_warning(dev_, "transmit timeout: latency %u msecs", shim_tx_queue_idle_ms(dev_));
    if (rdma_netdev.present())
        rdma_netdev.tx_timed_out();
    if (has_queues())
        log_warning(dev_, "queue stopped %d, tx_head %u, tx_tail %u", shim_netif_tx_queue_stopped(dev_),
                    tx.ring.index().head(), tx.ring.index().tail());
    restart_queues();
}

// The link

kernel::Status Interface::apply_link_parameters(const shim_mcmember& broadcast)
{
    const unsigned int frame = shim_ib_mtu_enum_to_int(broadcast.mtu);
    if (frame < ip_mtu(min_mtu)) {
        log_warning(dev_, "the broadcast group's MTU code %u is invalid", broadcast.mtu);
        return kernel::invalid;
    }
    link_ = LinkParameters{
        .qkey = broadcast.qkey,
        .flow_label = broadcast.flow_label,
        .mtu = broadcast.mtu,
        .rate = broadcast.rate,
        .sl = broadcast.sl,
        .hop_limit = broadcast.hop_limit,
        .traffic_class = broadcast.traffic_class,
    };
    // An rdma_netdev is given it with the group.
    if (const int error = has_queues() ? shim_qp_set_qkey(queues.qp(), link_.qkey) : 0) {
        log_warning(dev_, "failed to set the Q_Key, error %d", error);
        return error;
    }
    qkey_.store(link_.qkey);
    traffic_class_.store(link_.traffic_class);
    mtu.set_link(frame);
    return {};
}

void Interface::broadcast_joined()
{
    broadcast_joined_.store(true);
    joined_.queue();
}

void Interface::run_joined()
{
    kernel::Guard guard(ops_lock);
    if (!broadcast_joined_.load_relaxed() || identity.port_down())
        return;
    mtu.apply();
    (void)perform(InterfaceLife::Event::joined).ok();
}

void Interface::address_changed()
{
    announcements_left_ = max_announcements;
    shim_helper_notify_changeaddr(dev_);
}

void Interface::run_announce()
{
    // Without carrier: perform() queues this again.
    if (life_.state() != InterfaceLife::State::running)
        return;
    shim_netdev_notify_peers(dev_);
    // The stack may delay its reaction to carrier, and drops what it is to send until then.
    if (--announcements_left_)
        announce_.queue(kernel::seconds(1));
}

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

// Settings

void Interface::add_abilities(unsigned int abilities)
{
    abilities_ |= abilities;
    shim_helper_netdev_add_features(dev_, abilities_);
}

kernel::Status Interface::set_address(const HwAddr& address)
{
    if (shim_netdev_iff_up(dev_))
        return kernel::busy;
    TRY(identity.set_guid(address));
    children.follow_guid();
    return {};
}

void Interface::set_umcast(bool umcast)
{
    if (umcast)
        log_warning(dev_, "ignoring multicast groups joined directly by userspace");
    umcast_.store(umcast);
}

kernel::Status Interface::set_connected(bool wanted)
{
    if (wanted == connected())
        return {};
    if (!has_queues()) {
        log_warning(dev_, "the HCA's rdma_netdev has no connected mode: load with ipoib_enhanced=0");
        return kernel::invalid;
    }
    if (wanted) {
        log_warning(dev_, "enabling connected mode will cause multicast packet drops");
        TRY(use_one_tx_queue());
    }
    connected_.store(wanted);
    // Neighbours are looked up anew, and decide anew between datagrams and a connection.
    if (life_.started()) {
        paths.flush();
        paths.start();
    }
    if (!wanted)
        use_all_tx_queues();
    shim_netdev_update_features(dev_);
    return wanted ? mtu.enter_connected_mode() : mtu.enter_datagram_mode();
}

kernel::Status Interface::use_one_tx_queue()
{
    return rdma_netdev.present() ? shim_netif_set_real_num_tx_queues(dev_, 1) : 0;
}

void Interface::use_all_tx_queues()
{
    if (!rdma_netdev.present())
        return;
    // Packets may still be on their way to connections that were dropped.
    shim_synchronize_net();
    if (const int error = shim_netif_set_real_num_tx_queues(dev_, shim_netdev_num_tx_queues(dev_)))
        log_warning(dev_, "failed to use all transmit queues again, error %d", error);
}

kernel::Status Interface::set_icrc_as_checksum(bool wanted)
{
    if (wanted == icrc_as_checksum())
        return {};
    if (!has_queues())
        return kernel::not_supported;
    const bool was_open = close_for_change();
    icrc_as_checksum_.store(wanted);
    shim_netdev_update_features(dev_);
    return was_open ? reopen() : kernel::Status();
}

kernel::Status Interface::set_ring_sizes(RingSizes wanted)
{
    // An rdma_netdev knows the queue pair by its number.
    if (rdma_netdev.present())
        return kernel::not_supported;
    const RingSizes before = queues.sizes();
    const auto clamp = [](unsigned int size, int min) {
        return static_cast<unsigned int>(kernel::clamp_ring_size(size, min, RingSizes::max_slots));
    };
    wanted = {clamp(wanted.sends, RingSizes::min_sends), clamp(wanted.receives, RingSizes::min_receives)};
    if (wanted == before)
        return {};
    // Other rings have another address, and a bond copies its port's at a failover only: it would advertise the old
    // one.
    if (shim_netif_is_bond_slave(dev_)) {
        log_warning(dev_, "rings of %u sends and %u receives: not as a bond's port", wanted.sends, wanted.receives);
        return kernel::busy;
    }
    const bool was_open = close_for_change();
    const kernel::Status status = queues.replace(wanted);
    if (!status.ok()) {
        log_warning(dev_, "no rings of %u sends and %u receives, error %d", wanted.sends, wanted.receives,
                    status.code());
        // If these fail, too, the interface has no queues until it is next opened.
        (void)queues.replace(before).ok();
    }
    const kernel::Status opened = was_open ? reopen() : kernel::Status();
    return status.ok() ? opened : status;
}

// Statistics

void Interface::sum_statistics(shim_stats& stats) const
{
    stats.rx_packets = rx.packets.value();
    stats.rx_bytes = rx.bytes.value();
    stats.rx_errors = rx.errors.value();
    stats.rx_dropped = rx.dropped.value();
    stats.multicast = rx.multicast.value();
    stats.tx_packets = tx.packets.value();
    stats.tx_bytes = tx.bytes.value();
    stats.tx_errors = tx.errors.value() + connections.too_long.value();
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
    // Flush items wait for RTNL. Its holders may wait for memory, and for system queues, as DIM's: so neither may wait
    // for the flush queue.
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

int ipoib_ndo_init(net_device* dev) { return Interface::of(dev).init().code(); }
void ipoib_ndo_uninit(net_device* dev) { Interface::of(dev).uninit(); }
int ipoib_ndo_open(net_device* dev) { return Interface::of(dev).open().code(); }
int ipoib_ndo_stop(net_device* dev)
{
    Interface::of(dev).stop();
    return 0;
}
int ipoib_ndo_change_mtu(net_device* dev, int mtu)
{
    return Interface::of(dev).mtu.change(static_cast<unsigned int>(mtu)).code();
}
ib_device* ipoib_port_of(const net_device* dev, std::uint32_t* port)
{
    *port = Interface::of(dev).identity.port();
    return Interface::of(dev).ca();
}
int ipoib_ndo_set_address(net_device* dev, const std::uint8_t* address)
{
    return Interface::of(dev).set_address(ipoib::HwAddr::from(address)).code();
}
void ipoib_ndo_tx_timeout(net_device* dev) { Interface::of(dev).tx_timed_out(); }
bool ipoib_offloads_sends(const net_device* dev) { return !Interface::of(dev).connected(); }

bool ipoib_leaves_checksums(const net_device* dev)
{
    const Interface& interface = Interface::of(dev);
    return !interface.connected() || interface.icrc_as_checksum();
}
void ipoib_ndo_get_stats(net_device* dev, shim_stats* stats) { Interface::of(dev).sum_statistics(*stats); }
