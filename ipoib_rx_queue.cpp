// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <algorithm>
#include <cstring>

#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <ipoib/rx_queue.hpp>
#include <ipoib/wr_id.hpp>

namespace ipoib {

RxQueue::RxQueue(Interface& interface) : ring(interface, *this), interface_(interface)
{
    shim_dim_init(
        dim_.get(),
        [](void* context, unsigned int usecs, unsigned int frames) {
            (void)static_cast<Interface*>(context)->queues.moderate({usecs, frames}).ok();
        },
        &interface);
}

void RxQueue::stop()
{
    napi_.disable();
    shim_dim_cancel(dim_.get());
}

int RxQueue::poll(int budget)
{
    int done = 0;
    while (done < budget) {
        const int wanted = std::min(Completions::max, budget - done);
        const int got = shim_ib_poll_cq(interface_.queues.recv_cq(), wanted, completions_.first());
        alone_ = done == 0 && got == 1;
        for (int i = 0; i < got; ++i) {
            const shim_wc* wc = completions_.at(i);
            if (WrId::kind(wc) == WrId::Kind::ud)
                ring.complete(wc);
            else
                interface_.connections.passive.received(wc);
        }
        if (got > 0)
            done += got;
        if (got < wanted)
            break;
    }
    merger.deliver_all();
    // Sends in flight without an event are reaped along with receives.
    if (interface_.tx.outstanding() != 0)
        interface_.tx.napi().schedule();
    if (done == budget)
        return done;
    if (adaptive())
        shim_helper_net_dim(dim_.get(), static_cast<std::uint16_t>(events.value()), packets.value(), bytes.value());
    if (napi_.complete(done) && shim_ib_req_notify_cq(interface_.queues.recv_cq()))
        napi_.schedule();
    return done;
}

sk_buff* RxQueue::allocate(unsigned int bytes)
{
    sk_buff* skb = shim_napi_alloc_skb(napi_.native(), ip_padding + bytes);
    if (skb && ip_padding) [[likely]]
        shim_skb_reserve(skb, ip_padding);
    return skb;
}

sk_buff* RxQueue::copy(const void* message, unsigned int bytes)
{
    sk_buff* skb = allocate(sizeof(HwAddr) + bytes);
    if (!skb) [[unlikely]]
        return nullptr;
    copied.add();
    shim_skb_put(skb, sizeof(HwAddr) + bytes);
    std::memcpy(shim_skb_data(skb) + sizeof(HwAddr), message, bytes);
    return skb;
}

void RxQueue::finish(sk_buff* skb, shim_packet_type type, bool verified)
{
    // Sniffers see a hard header with an empty destination as link header.
    std::memset(shim_skb_data(skb), 0, sizeof(HwAddr));
    const auto& header = *reinterpret_cast<const HardHeader*>(shim_skb_data(skb));
    shim_skb_set_protocol(skb, header.encapsulation.type.value());
    shim_helper_skb_pull_mac_header(skb, sizeof(HardHeader));
    shim_skb_set_device(skb, interface_.dev());
    shim_skb_set_packet_type(skb, type);
    if (verified)
        shim_skb_set_checksum_unnecessary(skb);
    packets.add();
    bytes.add(shim_skb_len(skb));
    if (type == SHIM_PACKET_MULTICAST)
        multicast.add();
}

void RxQueue::pass_up_behind_held(sk_buff* skb, const void* ip, unsigned int bytes)
{
    merger.make_way(ip, bytes);
    pass_up(skb);
}

} // namespace ipoib
