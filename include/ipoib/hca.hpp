// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An HCA and the interfaces on its ports: the ib_client's data of an ib_device. Also finds the interface that a request
// of rdma_cm is for.
#pragma once
#include <cstdint>

#include <ipoib/address.hpp>
#include <kernel/list.hpp>
#include <kernel/lock.hpp>
#include <shim/device.h>

namespace ipoib {

class Interface;
// Tag of the list of an HCA's interfaces, children included.
class OfHca;

// Returns what the HCA can do for datagrams: bits of shim_feature. CONTEXT: any.
unsigned int features_of(const ib_device* ca);

// Returns the bytes of the longest datagram that may arrive at the port, for its receive buffers: on Omni-Path, whose
// active MTU is reported as 4096 bytes if it is larger, the port's MTU.
inline unsigned int receive_mtu(const shim_port& port) { return port.omni_path ? port.max_mtu : port.active_mtu; }

class Hca {
public:
    explicit Hca(ib_device* ca);
    ib_device* ca() const { return ca_; }
    // True if its rdma_netdev, if it has one, is used: see ipoib_enhanced and ipoib_enhanced_except.
    bool uses_rdma_netdev() const { return uses_rdma_netdev_; }

    // Interfaces of ports.
    kernel::List<Interface> parents TA_GUARDED(kernel::rtnl);

    // Completion vectors for the receives of new interfaces, in turn.
    void begin_vectors(unsigned int first) TA_REQUIRES(kernel::rtnl) { next_vector_ = first; }
    unsigned int take_vector() TA_REQUIRES(kernel::rtnl) { return next_vector_++; }

    // Adds an interface to, or removes it from, those that find() looks at.
    void add(Interface& interface) TA_REQUIRES(kernel::rtnl) TA_EXCLUDES(lock_);
    void remove(Interface& interface) TA_REQUIRES(kernel::rtnl) TA_EXCLUDES(lock_);
    // Changes an interface's GID, which find() compares.
    void change_gid(PublishedGid& gid, const Gid& to) TA_REQUIRES(kernel::rtnl) TA_EXCLUDES(lock_);
    // Returns the netdev for a request on the port with this P_Key, GID (nullptr: any) and, if several match, IP
    // address (nullptr: any), with a reference; its layer 2 master, if it has one. nullptr: none. CONTEXT: process,
    // with or without RTNL.
    net_device* find(std::uint32_t port, PKey pkey, const Gid* gid, const sockaddr* address) TA_EXCLUDES(lock_);

private:
    static kernel::LockClass lock_class_;

    ib_device* const ca_;
    const bool uses_rdma_netdev_;
    // Modulo the number of vectors.
    unsigned int next_vector_ TA_GUARDED(kernel::rtnl) = 0;
    kernel::Mutex lock_ TA_ACQUIRED_AFTER(kernel::rtnl){lock_class_, "ipoib_interfaces"};
    kernel::List<Interface, OfHca> interfaces_ TA_GUARDED(lock_);
};

} // namespace ipoib
