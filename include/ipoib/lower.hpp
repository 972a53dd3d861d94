// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The HCA's own datapath for IPoIB (RDMA_NETDEV_IPOIB), where it has one: the lower half of an interface. The interface
// has groups, paths and neighbours in any case. There are two kinds:
// - One replaces the interface's queues (mlx5): it has a queue pair of its own, and sends and receives everything.
//   Without queues the interface has no connected mode.
// - The other filters them (hfi1): from its own ndo_init, open, stop and uninit it calls the interface's, which make
//   the UD queue pair and run it. It finds that by the QPN in the hardware address, attaches groups to it and sends
//   datagrams from it by itself. Of what arrives it takes what it likes (hfi1: unicast without GRH); the rest, and
//   connections, are the interface's.
#pragma once
#include <cstddef>
#include <cstdint>

#include <generated/layout.h>
#include <ipoib/address.hpp>
#include <kernel/result.hpp>
#include <shim/lower.h>

namespace ipoib {

class Interface;

class LowerHalf {
public:
    explicit LowerHalf(Interface& interface) : interface_(interface) {}
    ~LowerHalf();
    LowerHalf(const LowerHalf&) = delete;
    LowerHalf& operator=(const LowerHalf&) = delete;

    // Asks the HCA for one; success with or without. CONTEXT: RTNL, before registration.
    kernel::Status start();
    // There is one, and datagrams are sent by it. CONTEXT: any.
    bool present() const { return present_; }
    // True when the lower half has the queues and the interface has none. Known since init().
    bool replaces_queues() const { return present_ && !filters_; }
    // For the kernel's operations that are passed on to it; nullptr without one.
    const shim_lower* native() const { return present_ ? lower() : nullptr; }

    // From within the netdev's operations of the same name. CONTEXT: RTNL.
    kernel::Status init();
    void uninit();
    kernel::Status open();
    void stop();
    kernel::Status change_mtu(unsigned int mtu);
    // CONTEXT: any.
    void tx_timed_out();
    void add_statistics(shim_stats& stats) const;

    // The largest IP packet of the link, in bytes.
    void set_mtu(unsigned int mtu);
    // Sends the packet, which begins with its encapsulation, to qpn by way of ah; takes it in every case. CONTEXT:
    // under the transmit lock and an RcuGuard that covers ah.
    void send(sk_buff* skb, ib_ah* ah, std::uint32_t qpn);
    // CONTEXT: process.
    kernel::Status attach_group(const Gid& mgid, std::uint16_t mlid, bool broadcast);
    void detach_group(const Gid& mgid, std::uint16_t mlid);

    // Operations of the interface's own queues, called by a lower half that filters them. CONTEXT: RTNL.
    kernel::Status init_queues();
    void uninit_queues();
    kernel::Status open_queues();
    void stop_queues();

private:
    Interface& interface_;
    bool present_ = false;
    bool filters_ = false;
    alignas(SHIM_ALIGNOF_LOWER) std::byte lower_[SHIM_SIZEOF_LOWER] = {};
    shim_lower* lower() { return reinterpret_cast<shim_lower*>(lower_); }
    const shim_lower* lower() const { return reinterpret_cast<const shim_lower*>(lower_); }
};

} // namespace ipoib
