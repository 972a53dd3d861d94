// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The module's start and stop, and an interface from birth to death: what the user's and the fabric's events make of
// it, its MTU and its carrier.
#include <algorithm>

#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <kernel/log.hpp>
#include <kernel/memory.hpp>
#include <kernel/ring.hpp>
#include <kernel/time.hpp>
#include <shim/netlink.h>
#include <shim/trace.h>

namespace ipoib {

constinit kernel::LockClass Interface::rejections_class_;

// Life

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
            // Up without a queue pair would be a lie. Who opens it is told; otherwise nobody is, so that we try again.
            life_ = InterfaceLife();
            if (event != InterfaceLife::Event::opened)
                start_later();
            return status;
        }
    }
    if (step.actions & InterfaceLife::bring_up)
        bring_up();
    if (step.actions & InterfaceLife::doubt_paths)
        paths.doubt_all();
    if (step.actions & InterfaceLife::rejoin_groups)
        groups.rejoin_all();
    if (step.actions & InterfaceLife::carrier_on) {
        shim_netdev_carrier_on(dev_);
        if (announcements_left_) {
            announcements_left_ = most_announcements;
            announce_.queue();
        }
    }
    return {};
}

void Interface::start_later()
{
    life_.on(InterfaceLife::Event::opened_without_pkey);
    restart_.queue(kernel::seconds(1));
}

void Interface::bring_up()
{
    paths.accept();
    groups.accept();
    garbage_.queue(work_queue, shim_neighbour_gc_interval());
}

void Interface::bring_down()
{
    shim_netdev_carrier_off(dev_);
    garbage_.cancel();
    groups.leave_all();
    // No answer can set it any more, and what one has queued finds it so.
    adopted_.store(false);
    paths.flush();
}

kernel::Status Interface::open()
{
    const bool found = pkey_found_.load_relaxed();
    if (!found)
        log_warning(dev_, "P_Key 0x%04x is not found", pkey().value());
    if (gid_index() < 0)
        log_warning(dev_, "GID %pI6 is not in the port's table: waiting for it", gid().bytes);
    TRY(perform(found ? InterfaceLife::Event::opened : InterfaceLife::Event::opened_without_pkey));
    take_children_along(true);
    return {};
}

void Interface::stop()
{
    (void)perform(InterfaceLife::Event::closed).ok();
    take_children_along(false);
}

void Interface::set_umcast(bool umcast)
{
    if (umcast)
        log_warning(dev_, "ignoring multicast groups joined directly by userspace");
    umcast_.store(umcast);
}

void Interface::collect_garbage()
{
    // As the stack's own neighbour tables: looked at once in an interval, kept for two.
    const unsigned long interval = shim_neighbour_gc_interval();
    paths.collect_garbage(2 * interval);
    connections.collect_garbage();
    groups.collect_garbage(2 * interval);
    garbage_.queue(work_queue, interval);
}

void Interface::tx_timed_out()
{
    log_warning(dev_, "transmit timeout: latency %u msecs", shim_tx_queue_idle_ms(dev_));
    if (lower.present())
        lower.tx_timed_out();
    if (has_queues())
        log_warning(dev_, "queue stopped %d, tx_head %u, tx_tail %u", shim_tx_queue_stopped(dev_), tx.index().head(),
                    tx.index().tail());
    restart_queues();
}

// Carrier and MTU

kernel::Status Interface::adopt(const shim_mcmember& broadcast)
{
    const unsigned int frame = shim_mtu_bytes(broadcast.mtu);
    if (frame < ip_mtu(lowest_mtu)) {
        log_warning(dev_, "the broadcast group's MTU code %u is none", broadcast.mtu);
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
    // A lower half gets it with the group, for itself alone.
    if (const int error = has_queues() ? shim_qp_set_qkey(qp_, link_.qkey) : 0) {
        log_warning(dev_, "failed to set the Q_Key, error %d", error);
        return error;
    }
    qkey_.store(link_.qkey);
    traffic_class_.store(link_.traffic_class);
    longest_frame_.store(std::min(frame, max_ib_mtu_));
    if (lower.present())
        lower.set_mtu(ip_mtu(longest_frame()));
    return {};
}

void Interface::broadcast_joined()
{
    adopted_.store(true);
    joined_.queue();
}

void Interface::joined()
{
    kernel::Guard guard(ops_lock_);
    if (!adopted_.load_relaxed() || port_down())
        return;
    apply_mtu();
    (void)perform(InterfaceLife::Event::joined).ok();
}

void Interface::announce()
{
    // Without carrier it is queued again when that comes.
    if (life_.state() != InterfaceLife::State::running)
        return;
    shim_netdev_notify_peers(dev_);
    // The stack may take its time with each carrier, and drop what it is to send until then.
    if (--announcements_left_)
        announce_.queue(kernel::seconds(1));
}

void Interface::apply_mtu()
{
    // Connections carry whatever the user set.
    if (connected())
        return;
    const unsigned int mtu = datagram_mtu();
    if (const int error = adopt_mtu(mtu))
        log_warning(dev_, "failed to change the MTU to %u, error %d", mtu, error);
}

int Interface::adopt_mtu(unsigned int mtu)
{
    adopting_mtu_ = true;
    const int error = shim_netdev_change_mtu(dev_, mtu);
    adopting_mtu_ = false;
    return error;
}

void Interface::warn_of_multicast(unsigned int mtu) const
{
    if (mtu > ip_mtu(longest_frame()))
        log_warning(dev_, "mtu > %u will cause multicast packet drops.", ip_mtu(longest_frame()));
}

kernel::Status Interface::change_mtu(unsigned int mtu)
{
    const unsigned int most = connected() ? connections.max_mtu() : ip_mtu(max_ib_mtu_);
    if (mtu < lowest_mtu || mtu > most) {
        log_warning(dev_, "MTU %u is not between %u and %u", mtu, lowest_mtu, most);
        return kernel::invalid;
    }
    if (connected()) {
        warn_of_multicast(mtu);
        shim_netdev_store_mtu(dev_, mtu);
        return {};
    }
    if (!adopting_mtu_)
        admin_mtu_ = mtu;
    const unsigned int effective = datagram_mtu();
    if (lower.present())
        return lower.change_mtu(effective);
    shim_netdev_store_mtu(dev_, effective);
    return {};
}

kernel::Status Interface::set_connected(bool wanted)
{
    if (wanted == connected())
        return {};
    if (!has_queues()) {
        log_warning(dev_, "the HCA's own datapath has no connected mode: load with ipoib_enhanced=0");
        return kernel::invalid;
    }
    if (wanted) {
        log_warning(dev_, "enabling connected mode will cause multicast packet drops");
        TRY(use_one_tx_queue());
    }
    connected_.store(wanted);
    // Neighbours learn anew which way their packets go.
    if (life_.started()) {
        paths.flush();
        paths.accept();
    }
    if (!wanted) {
        use_all_tx_queues();
        admin_mtu_ = std::min(shim_netdev_mtu(dev_), ip_mtu(max_ib_mtu_));
    }
    shim_netdev_update_features(dev_);
    return adopt_mtu(wanted ? connections.max_mtu() : datagram_mtu());
}

kernel::Status Interface::use_one_tx_queue() { return lower.present() ? shim_netdev_use_tx_queues(dev_, 1) : 0; }

void Interface::use_all_tx_queues()
{
    if (!lower.present())
        return;
    // Packets may be on their way still to connections that were forgotten.
    shim_rcu_synchronize();
    if (const int error = shim_netdev_use_tx_queues(dev_, shim_netdev_tx_queues(dev_)))
        log_warning(dev_, "failed to use all transmit queues again, error %d", error);
}

// Packets that are too long

void Interface::reject_too_long(sk_buff* skb, unsigned int mtu)
{
    tx_dropped.add();
    connections.too_long.add();
    shim_skb_update_pmtu(skb, mtu);
    shim_skb_set_note(skb, mtu);
    {
        kernel::Guard guard(rejections_lock_);
        if (rejections_.push(skb, most_rejections))
            skb = nullptr;
    }
    if (skb)
        shim_skb_drop(skb, SHIM_DROP_TOO_LONG);
    // The answer may come back to us as a packet to be sent: not under the transmit lock.
    send_rejections_.queue(work_queue);
}

void Interface::send_rejections()
{
    kernel::PacketQueue packets;
    {
        kernel::Guard guard(rejections_lock_);
        packets.take(rejections_);
    }
    while (sk_buff* skb = packets.pop())
        shim_skb_reject_too_big(skb, dev_, shim_skb_note(skb));
}

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
    if (lower.present())
        lower.add_statistics(stats);
}

// The module

namespace {

// Writes back what is in force, as sysfs is to show.
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
                    kernel::clamp_ring_size(p.send_queue_size, Interface::least_sends, Interface::most_slots));
    clamp_parameter("recv_queue_size", p.recv_queue_size,
                    kernel::clamp_ring_size(p.recv_queue_size, Interface::least_receives, Interface::most_slots));
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
    // Flushes wait for RTNL, whose holders wait for memory, and for the system's queues: DIM's work is on one.
    if (ipoib::flush_queue.create("ipoib_flush", false) && ipoib::reap_queue.create("ipoib_reap", true))
        error = shim_debugfs_start();
    if (!error) {
        shim_sa_register();
        error = shim_link_register();
        if (!error) {
            error = shim_client_register();
            if (!error)
                return 0;
            shim_link_unregister();
        }
        shim_sa_unregister();
        shim_debugfs_stop();
    }
    ipoib::reap_queue.destroy();
    ipoib::flush_queue.destroy();
    return error;
}

void ipoib_stop()
{
    shim_link_unregister();
    shim_client_unregister();
    shim_sa_unregister();
    shim_debugfs_stop();
    ipoib::reap_queue.destroy();
    ipoib::flush_queue.destroy();
}

void ipoib_netdev_gone(net_device* dev)
{
    kernel::Owned<Interface> interface(&Interface::of(dev));
    interface->forget();
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
    return Interface::of(dev).change_mtu(static_cast<unsigned int>(mtu)).code();
}
ib_device* ipoib_port_of(const net_device* dev, std::uint32_t* port)
{
    *port = Interface::of(dev).port();
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
