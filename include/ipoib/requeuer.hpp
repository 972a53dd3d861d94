// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Packets on a transmit queue that cannot send them: their connection ended or moved since the queue was selected, or
// another component selected the queue (tc's skbedit, pktgen).
#pragma once
#include <ipoib/deferred_packets.hpp>

namespace ipoib {

class Interface;

class Requeuer {
public:
    explicit Requeuer(Interface& interface);

    // Has the packet, which begins with its hard header, transmitted on the right queue, by a work item: the lock of
    // another queue must not be taken under this one's. CONTEXT: any.
    void push(sk_buff* skb);
    // Drops the packets. CONTEXT: process; the netdev is down.
    void stop();

private:
    static constexpr unsigned int max_packets = 1024;

    void send(sk_buff* skb);

    Interface& interface_;
    DeferredPackets<&Requeuer::send> packets_;
};

} // namespace ipoib
