// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An interface's UD queue pair, its completion queues and their protection domain: created and destroyed, put in and
// out of service. The rings, and the queues of connections, share them.
#pragma once
#include <cstdint>

#include <kernel/handle.hpp>
#include <kernel/rcu.hpp>
#include <kernel/result.hpp>
#include <kernel/work.hpp>
#include <shim/cq.h>
#include <shim/device.h>
#include <shim/module.h>
#include <shim/qp.h>

namespace ipoib {

class Interface;

// Slots of the send ring and the receive ring.
struct RingSizes {
    static constexpr int min_sends = 128, min_receives = 2, max_slots = 8192;
    unsigned int sends, receives;
    bool operator==(const RingSizes&) const = default;
};

// Interrupt moderation of the receive completion queue: an event after usecs microseconds, or frames packets.
struct Moderation {
    unsigned int usecs, frames;
};

class UdQueues {
public:
    // vector: completion vector of the receives, modulo the HCA's number of vectors.
    UdQueues(Interface& interface, unsigned int vector) : interface_(interface), vector_(vector), recover_(*this) {}

    ib_pd* pd() const { return pd_.get(); }
    ib_qp* qp() const { return qp_.get(); }
    ib_cq* send_cq() const { return send_cq_.get(); }
    ib_cq* recv_cq() const { return recv_cq_.get(); }
    std::uint32_t lkey() const { return lkey_; }
    const RingSizes& sizes() const { return sizes_; }
    // Elements of a send, at most.
    unsigned int send_sges() const;
    Moderation moderation() const { return {moderation_usecs_.load_relaxed(), moderation_frames_.load_relaxed()}; }

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
    // CONTEXT: process.
    kernel::Status moderate(Moderation wanted);
    // Moves the queue pair from SQE to RTS, from the work queue. CONTEXT: any.
    void recover();

private:
    std::uint32_t create_flags() const;
    kernel::Status create() TA_REQUIRES(kernel::rtnl);
    void destroy() TA_REQUIRES(kernel::rtnl);
    kernel::Status move_to_rts() TA_REQUIRES(kernel::rtnl);
    // Moves the queue pair to RESET and frees all posted buffers: the HCA does not access them afterwards.
    void empty() TA_REQUIRES(kernel::rtnl);
    // Waits until all that was posted is completed.
    void drain() TA_REQUIRES(kernel::rtnl);
    void run_recovery();

    Interface& interface_;
    const unsigned int vector_;
    kernel::Handle<ib_pd, shim_ib_dealloc_pd> pd_;
    kernel::Handle<ib_cq, shim_ib_destroy_cq> recv_cq_, send_cq_;
    kernel::Handle<ib_qp, shim_ib_destroy_qp> qp_;
    std::uint32_t lkey_ = 0;
    RingSizes sizes_{static_cast<unsigned int>(shim_parameters.send_queue_size),
                     static_cast<unsigned int>(shim_parameters.recv_queue_size)};
    kernel::Published<unsigned int> moderation_usecs_, moderation_frames_;
    kernel::Work<&UdQueues::run_recovery> recover_;
};

} // namespace ipoib
