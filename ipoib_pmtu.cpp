// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Packets that are longer than the link or a connection carries: dropped, with an ICMP error to their sender.
#include <ipoib/interface.hpp>
#include <ipoib/pmtu.hpp>

namespace ipoib {

PmtuNotifier::PmtuNotifier(Interface& interface) : interface_(interface), packets_(*this, interface.work_queue) {}

void PmtuNotifier::reject(sk_buff* skb, unsigned int mtu)
{
    interface_.tx_dropped.add();
    too_long.add();
    shim_skb_dst_update_pmtu(skb, mtu);
    shim_skb_set_cb(skb, mtu);
    if (!packets_.push(skb, max_packets))
        shim_kfree_skb_reason(skb, SHIM_DROP_PKT_TOO_BIG);
}

void PmtuNotifier::send(sk_buff* skb) { shim_helper_icmp_too_big(skb, interface_.dev(), shim_skb_cb(skb)); }

} // namespace ipoib
