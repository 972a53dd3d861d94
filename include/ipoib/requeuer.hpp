// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Packets on a transmit queue that cannot send them: their connection ended or moved since the queue was selected, or
// someone else chose the queue (tc's skbedit, pktgen).
#pragma once
#include <ipoib/path_lock.hpp>
#include <kernel/lock.hpp>
#include <kernel/packet_queue.hpp>
#include <kernel/work.hpp>

namespace ipoib {

class Interface;

class Requeuer {
public:
    explicit Requeuer(Interface& interface) : interface_(interface), send_(*this) {}

    // Has the packet, which begins with its hard header, transmitted on the right queue, by a work item: the lock of
    // another queue must not be taken under this one's. CONTEXT: any.
    void take(sk_buff* skb) TA_EXCLUDES(lock_);
    // Cancels the work item and drops the packets. CONTEXT: process; nothing is transmitted any more.
    void stop() TA_EXCLUDES(lock_);

private:
    static constexpr unsigned int max_packets = 1024;

    void send() TA_EXCLUDES(lock_);

    Interface& interface_;
    static kernel::LockClass lock_class_;
    kernel::SpinLock lock_ TA_ACQUIRED_AFTER(path_lock){lock_class_, "ipoib_requeued"};
    kernel::PacketQueue packets_ TA_GUARDED(lock_);
    kernel::Work<&Requeuer::send> send_;
};

} // namespace ipoib
