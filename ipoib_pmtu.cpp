// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Packets that are longer than the link or a connection carries: dropped, with an ICMP error to their sender.
#include <ipoib/interface.hpp>
#include <ipoib/pmtu.hpp>

namespace ipoib {

constinit kernel::LockClass PmtuNotifier::lock_class_;

void PmtuNotifier::reject(sk_buff* skb, unsigned int mtu)
{
    interface_.tx_dropped.add();
    too_long.add();
    shim_skb_dst_update_pmtu(skb, mtu);
    shim_skb_set_cb(skb, mtu);
    {
        kernel::Guard guard(lock_);
        if (packets_.push(skb, max_packets))
            skb = nullptr;
    }
    if (skb)
        shim_kfree_skb_reason(skb, SHIM_DROP_PKT_TOO_BIG);
    send_.queue(interface_.work_queue);
}

void PmtuNotifier::send()
{
    kernel::PacketQueue packets;
    {
        kernel::Guard guard(lock_);
        packets.take(packets_);
    }
    while (sk_buff* skb = packets.pop())
        shim_helper_icmp_too_big(skb, interface_.dev(), shim_skb_cb(skb));
}

} // namespace ipoib
