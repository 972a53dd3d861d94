// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// From a completion event to the rings: NAPI and interrupt moderation.
#include <algorithm>

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

} // namespace ipoib
