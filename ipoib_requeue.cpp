// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Packets that are transmitted again on another queue of the netdev.
#include <ipoib/interface.hpp>
#include <ipoib/requeuer.hpp>

namespace ipoib {

constinit kernel::LockClass Requeuer::lock_class_;

void Requeuer::take(sk_buff* skb)
{
    {
        kernel::Guard guard(lock_);
        if (packets_.push(skb, max_packets))
            skb = nullptr;
    }
    if (skb) {
        interface_.tx_dropped.add();
        shim_kfree_skb_reason(skb, SHIM_DROP_FULL_RING);
    }
    send_.queue(interface_.work_queue);
}

void Requeuer::stop()
{
    send_.cancel();
    kernel::Guard guard(lock_);
    interface_.tx_dropped.add(packets_.drop_all(SHIM_DROP_DEV_READY));
}

void Requeuer::send()
{
    kernel::PacketQueue packets;
    {
        kernel::Guard guard(lock_);
        packets.take(packets_);
    }
    while (sk_buff* skb = packets.pop()) {
        const int queue = interface_.select_queue(skb);
        // Not through the qdisc: what chose the wrong queue would choose it again.
        shim_dev_direct_xmit(skb, queue < 0 ? 0 : static_cast<unsigned int>(queue));
    }
}

} // namespace ipoib
