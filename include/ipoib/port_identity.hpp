// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An interface's identity on the fabric: the HCA's port, P_Key, GID, LID and UD QPN, and the hardware address that they
// make up (RFC 4391 section 9.1.1). Written under RTNL, read in any context; the QPN is written
// while the queues are out of service.
#pragma once
#include <cstdint>

#include <ipoib/address.hpp>
#include <ipoib/hca.hpp>
#include <kernel/published.hpp>
#include <kernel/result.hpp>
#include <shim/device.h>
#include <shim/netdevice.h>

namespace ipoib {

class PortIdentity {
public:
    // An interface of a port, with the first P_Key of the port's table.
    PortIdentity(net_device* dev, Hca& hca, std::uint32_t port) : dev_(dev), hca_(hca), ca_(hca.ca()), port_(port) {}
    // A child of parent with a P_Key of its own.
    PortIdentity(net_device* dev, const PortIdentity& parent, PKey pkey)
        : dev_(dev), hca_(parent.hca_), ca_(parent.ca_), port_(parent.port_), parent_(&parent),
          pkey_(pkey.as_full_member().value())
    {
    }

    ib_device* ca() const { return ca_; }
    std::uint32_t port() const { return port_; }
    PKey pkey() const { return PKey(pkey_.load_relaxed()); }
    // True if the port's table has the P_Key, at pkey_index().
    bool has_pkey() const { return has_pkey_.load_relaxed(); }
    std::uint16_t pkey_index() const { return pkey_index_.load_relaxed(); }
    bool uses_pkey_index(std::uint16_t index) const { return has_pkey() && pkey_index() == index; }
    Gid gid() const { return gid_.load(); }
    // Index of the GID in the port's table; -1: the table does not have it, and no packet reaches the interface.
    int gid_index() const;
    std::uint16_t lid() const { return lid_.load_relaxed(); }
    std::uint32_t qpn() const { return qpn_; }
    HwAddr broadcast() const { return HwAddr::from(shim_netdev_broadcast(dev_)); }
    // True if the port says that it is not active. False if it does not answer. CONTEXT: process.
    bool port_down() const;

    // The functions below write.

    // Reads GID, GUID and P_Key before the netdev is registered. Honours a GUID that was requested for the interface.
    void begin() TA_REQUIRES(kernel::rtnl);
    // Reads GID, P_Key, LID and the bytes of the longest datagram that may arrive, until a query fails: a query of an
    // HCA that does not answer may take long, and RTNL is held. On failure the values that were not read are unchanged.
    // -EAGAIN: the port has another GID than ib_core's copy, which is being updated.
    kernel::Status read(unsigned int& longest) TA_REQUIRES(kernel::rtnl);
    // Delay before a failed read() is repeated, in seconds: 1, 2, 4, ... 64; 1 again after a success.
    unsigned int next_retry_s() TA_REQUIRES(kernel::rtnl);
    void set_lid(std::uint16_t lid) TA_REQUIRES(kernel::rtnl) { lid_.store(lid); }
    // Sets QPN and flags of the hardware address.
    void set_queue_pair(std::uint32_t qpn, std::uint8_t flags) TA_REQUIRES(kernel::rtnl);
    // Replaces the GUID by that of address. -EINVAL: other bytes of address are not the current ones, or the GUID is 0.
    kernel::Status set_guid(const HwAddr& address) TA_REQUIRES(kernel::rtnl);
    // Adopts the parent's GUID, which was set.
    void follow_guid(const PortIdentity& parent) TA_REQUIRES(kernel::rtnl);

private:
    static constexpr unsigned int first_retry_s = 1, max_retry_s = 64;
    static constexpr unsigned int gid_attempts = 20, gid_interval_ms = 5;

    kernel::Status read_pkey() TA_REQUIRES(kernel::rtnl);
    // Queries ib_core's copy of the port's GID. Repeated while there is none: ib_core, which reads the port's table at
    // each fabric event, removes an entry before it stores the new one.
    kernel::Status query_gid(shim_gid& gid) const TA_REQUIRES(kernel::rtnl);
    // Reads ib_core's copy of the port's GID into gid(), and into the hardware address.
    kernel::Status read_gid() TA_REQUIRES(kernel::rtnl);
    // Compares ib_core's copy with the port's own GID. -EAGAIN: as read().
    kernel::Status compare_gid() TA_REQUIRES(kernel::rtnl);
    // On failure, as the GID table cannot be read, the GUID is unchanged.
    kernel::Status choose_guid(const Gid& like) TA_REQUIRES(kernel::rtnl);
    // Logs the first of consecutive failures. Returns error.
    int unanswered(const char* what, int error) const TA_REQUIRES(kernel::rtnl);
    HwAddr address() const TA_REQUIRES(kernel::rtnl) { return HwAddr::of(flags_, qpn_, gid()); }
    void show_address() TA_REQUIRES(kernel::rtnl);

    net_device* const dev_;
    Hca& hca_;
    ib_device* const ca_;
    const std::uint32_t port_;
    const PortIdentity* const parent_ = nullptr;
    kernel::Published<std::uint16_t> pkey_, pkey_index_, lid_;
    kernel::Published<bool> has_pkey_;
    PublishedGid gid_;
    // The GUID is the administrator's choice, not the port's first.
    bool guid_chosen_ TA_GUARDED(kernel::rtnl) = false;
    std::uint32_t qpn_ = 0;
    std::uint8_t flags_ TA_GUARDED(kernel::rtnl) = 0;
    unsigned int retry_s_ TA_GUARDED(kernel::rtnl) = first_retry_s;
};

} // namespace ipoib
