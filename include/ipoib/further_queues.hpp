// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The queues that an interface has besides its first receive queue and transmit queue. Those of connections are created
// when one is assigned to them, those of datagrams with their queue pairs (UdQueues); all are destroyed when the
// interface closes.
#pragma once
#include <ipoib/fabric_events.hpp>
#include <ipoib/path_lock.hpp>
#include <kernel/lock.hpp>
#include <kernel/result.hpp>
#include <kernel/work.hpp>

namespace ipoib {

class Interface;
struct Moderation;
class RxQueue;
class TxQueue;

class FurtherQueues {
public:
    // vector: completion vector of the first receive queue, modulo the HCA's number of vectors.
    FurtherQueues(Interface& interface, unsigned int vector)
        : interface_(interface), first_vector_(vector), associate_(*this, flush_queue)
    {
    }

    // Maximum number of queues, the first ones included: 1 with an rdma_netdev; 1 for receives without shared receive
    // queues.
    unsigned int max_receive() const;
    unsigned int max_transmit() const;
    // One for each processor, and for each completion vector of the HCA, if that is less; up to max.
    unsigned int default_count(unsigned int max) const;
    // Completion vectors of queues, by their numbers.
    unsigned int receive_vector(unsigned int queue) const;
    unsigned int transmit_vector(unsigned int queue) const;
    // Return the queue with the fewest connections; the first queue if it cannot be created, or there is none. others:
    // queues, as bits, that are not to be returned. CONTEXT: process, one at a time, while connections are accepted or
    // made.
    RxQueue& choose_receive(unsigned int others) TA_EXCLUDES(lock_, path_lock);
    TxQueue& choose_transmit(unsigned int others) TA_EXCLUDES(lock_, path_lock);
    // Sets the moderation of the receive queues from first to before end, and whether DIM adjusts it. CONTEXT: process.
    kernel::Status set_moderation(unsigned int first, unsigned int end, Moderation wanted, bool adaptive)
        TA_EXCLUDES(lock_);
    // Sets the moderation that DIM chose, if it still adjusts the queue's. CONTEXT: process.
    void adapt_moderation(RxQueue& queue, Moderation wanted) TA_EXCLUDES(lock_);
    // Associates the netdev's receive queues with the NAPI contexts of those that exist, for netdev-genl.
    void associate_napis() TA_REQUIRES(kernel::rtnl) TA_EXCLUDES(lock_);
    // Destroys the queues. CONTEXT: they are stopped.
    void destroy() TA_REQUIRES(kernel::rtnl);
    // Cancels the work item. CONTEXT: process, out of service.
    void cancel() TA_EXCLUDES(kernel::rtnl) { associate_.cancel(); }

private:
    static kernel::LockClass lock_class_;

    template <class Queues>
    auto& choose(Queues& queues, unsigned int others, const char* direction) TA_EXCLUDES(lock_, path_lock);
    // Creates and starts a queue, unless it exists.
    kernel::Status use(RxQueue& queue) TA_REQUIRES(lock_);
    kernel::Status use(TxQueue& queue) TA_REQUIRES(lock_);

    Interface& interface_;
    // Held while queues are created, and while settings of all receive queues are changed.
    kernel::Mutex lock_ TA_ACQUIRED_AFTER(kernel::rtnl){lock_class_, "ipoib_queues"};
    const unsigned int first_vector_;
    // Queues of connections are created without RTNL, which associating them needs.
    kernel::RtnlWork<&FurtherQueues::associate_napis> associate_;
};

} // namespace ipoib
