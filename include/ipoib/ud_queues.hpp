// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An interface's protection domain, its UD queue pairs and their queues: created and destroyed, put in and out of
// service. The first queue pair has the QPN of the hardware address, receives all datagrams and sends those to groups.
// Further ones send unicast datagrams only, one for each further transmit queue of datagram mode.
#pragma once
#include <cstdint>

#include <kernel/handle.hpp>
#include <kernel/published.hpp>
#include <kernel/result.hpp>
#include <kernel/work.hpp>
#include <shim/device.h>
#include <shim/module.h>
#include <shim/netdevice.h>
#include <shim/qp.h>
#include <shim/skbuff.h>

namespace ipoib {

class Interface;
class TxQueue;

// Slots of the send ring and the receive ring.
struct RingSizes {
    static constexpr int min_sends = 128, min_receives = 2, max_slots = 8192;
    unsigned int sends, receives;
    bool operator==(const RingSizes&) const = default;
};

class UdQueues {
public:
    explicit UdQueues(Interface& interface) : interface_(interface), recover_(*this) {}

    ib_pd* pd() const { return pd_.get(); }
    // The queue pair of the hardware address.
    ib_qp* qp() const { return qp_of(0); }
    // The queue pair that a transmit queue's datagrams are posted to; nullptr: it sends none.
    ib_qp* qp_of(unsigned int queue) const { return qps_[queue].get(); }
    std::uint32_t lkey() const { return lkey_; }
    const RingSizes& sizes() const { return sizes_; }
    // Elements of a send, at most.
    unsigned int send_sges() const;

    // The protection domain, which outlives the queues.
    kernel::Status create_pd() TA_REQUIRES(kernel::rtnl);
    void destroy_pd() TA_REQUIRES(kernel::rtnl) { pd_.reset(); }

    // The parts of ndo_init, ndo_uninit, ndo_open and ndo_stop that concern the queues; called by an rdma_netdev that
    // filters them, or directly without one. On failure the queues do not exist after init(), and are out of service
    // after open(), which may have replaced or destroyed the queue pair.
    kernel::Status init() TA_REQUIRES(kernel::rtnl);
    void uninit() TA_REQUIRES(kernel::rtnl);
    kernel::Status open() TA_REQUIRES(kernel::rtnl);
    void close() TA_REQUIRES(kernel::rtnl);
    // Creates other queues for rings of these sizes. The QPN and so the hardware address change, which is announced to
    // neighbours (Announcer). On failure there are no queues. CONTEXT: out of service.
    kernel::Status replace(RingSizes sizes) TA_REQUIRES(kernel::rtnl);
    // Transmit queues that send datagrams: the first ones. CONTEXT: any.
    unsigned int senders() const { return senders_.load(); }
    // Returns the number of the transmit queue for a datagram to a neighbour: the same for all packets of a flow; -1:
    // the core may choose any, by XPS or by the packet's flow. CONTEXT: any.
    int select_sender(sk_buff* skb) const;
    // Sets the Q_Key of the queue pairs; a failure of a further one is logged only. CONTEXT: process, in service.
    kernel::Status set_qkey(std::uint32_t qkey);
    // Moves queue pairs from SQE to RTS, from the work queue. CONTEXT: any.
    void recover();

private:
    std::uint32_t create_flags() const;
    kernel::Status create() TA_REQUIRES(kernel::rtnl);
    void destroy() TA_REQUIRES(kernel::rtnl);
    // Creates the further queues that datagram mode has, up to the first that cannot be created, with queue pairs in
    // RTS. Returns the number of transmit queues that send datagrams.
    unsigned int create_senders() TA_REQUIRES(kernel::rtnl);
    kernel::Status create_sender(TxQueue& queue) TA_REQUIRES(kernel::rtnl);
    // Attributes that all queue pairs have in common.
    kernel::Status move_to_init(ib_qp* qp) TA_REQUIRES(kernel::rtnl);
    kernel::Status move_to_rts() TA_REQUIRES(kernel::rtnl);
    // Moves the queue pairs to RESET and frees all posted buffers: the HCA does not access them afterwards.
    void empty() TA_REQUIRES(kernel::rtnl);
    // Waits until all that was posted is completed.
    void drain() TA_REQUIRES(kernel::rtnl);
    void run_recovery();

    Interface& interface_;
    kernel::Handle<ib_pd, shim_ib_dealloc_pd> pd_;
    // By transmit queue.
    kernel::Handle<ib_qp, shim_ib_destroy_qp> qps_[SHIM_MAX_TX_QUEUES];
    kernel::Published<unsigned int> senders_{1};
    std::uint32_t lkey_ = 0;
    RingSizes sizes_{static_cast<unsigned int>(shim_parameters.send_queue_size),
                     static_cast<unsigned int>(shim_parameters.recv_queue_size)};
    kernel::Work<&UdQueues::run_recovery> recover_;
};

} // namespace ipoib
