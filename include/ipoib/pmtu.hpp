// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Path MTU discovery (RFC 1191, RFC 8201) for packets that fit the interface's MTU, but not the link's or the
// connection's.
#pragma once
#include <ipoib/deferred_packets.hpp>
#include <ipoib/encapsulation.hpp>
#include <kernel/counter.hpp>

namespace ipoib {

class Interface;

class PmtuNotifier {
public:
    explicit PmtuNotifier(Interface& interface);

    // Drops a packet, which begins with its encapsulation, and is longer than mtu bytes of IP. Its sender is sent an
    // ICMP error from the work queue: the error may come back here as a packet to transmit, which needs the transmit
    // lock. CONTEXT: any.
    void reject(sk_buff* skb, unsigned int mtu);
    // Drops the packets whose senders have not been sent the ICMP error yet. CONTEXT: process; nothing is transmitted
    // any more.
    void stop() { (void)packets_.stop(); }

    // Packets that were rejected.
    kernel::SharedCounter too_long;

private:
    static constexpr unsigned int max_packets = 64;

    void send(sk_buff* skb);

    Interface& interface_;
    // Packets whose senders have not been sent the ICMP error yet.
    DeferredPackets<&PmtuNotifier::send> packets_;
};

} // namespace ipoib
