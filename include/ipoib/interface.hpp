// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// One IPoIB interface: an "ib%d" netdev on one port of an HCA, and the objects that make it up. The netdev owns it.
//
// Documentation/architecture.md has the lock order. Work items that take RTNL are on the flush queue; cancel them
// without RTNL.
#pragma once
#include <cstdint>

#include <ipoib/address.hpp>
#include <ipoib/announcer.hpp>
#include <ipoib/children.hpp>
#include <ipoib/connected.hpp>
#include <ipoib/debug_files.hpp>
#include <ipoib/fabric_events.hpp>
#include <ipoib/further_queues.hpp>
#include <ipoib/hca.hpp>
#include <ipoib/interface_state.hpp>
#include <ipoib/link.hpp>
#include <ipoib/link_mtu.hpp>
#include <ipoib/multicast.hpp>
#include <ipoib/path.hpp>
#include <ipoib/pmtu.hpp>
#include <ipoib/port_identity.hpp>
#include <ipoib/queue_array.hpp>
#include <ipoib/rdma_netdev.hpp>
#include <ipoib/reaper.hpp>
#include <ipoib/requeuer.hpp>
#include <ipoib/rx_queue.hpp>
#include <ipoib/settings.hpp>
#include <ipoib/tx_queue.hpp>
#include <ipoib/ud_queues.hpp>
#include <kernel/counter.hpp>
#include <kernel/handle.hpp>
#include <kernel/list.hpp>
#include <kernel/lock.hpp>
#include <kernel/memory.hpp>
#include <kernel/result.hpp>
#include <kernel/work.hpp>
#include <shim/device.h>
#include <shim/ndo.h>
#include <shim/netdevice.h>

namespace ipoib {

// The queue of all interfaces' work items that reap completions.
extern kernel::WorkQueue reap_queue;

class Interface : public kernel::ListNode<Interface>, public kernel::ListNode<OfHca> {
public:
    // An interface of a port.
    Interface(net_device* dev, Hca& hca, std::uint32_t port);
    // A child of parent.
    Interface(net_device* dev, Interface& parent, PKey pkey);
    static Interface& of(const net_device* dev) { return *static_cast<Interface*>(shim_rdma_netdev_clnt_priv(dev)); }

    // Registers the netdev. On failure it is not registered, and the caller frees netdev and interface. -ENOMEM;
    // -EEXIST: the name is taken; other errors: the HCA's, or a notifier's.
    kernel::Status attach() TA_REQUIRES(kernel::rtnl);
    // Unregisters the netdev and its children's: at once if batch is nullptr, else with the others in batch
    // (unregister_netdevice_many()).
    void detach(void* batch) TA_REQUIRES(kernel::rtnl);
    // Cancels the work items on the flush queue, the last references to the interface; uninit() and close() cancelled
    // the others. CONTEXT: process, detached.
    void cancel_work() TA_EXCLUDES(kernel::rtnl);

    // The netdev's operations. init(): -ENOMEM, or the HCA's error. open(): as init(); the netdev stays down.
    kernel::Status init() TA_REQUIRES(kernel::rtnl);
    void uninit() TA_REQUIRES(kernel::rtnl);
    kernel::Status open() TA_REQUIRES(kernel::rtnl);
    void stop() TA_REQUIRES(kernel::rtnl);
    void transmit(sk_buff* skb) TA_REQUIRES(kernel::transmit_lock);
    // Returns the number of the transmit queue for the packet, which begins with its hard header; -1: any. CONTEXT:
    // any.
    int select_queue(sk_buff* skb);
    // Passes packets that waited for a path, group or connection to dev_queue_xmit(). CONTEXT: process or softirq,
    // without the path lock or a transmit lock.
    void resubmit(kernel::PacketQueue& packets) TA_EXCLUDES(path_lock);
    // Frees a packet and counts it in tx_dropped. CONTEXT: any.
    void drop(sk_buff* skb, shim_drop reason)
    {
        tx_dropped.add();
        shim_kfree_skb_reason(skb, reason);
    }
    // queue: the netdev's number of the queue that does not send. CONTEXT: any.
    void tx_timed_out(unsigned int queue);
    // The same, of a queue that the stack has seen stopped for IPOIB_WATCHDOG_S. CONTEXT: softirq.
    void stack_timed_out(unsigned int queue);
    // Sets the GUID, also its children's. -EBUSY: it is up. -EINVAL: other bytes of the address differ, or the GUID is
    // 0. Other errors: the port's GID cannot be read.
    kernel::Status set_address(const HwAddr& address) TA_REQUIRES(kernel::rtnl);
    // Sums the counters of all queues, and adds the rdma_netdev's. CONTEXT: any.
    void sum_statistics(shim_stats& stats) const;

    // True between init() and uninit().
    bool alive() const TA_REQUIRES(kernel::rtnl) { return alive_; }
    // Attaches the UD queue pair, or the rdma_netdev's, to a group. mlid: host byte order. broadcast: an rdma_netdev
    // also sets the link's Q_Key. Returns the HCA's error. CONTEXT: process.
    kernel::Status attach_group(const Gid& mgid, std::uint16_t mlid, bool broadcast);
    void detach_group(const Gid& mgid, std::uint16_t mlid);

    // Has new connections assigned to the first count receive queues. CONTEXT: down, or before registration.
    kernel::Status set_receive_queues(unsigned int count) TA_REQUIRES(kernel::rtnl);
    // Adds to the netdev's features (bits of shim_feature).
    void add_features(unsigned int features) TA_REQUIRES(kernel::rtnl);
    // True if the driver segments TCP's large packets, as the HCA can't.
    bool driver_tso() const { return features_ & SHIM_FEATURE_DRIVER_TSO; }
    // True if the HCA fills in checksums.
    bool hca_checksums() const { return features_ & SHIM_FEATURE_IP_CSUM; }
    // False if an rdma_netdev replaces the UD queue pair, the rings and the connections.
    bool has_queues() const { return !rdma_netdev.replaces_queues(); }

    net_device* dev() const { return dev_; }
    ib_device* ca() const { return identity.ca(); }
    Interface* parent() const { return parent_; }

private:
    net_device* const dev_;
    Hca& hca_;
    Interface* const parent_ = nullptr;
    // The parent's netdev, of which a child has a reference until all members below are destroyed: the removal of the
    // HCA waits for it. The kernel frees a child that is deleted without RTNL, and its rdma_netdev uses the HCA until
    // then.
    kernel::Handle<net_device, shim_dev_put> held_parent_;

public:
    // Held by work items that do what the netdev's operations do.
    kernel::OpsLock ops_lock{dev_};
    kernel::WorkQueue work_queue;
    PortIdentity identity;
    UdQueues queues{*this};
    FurtherQueues further_queues;
    Reaper reaper{*this};
    QueueArray<TxQueue, SHIM_MAX_TX_QUEUES> tx{*this};
    QueueArray<RxQueue, SHIM_MAX_RX_QUEUES> rx{*this};
    PathTable paths{*this};
    GroupSet groups{*this};
    Connections connections{*this};
    RdmaNetdev rdma_netdev{*this};
    InterfaceState state{*this};
    Settings settings{*this};
    Link link{*this};
    LinkMtu mtu{*this};
    PmtuNotifier pmtu{*this};
    Requeuer requeuer{*this};
    FabricEvents events{*this};
    Announcer announcer{*this};
    Children children{*this};
    DebugFiles debug_files{dev_};
    // Packets dropped before they reached a table.
    kernel::SharedCounter tx_dropped;
    // Created by writing to create_child, which allows one child of each partition.
    bool created_by_sysfs TA_GUARDED(kernel::rtnl) = false;

private:
    // wanted_mtu: as of LinkMtu::begin().
    kernel::Status prepare(unsigned int wanted_mtu) TA_REQUIRES(kernel::rtnl);
    void destroy() TA_REQUIRES(kernel::rtnl);

    bool alive_ TA_GUARDED(kernel::rtnl) = false;
    unsigned int features_ = 0;
};

} // namespace ipoib
