// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Packets that are transmitted again on another queue of the netdev.
#include <ipoib/interface.hpp>
#include <ipoib/requeuer.hpp>

namespace ipoib {

Requeuer::Requeuer(Interface& interface) : interface_(interface), packets_(*this, interface.work_queue) {}

void Requeuer::push(sk_buff* skb)
{
    if (!packets_.push(skb, max_packets))
        interface_.drop(skb, SHIM_DROP_FULL_RING);
}

void Requeuer::stop() { interface_.tx_dropped.add(packets_.stop()); }

void Requeuer::send(sk_buff* skb)
{
    const int queue = interface_.select_queue(skb);
    // Bypasses the qdisc: what selected the wrong queue, such as tc's skbedit, would select it again.
    if (!shim_dev_direct_xmit(skb, queue < 0 ? 0 : static_cast<unsigned int>(queue)))
        interface_.tx_dropped.add();
}

} // namespace ipoib
