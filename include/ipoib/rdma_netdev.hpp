// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The rdma_netdev of an interface: the HCA's own datapath for IPoIB (RDMA_NETDEV_IPOIB), if it has one. Groups, paths
// and neighbours are the interface's in any case. There are two kinds:
// - mlx5's replaces the interface's queues: it sends and receives everything on a queue pair of its own. Without queues
//   the interface has no connected mode.
// - hfi1's filters them: its ndo_init, open, stop and uninit call the interface's, which create and run the UD queue
//   pair. It finds the queue pair by the QPN in the hardware address, attaches groups to it and sends datagrams from
//   it. It receives unicast without GRH; all else that arrives, and connections, are the interface's.
#pragma once
#include <cstdint>

#include <ipoib/address.hpp>
#include <kernel/lock.hpp>
#include <kernel/opaque.hpp>
#include <kernel/result.hpp>
#include <shim/rdma_netdev.h>

namespace ipoib {

class Interface;

class RdmaNetdev {
public:
    explicit RdmaNetdev(Interface& interface) : interface_(interface) {}
    ~RdmaNetdev();
    RdmaNetdev(const RdmaNetdev&) = delete;
    RdmaNetdev& operator=(const RdmaNetdev&) = delete;

    // Creates the HCA's rdma_netdev, if it has one. CONTEXT: before registration.
    kernel::Status start() TA_REQUIRES(kernel::rtnl);
    // True if there is one; it sends all datagrams then. CONTEXT: any.
    bool present() const { return present_; }
    // True if the interface has no queues of its own. Valid from init() on.
    bool replaces_queues() const { return present_ && !filters_; }
    // For netdev operations that the shims pass on; nullptr: there is none.
    const shim_rdma_netdev* native() const { return present_ ? state_.get() : nullptr; }

    // Transmit queues that it has for datagrams.
    unsigned int tx_queues() const { return tx_queues_; }

    // Called by the netdev operations of the same names.
    kernel::Status init() TA_REQUIRES(kernel::rtnl);
    void uninit() TA_REQUIRES(kernel::rtnl);
    kernel::Status open() TA_REQUIRES(kernel::rtnl);
    void stop() TA_REQUIRES(kernel::rtnl);
    kernel::Status change_mtu(unsigned int mtu) TA_REQUIRES(kernel::rtnl);
    // CONTEXT: any.
    void tx_timed_out(unsigned int queue);
    // Adds its statistics, errors and drops included. CONTEXT: any.
    void add_statistics(shim_stats& stats) const;

    // Sets the largest IP packet of the link, in bytes.
    void set_mtu(unsigned int mtu);
    // Sends the packet, which begins with its encapsulation, to qpn over ah; consumes it. CONTEXT: under an RcuGuard
    // that covers ah.
    void send(sk_buff* skb, ib_ah* ah, std::uint32_t qpn) TA_REQUIRES(kernel::transmit_lock);
    // As Interface::attach_group().
    kernel::Status attach_group(const Gid& mgid, std::uint16_t mlid, bool broadcast);
    void detach_group(const Gid& mgid, std::uint16_t mlid);

    // Operations of the interface's queues, called by an rdma_netdev that filters them.
    kernel::Status init_queues() TA_REQUIRES(kernel::rtnl);
    void uninit_queues() TA_REQUIRES(kernel::rtnl);
    kernel::Status open_queues() TA_REQUIRES(kernel::rtnl);
    void stop_queues() TA_REQUIRES(kernel::rtnl);

private:
    Interface& interface_;
    bool present_ = false;
    unsigned int tx_queues_ = 1;
    bool filters_ = false;
    kernel::Opaque<shim_rdma_netdev> state_{};
};

} // namespace ipoib
