// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An HCA with all interfaces on its ports: what the kernel keeps for us between an HCA's coming and its going, and
// where rdma_cm asks which interface a request is for.
#pragma once
#include <cstdint>

#include <ipoib/address.hpp>
#include <kernel/list.hpp>
#include <kernel/lock.hpp>
#include <shim/module.h>

namespace ipoib {

class Interface;
// The list of an HCA's interfaces, children included.
class OfHca;

class Hca {
public:
    explicit Hca(ib_device* ca);
    ib_device* ca() const { return ca_; }
    // Its own datapath, if it has one, is to be used: ipoib_enhanced and ipoib_enhanced_except say so.
    bool accelerates() const { return accelerates_; }

    // Those of ports. CONTEXT: RTNL.
    kernel::List<Interface> parents;

    // Completion vectors for the receives of new interfaces, given out in turn. CONTEXT: RTNL.
    void begin_vectors(unsigned int first) { next_vector_ = first; }
    unsigned int take_vector() { return next_vector_++; }

    // A registered interface can be found from now on, or no more. CONTEXT: RTNL.
    void add(Interface& interface) TA_EXCLUDES(lock_);
    void remove(Interface& interface) TA_EXCLUDES(lock_);
    // Changes an interface's GID, which find() compares. CONTEXT: RTNL.
    void change_gid(PublishedGid& gid, const Gid& to) TA_EXCLUDES(lock_);
    // The netdev, held for the caller, for which a request came in on the port with this P_Key, for this GID (nullptr:
    // any) and, where several would do, this IP address (nullptr: any): the interface, or what it is enslaved to at
    // layer 2. nullptr: none. CONTEXT: process, with or without RTNL.
    net_device* find(std::uint32_t port, PKey pkey, const Gid* gid, const sockaddr* address) TA_EXCLUDES(lock_);

private:
    static kernel::LockClass lock_class_;

    ib_device* const ca_;
    const bool accelerates_;
    // Under RTNL; modulo their number.
    unsigned int next_vector_ = 0;
    // Taken inside RTNL.
    kernel::Mutex lock_{lock_class_, "ipoib_interfaces"};
    kernel::List<Interface, OfHca> interfaces_ TA_GUARDED(lock_);
};

} // namespace ipoib
