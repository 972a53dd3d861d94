// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An interface's settings, which the user changes through sysfs, netlink and ethtool. Getters: CONTEXT: any.
#pragma once
#include <ipoib/rx_queue.hpp>
#include <ipoib/ud_queues.hpp>
#include <kernel/published.hpp>
#include <kernel/result.hpp>

namespace ipoib {

class Interface;

class Settings {
public:
    explicit Settings(Interface& interface) : interface_(interface) {}

    // Connected or datagram mode; each has its own number of transmit queues. The interface is closed and opened if
    // datagram mode has several transmit queues. -EINVAL: an rdma_netdev has no connected mode. Other errors: of
    // opening again, or of setting the number of queues.
    kernel::Status set_connected(bool connected) TA_REQUIRES(kernel::rtnl);
    bool connected() const { return connected_.load_relaxed(); }
    // Whether connections to peers that want the same carry no checksums of TCP and UDP. Current connections end.
    // -EOPNOTSUPP: an rdma_netdev has no connections.
    kernel::Status set_icrc_as_checksum(bool wanted) TA_REQUIRES(kernel::rtnl);
    bool icrc_as_checksum() const { return icrc_as_checksum_.load_relaxed(); }
    // Groups that user space joined directly are not joined for the stack.
    void set_umcast(bool umcast) TA_REQUIRES(kernel::rtnl);
    bool umcast() const { return umcast_.load_relaxed(); }
    // Set interrupt moderation of all receive queues, or of one. If adaptive, DIM adjusts it from these values on.
    // -EINVAL: more than 65535; there is no such queue. -EOPNOTSUPP: an rdma_netdev replaces the queues. Other errors:
    // the HCA's; queues before the one that failed keep the new values.
    kernel::Status set_moderation(Moderation wanted, bool adaptive) TA_REQUIRES(kernel::rtnl);
    kernel::Status set_queue_moderation(unsigned int queue, Moderation wanted, bool adaptive) TA_REQUIRES(kernel::rtnl);
    // Rounds up to powers of two. A running interface gets another queue pair; see UdQueues::replace(). On failure the
    // sizes are unchanged. -EBUSY: the interface is a bond's slave. -EOPNOTSUPP: there is an rdma_netdev.
    kernel::Status set_ring_sizes(RingSizes wanted) TA_REQUIRES(kernel::rtnl);

    // Uses this many receive queues for connections, and transmit queues in the current mode; current connections end.
    // -EOPNOTSUPP: more than FurtherQueues::max_transmit() or max_receive(), which are 1 with an rdma_netdev;
    // max_receive() also without shared receive queues.
    kernel::Status set_queues(unsigned int transmits, unsigned int receives) TA_REQUIRES(kernel::rtnl);
    // Transmit queues of the current mode.
    unsigned int transmit_queues() const { return transmit_queues_of(connected()); }

    // Transmit queues of datagram mode.
    unsigned int datagram_queues() const { return datagram_queues_.load_relaxed(); }

private:
    // Makes a change to queues that are out of service.
    template <class Change>
    kernel::Status while_closed(Change change) TA_REQUIRES(kernel::rtnl);
    // Sets the moderation of the receive queues from first to before end.
    kernel::Status moderate(unsigned int first, unsigned int end, Moderation wanted, bool adaptive)
        TA_REQUIRES(kernel::rtnl);
    kernel::Status change_mode(bool connected) TA_REQUIRES(kernel::rtnl);
    // Lets the user allow GSO packets of more than 64 KiB (BIG TCP), in connected mode only.
    void limit_gso_packets() TA_REQUIRES(kernel::rtnl);
    unsigned int transmit_queues_of(bool connected) const;
    void use_datagram_tx_queues() TA_REQUIRES(kernel::rtnl);

    Interface& interface_;
    kernel::Published<unsigned int> datagram_queues_{1};
    // Limit of a GSO packet's bytes in datagram mode, kept while in connected mode.
    unsigned int datagram_gso_bytes_ TA_GUARDED(kernel::rtnl) = 0;
    kernel::Published<bool> connected_, icrc_as_checksum_, umcast_;
};

} // namespace ipoib
