// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// One IPoIB interface: an "ib%d" netdev on one port of an HCA, and the objects that make it up. The netdev owns it.
//
// Lock order: RTNL, the netdev's ops lock if its rdma_netdev has one, GroupSet's or Connections' mutex, the netdev's
// address list lock or transmit lock, GroupSet's or PathTable's lock (which is the connections' too), Reaper's lock or
// PmtuNotifier's. Work items that take RTNL are on the flush queue, and cancelled where it is not held.
#pragma once
#include <cstdint>

#include <ipoib/address.hpp>
#include <ipoib/children.hpp>
#include <ipoib/connected.hpp>
#include <ipoib/debug_files.hpp>
#include <ipoib/fabric_events.hpp>
#include <ipoib/hca.hpp>
#include <ipoib/interface_life.hpp>
#include <ipoib/link_mtu.hpp>
#include <ipoib/multicast.hpp>
#include <ipoib/path.hpp>
#include <ipoib/pmtu.hpp>
#include <ipoib/port_identity.hpp>
#include <ipoib/rdma_netdev.hpp>
#include <ipoib/reaper.hpp>
#include <ipoib/rx_queue.hpp>
#include <ipoib/tx_queue.hpp>
#include <ipoib/ud_queues.hpp>
#include <kernel/list.hpp>
#include <kernel/lock.hpp>
#include <kernel/memory.hpp>
#include <kernel/result.hpp>
#include <kernel/work.hpp>
#include <shim/device.h>
#include <shim/ndo.h>
#include <shim/netdevice.h>
#include <shim/sa.h>

namespace ipoib {

// The link's parameters, from the broadcast group's member record; groups and paths are requested with them
// (RFC 4391 section 4).
struct LinkParameters {
    std::uint32_t qkey = 0;
    std::uint32_t flow_label = 0;
    std::uint8_t mtu = 0;
    std::uint8_t rate = 0;
    std::uint8_t sl = 0;
    std::uint8_t hop_limit = 0;
    std::uint8_t traffic_class = 0;
};

// The queue of all interfaces' work items that reap completions.
extern kernel::WorkQueue reap_queue;

class Interface : public kernel::ListNode<Interface>, public kernel::ListNode<OfHca> {
public:
    // An interface of a port.
    Interface(net_device* dev, Hca& hca, std::uint32_t port);
    // A child of parent.
    Interface(net_device* dev, Interface& parent, PKey pkey);
    static Interface& of(const net_device* dev) { return *static_cast<Interface*>(shim_rdma_netdev_clnt_priv(dev)); }

    // Registers the netdev. On failure nothing has changed. CONTEXT: RTNL.
    kernel::Status attach();
    // Unregisters the netdev and its children's, at once or with batch's. CONTEXT: RTNL.
    void detach(void* batch);
    // Cancels all work items; afterwards nothing refers to the interface. CONTEXT: process, no RTNL, detached.
    void cancel_work();

    // The netdev's operations. CONTEXT: RTNL; transmit(): softirq, under the transmit lock.
    kernel::Status init();
    void uninit();
    kernel::Status open();
    void stop();
    void transmit(sk_buff* skb);
    // CONTEXT: any.
    void tx_timed_out();
    // Sets the GUID, for it and its children. -EBUSY: it is up. -EINVAL: other bytes of the address differ.
    kernel::Status set_address(const HwAddr& address);
    void sum_statistics(shim_stats& stats) const;

    // The functions below change settings. CONTEXT: RTNL.

    // Connected or datagram mode. -EINVAL: an rdma_netdev has no connected mode.
    kernel::Status set_connected(bool connected);
    // Whether connections to peers that want the same carry no checksums of TCP and UDP. Present connections end.
    kernel::Status set_icrc_as_checksum(bool wanted);
    // Sets interrupt moderation. If adaptive, DIM adjusts it from these values on. -EINVAL: more than 65535.
    kernel::Status set_moderation(Moderation wanted, bool adaptive);
    // Rounds up to powers of two. A running interface gets another queue pair; see UdQueues::replace(). On failure the
    // sizes are unchanged. -EBUSY: the interface is a bond's port.
    kernel::Status set_ring_sizes(RingSizes wanted);
    // Groups that user space joined directly are not joined for the stack.
    void set_umcast(bool umcast);

    // Moves the state machine and does what it says. CONTEXT: RTNL and ops_lock.
    kernel::Status perform(InterfaceLife::Event event);
    // True between init() and uninit(). CONTEXT: RTNL.
    bool alive() const { return alive_; }
    // The hardware address has another QPN: neighbours are told once there is carrier. CONTEXT: RTNL.
    void address_changed();
    // Closes and opens the queues, from the flush queue. CONTEXT: any.
    void restart_queues() { restart_.queue(); }

    // Applies the parameters of the broadcast group's record to the link. CONTEXT: process.
    kernel::Status apply_link_parameters(const shim_mcmember& broadcast);
    // The broadcast group is joined and attached: there may be carrier. CONTEXT: process.
    void broadcast_joined();
    // Attaches the UD queue pair, or the rdma_netdev's, to a group. CONTEXT: process.
    kernel::Status attach_group(const Gid& mgid, std::uint16_t mlid, bool broadcast);
    void detach_group(const Gid& mgid, std::uint16_t mlid);

    // Adds to the netdev's features (bits of shim_ability). CONTEXT: RTNL.
    void add_abilities(unsigned int abilities);
    // True if the driver segments TCP's large packets, as the HCA can't.
    bool cuts_segments() const { return abilities_ & SHIM_CUT_BY_DRIVER; }
    // True if the HCA fills in checksums.
    bool leaves_checksums() const { return abilities_ & SHIM_CAN_CHECKSUM; }
    // False if an rdma_netdev replaces the UD queue pair, the rings and the connections.
    bool has_queues() const { return !rdma_netdev.replaces_queues(); }

    net_device* dev() const { return dev_; }
    ib_device* ca() const { return identity.ca(); }
    Interface* parent() const { return parent_; }
    bool connected() const { return connected_.load_relaxed(); }
    bool icrc_as_checksum() const { return icrc_as_checksum_.load_relaxed(); }
    bool umcast() const { return umcast_.load_relaxed(); }
    // CONTEXT: under GroupSet's mutex.
    const LinkParameters& link() const { return link_; }
    // The link's Q_Key and traffic class. CONTEXT: any.
    std::uint32_t qkey() const { return qkey_.load_relaxed(); }
    std::uint8_t traffic_class() const { return traffic_class_.load_relaxed(); }

private:
    net_device* const dev_;
    Hca& hca_;
    Interface* const parent_ = nullptr;

public:
    // Held by work items that do what the netdev's operations do.
    kernel::OpsLock ops_lock{dev_};
    kernel::WorkQueue work_queue;
    PortIdentity identity;
    UdQueues queues;
    Reaper reaper{*this};
    TxQueue tx{*this, dev_};
    RxQueue rx{*this};
    PathTable paths{*this};
    GroupSet groups{*this};
    Connections connections{*this};
    RdmaNetdev rdma_netdev{*this};
    LinkMtu mtu{*this};
    PmtuNotifier pmtu{*this};
    FabricEvents events{*this};
    Children children{*this};
    DebugFiles debug_files{dev_};
    // Packets dropped before they reached a table.
    kernel::SharedCounter tx_dropped;
    // Created by writing to create_child, which allows one child of each partition. Under RTNL.
    bool created_by_sysfs = false;

private:
    kernel::Status prepare();
    void destroy();
    kernel::Status start_queues();
    void stop_queues();
    // Starts the queues from the flush queue: there was no memory, or the HCA refused.
    void start_later();
    void bring_up();
    void bring_down();
    // Closes the interface to change its settings. Returns true if it was open: reopen() must follow.
    bool close_for_change();
    kernel::Status reopen();
    // Connections are sent to by the first of the transmit queues that an rdma_netdev may have.
    kernel::Status use_one_tx_queue();
    void use_all_tx_queues();
    void run_restart();
    void run_joined();
    void run_announce();
    void run_garbage();

    // Under RTNL.
    InterfaceLife life_;
    bool alive_ = false;
    bool paths_created_ = false, groups_created_ = false;
    unsigned int abilities_ = 0;
    // Gratuitous ARP and NA still to be sent after a change of the QPN. Repeated, because they may be lost.
    static constexpr unsigned int max_announcements = 3;
    unsigned int announcements_left_ = 0;

    kernel::Published<bool> connected_, umcast_, icrc_as_checksum_;
    LinkParameters link_;
    kernel::Published<std::uint32_t> qkey_;
    kernel::Published<std::uint8_t> traffic_class_;
    // The broadcast group was joined since the interface last went up.
    kernel::Published<bool> broadcast_joined_;

    // On the flush queue; cancelled at the interface's end, when RTNL is released.
    kernel::RtnlWork<&Interface::run_restart> restart_{*this, flush_queue};
    kernel::RtnlWork<&Interface::run_joined> joined_{*this, flush_queue};
    kernel::RtnlWork<&Interface::run_announce> announce_{*this, flush_queue};
    // On work_queue.
    kernel::Work<&Interface::run_garbage> garbage_{*this};
};

} // namespace ipoib
