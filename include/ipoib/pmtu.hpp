// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Path MTU discovery (RFC 1191, RFC 8201) for packets that fit the interface's MTU, but not the link's or the
// connection's.
#pragma once
#include <ipoib/encapsulation.hpp>
#include <ipoib/path_lock.hpp>
#include <kernel/lock.hpp>
#include <kernel/packet_queue.hpp>
#include <kernel/thread_safety.hpp>
#include <kernel/work.hpp>

namespace ipoib {

class Interface;

class PmtuNotifier {
public:
    explicit PmtuNotifier(Interface& interface) : interface_(interface), send_(*this) {}

    // Drops a packet, which begins with its encapsulation, and is longer than mtu bytes of IP. Its sender is sent an
    // ICMP error from the work queue: the error may come back here as a packet to transmit, which needs the transmit
    // lock. CONTEXT: any.
    void reject(sk_buff* skb, unsigned int mtu) TA_EXCLUDES(lock_);
    // Cancels the work item. CONTEXT: process; nothing is transmitted any more.
    void stop() { send_.cancel(); }

    // Packets that were rejected.
    kernel::SharedCounter too_long;

private:
    static constexpr unsigned int max_packets = 64;

    void send() TA_EXCLUDES(lock_);

    Interface& interface_;
    static kernel::LockClass lock_class_;
    kernel::SpinLock lock_ TA_ACQUIRED_AFTER(path_lock){lock_class_, "ipoib_too_long"};
    // Packets whose senders are not told yet.
    kernel::PacketQueue packets_ TA_GUARDED(lock_);
    kernel::Work<&PmtuNotifier::send> send_;
};

} // namespace ipoib
