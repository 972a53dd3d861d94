// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The receive queue: its completion queue, from an event to the rings by NAPI, and interrupt moderation.
#include <algorithm>

#include <ipoib/interface.hpp>
#include <ipoib/rx_queue.hpp>
#include <ipoib/wr_id.hpp>
#include <kernel/error_pointer.hpp>
#include <kernel/log.hpp>

namespace ipoib {

RxQueue::RxQueue(Interface& interface, unsigned int index)
    : ring(interface, *this), srq(interface, *this), interface_(interface), index_(index)
{
    shim_dim_init(dim_.get(), moderation_chosen, this);
}

void RxQueue::moderation_chosen(void* context, unsigned int usecs, unsigned int frames)
{
    auto& self = *static_cast<RxQueue*>(context);
    self.interface_.further_queues.adapt_moderation(self, {usecs, frames});
}

kernel::Status RxQueue::create(unsigned int datagrams, unsigned int messages, unsigned int vector)
{
    srq.create(messages);
    const unsigned int entries = datagrams + srq.completions(messages);
    cq_.reset(TRY(kernel::check(shim_ib_create_cq(
        interface_.ca(), entries, vector, [](ib_cq*, void* context) { static_cast<RxQueue*>(context)->notified(); },
        this))));
    return datagrams ? ring.create(datagrams) : kernel::Status();
}

void RxQueue::destroy()
{
    ring.destroy();
    srq.destroy();
    cq_.reset();
}

kernel::Status RxQueue::moderate(Moderation wanted)
{
    // HCAs without moderation accept any setting.
    const int error = cq_ ? shim_rdma_set_cq_moderation(cq(), wanted.frames, wanted.usecs) : 0;
    if (error && error != kernel::not_supported)
        return error;
    usecs_.store(wanted.usecs);
    frames_.store(wanted.frames);
    return {};
}

void RxQueue::stop()
{
    napi_.stop();
    shim_dim_cancel(dim_.get());
}

int RxQueue::poll(int budget)
{
    int done = 0;
    while (done < budget) {
        const int wanted = std::min(Completions::max, budget - done);
        const int got = shim_ib_poll_cq(cq(), wanted, completions_.first());
        alone_ = done == 0 && got == 1;
        for (int i = 0; i < got; ++i) {
            const shim_wc* wc = completions_.at(i);
            if (WrId::kind(wc) == WrId::Kind::ud)
                ring.complete(wc);
            else
                interface_.connections.passive.received(wc, *this);
        }
        if (got > 0)
            done += got;
        if (got < wanted)
            break;
    }
    merger.deliver_all();
    // Sends in flight without an event are reaped along with receives.
    interface_.tx[index_].reap_soon();
    if (done == budget)
        return done;
    if (adaptive())
        shim_helper_net_dim(dim_.get(), static_cast<std::uint16_t>(events.value()), packets.value(), bytes.value());
    if (napi_.complete(done) && shim_ib_req_notify_cq(cq()))
        napi_.schedule();
    return done;
}

} // namespace ipoib
