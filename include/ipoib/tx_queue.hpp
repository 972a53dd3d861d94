// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A transmit queue of the netdev: flow control, byte queue limits (BQL), completion events, NAPI, stall watchdog and
// counters. The first one sends datagrams, in datagram mode others do, too; each sends for the connections that are
// assigned to it.
#pragma once
#include <cstdint>

#include <ipoib/completions.hpp>
#include <ipoib/path_lock.hpp>
#include <ipoib/rc_send_pool.hpp>
#include <ipoib/ud_send_ring.hpp>
#include <kernel/counter.hpp>
#include <kernel/handle.hpp>
#include <kernel/lock.hpp>
#include <kernel/napi.hpp>
#include <kernel/published.hpp>
#include <kernel/result.hpp>
#include <kernel/work.hpp>
#include <shim/cq.h>
#include <shim/skbuff.h>
#include <shim/tx_queue.h>

namespace ipoib {

class Interface;

class TxQueue {
public:
    // Bytes in flight beyond which a completion event is requested; up to it, reap() or the poll of the receive
    // queue of the same number handles completions. Also BQL's minimum limit: with less in flight no event would
    // release the packets that BQL holds. A larger value would stall sockets with small send buffers, such as ICMP's,
    // which has space for two packets of 64 KiB.
    static constexpr std::uint32_t prompt_bytes = 16384;
    // BQL counts the bytes of all connections: those to a peer that has stopped acknowledging would hold the packets
    // to all others until the HCA gives up, after seconds. While the queue is stopped, outstanding messages are checked
    // at this interval; those that a check sees for the second time do not count any more.
    static constexpr unsigned int silence_ms = 100;

    TxQueue(Interface& interface, unsigned int index);

    // Creates the completion queue on a vector of the HCA, with space for a UD send ring of `datagrams` slots, which
    // the caller creates, and a pool of `messages` slots of up to sges elements; 0: none. On failure destroy() undoes
    // what was done. CONTEXT: process.
    kernel::Status create(unsigned int datagrams, unsigned int messages, unsigned int sges, unsigned int vector);
    // CONTEXT: process; no queue pair uses the completion queue.
    void destroy();
    ib_cq* cq() const { return cq_.get(); }
    // The netdev's number of the queue, from 0.
    unsigned int index() const { return index_; }

    // The poll runs between start() and stop(). CONTEXT: process; stop(): closed, and nothing transmits.
    void start();
    // No packet is accepted and the queue is not woken any more; completions are still handled. CONTEXT: process.
    void close() { closed_.store(true); }
    void stop();
    // Frees sends that never completed. CONTEXT: process; stopped, and no queue pair has sends.
    void empty();
    bool closed() const { return closed_.load_relaxed(); }

    // A packet was built. Stops the queue if there is no space for another. more: others follow at once. Returns true
    // if the doorbell must be rung now.
    bool account(unsigned int bytes, bool more) TA_REQUIRES(kernel::transmit_lock)
    {
        accounted.store(accounted.load_relaxed() + bytes);
        const bool ring_now = shim_netdev_tx_sent_queue(dev_, index_, bytes, more);
        if (has_space()) [[likely]]
            return ring_now;
        stop_stack();
        return true;
    }
    // Rings the doorbells of ring and pool.
    void ring_doorbells() TA_REQUIRES(kernel::transmit_lock)
    {
        ring.ring_doorbell();
        pool.ring_doorbell();
    }
    // Sends were posted: requests an event for their completions, or queues reap(). CONTEXT: bottom halves off.
    void expect_completions();
    // Schedules the poll if sends are outstanding; for the poll of the receive queue of the same number. CONTEXT: any.
    void reap_soon()
    {
        if (!closed_.load() && outstanding() != 0)
            napi_.schedule();
    }
    // Packets were freed; queued: their bytes as account() was given them, or those that do not count any more.
    void finished(std::uint32_t count, std::uint64_t payload, std::uint32_t queued) TA_REQUIRES(kernel::transmit_poll);
    // Sends that are posted and not freed.
    unsigned int outstanding() const { return ring.index().used() + pool.used(); }
    // The completion queue raised its event. CONTEXT: any.
    void notified()
    {
        armed_.store(false);
        napi_.schedule();
    }
    // Lets the poll look for peers that have become silent. CONTEXT: process or softirq.
    void check_silence();
    // Stops the netdev's queue, as if there were no space, until the matching release_stack(). Calls nest.
    void hold_stack() TA_REQUIRES(kernel::transmit_lock, path_lock);
    void release_stack() TA_REQUIRES(path_lock);
    // The drop reason of a packet that could not be built.
    shim_drop drop_reason() const
    {
        return closed() ? SHIM_DROP_DEV_READY : has_space() ? SHIM_DROP_NOMEM : SHIM_DROP_FULL_RING;
    }
    int poll(int budget) TA_REQUIRES(kernel::transmit_poll);
    // Handles all completions that the completion queue has now.
    void complete_all() TA_REQUIRES(kernel::transmit_poll);
    kernel::Napi<&TxQueue::poll>& napi() { return napi_; }
    using PollPause = kernel::Napi<&TxQueue::poll>::Pause;

    UdSendRing ring;
    RcSendPool pool;
    // Connections that are assigned to the queue.
    unsigned int connections TA_GUARDED(path_lock) = 0;
    // Written by the poll.
    kernel::Counter packets, bytes, errors;
    // Written under the transmit lock: stops of the netdev's queue; bytes that account() was given, which wrap.
    kernel::Counter stops;
    kernel::Published<std::uint32_t> accounted;

private:
    // Handles up to limit completions; returns their number. budget: NAPI's, 0 outside of softirqs.
    int complete(int limit, int budget) TA_REQUIRES(kernel::transmit_poll);
    bool has_space() const { return ring.has_space() && pool.has_space() && !held_.load(); }
    void stop_stack() TA_REQUIRES(kernel::transmit_lock);
    void wake_stack();
    // True if completions must be handled as they come: many are to come, or the stack waits for them.
    bool prompt() const;
    void reap();
    // Detects sends that never complete: at the last run they were there, and none completed since. The kernel's own
    // watchdog only looks at stopped queues.
    void watch();

    Interface& interface_;
    net_device* const dev_;
    const unsigned int index_;
    kernel::Handle<ib_cq, shim_ib_destroy_cq> cq_;
    // Outstanding sends beyond which a completion event is requested.
    unsigned int prompt_sends_ = 0;
    // True from close() to start(), and after a failed post until the restart.
    kernel::Published<bool> closed_{true};
    // Holds of the stack; and whether there are any.
    unsigned int holds_ TA_GUARDED(path_lock) = 0;
    kernel::Published<bool> held_;
    Completions completions_ TA_GUARDED(kernel::transmit_poll);
    kernel::Napi<&TxQueue::poll> napi_;
    // Bytes of packets that were freed or discounted, by the poll.
    kernel::Published<std::uint32_t> finished_;
    // INVARIANT: while sends are outstanding, the completion queue is armed, or reap_ is queued, or the poll is
    // scheduled or runs.
    kernel::Published<bool> armed_, reap_queued_;
    kernel::Work<&TxQueue::reap> reap_;
    // silence_ is queued; and the poll is to look.
    kernel::Published<bool> silence_queued_, silence_due_;
    kernel::Work<&TxQueue::check_silence> silence_;
    kernel::Work<&TxQueue::watch> watch_;
    // The ring's tail at the last run of watch().
    std::uint32_t watched_tail_ = 0;
};

} // namespace ipoib
