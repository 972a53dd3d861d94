// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The further queues of an interface: their number, their completion vectors, and which one a connection uses.
#include <algorithm>

#include <ipoib/further_queues.hpp>
#include <ipoib/interface.hpp>
#include <kernel/log.hpp>

namespace ipoib {

constinit kernel::LockClass FurtherQueues::lock_class_;

namespace {

// Receive buffers of a further receive queue, unless the rings are smaller.
constexpr unsigned int min_further_receives = 64;

} // namespace

unsigned int FurtherQueues::receive_vector(unsigned int queue) const
{
    return (first_vector_ + queue) % std::max(shim_ib_num_comp_vectors(interface_.ca()), 1U);
}

unsigned int FurtherQueues::transmit_vector(unsigned int queue) const
{
    // Half of the vectors away from that of the receives, which raise most events. The receives of successive
    // interfaces use successive vectors.
    return receive_vector(queue + shim_ib_num_comp_vectors(interface_.ca()) / 2);
}

unsigned int FurtherQueues::max_receive() const
{
    if (interface_.rdma_netdev.present() || !shim_ib_max_srq_sge(interface_.ca()))
        return 1;
    return std::min(interface_.rx.max, shim_netdev_num_rx_queues(interface_.dev()));
}

unsigned int FurtherQueues::max_transmit() const
{
    if (interface_.rdma_netdev.present() || !SHIM_HAS_SELECT_QUEUE)
        return 1;
    return std::min(interface_.tx.max, shim_netdev_num_tx_queues(interface_.dev()));
}

unsigned int FurtherQueues::default_count(unsigned int max) const
{
    return std::clamp(std::min(shim_num_online_cpus(), shim_ib_num_comp_vectors(interface_.ca())), 1U, max);
}

template <class Queues>
auto& FurtherQueues::choose(Queues& queues, unsigned int others, const char* direction)
{
    decltype(&queues[0]) fewest = nullptr;
    {
        PathTable::Guard guard(interface_.paths);
        for (unsigned int i = 0; i < queues.count(); ++i)
            if (!(others >> i & 1) && (!fewest || queues[i].connections < fewest->connections))
                fewest = &queues[i];
    }
    if (!fewest)
        return queues[0];
    kernel::Guard guard(lock_);
    if (const kernel::Status status = use(*fewest); !status.ok()) {
        log_warning(interface_.dev(), "failed to create %s queue %u, error %d", direction, fewest->index(),
                    status.code());
        return queues[0];
    }
    return *fewest;
}

RxQueue& FurtherQueues::choose_receive(unsigned int others) { return choose(interface_.rx, others, "receive"); }
TxQueue& FurtherQueues::choose_transmit(unsigned int others) { return choose(interface_.tx, others, "transmit"); }

kernel::Status FurtherQueues::use(RxQueue& queue)
{
    if (queue.cq())
        return {};
    // Each serves a part of the connections.
    const RingSizes& sizes = interface_.queues.sizes();
    const unsigned int share = std::max(sizes.receives / interface_.rx.count(), min_further_receives);
    kernel::Status status = queue.create(0, std::min(share, sizes.receives), receive_vector(queue.index()));
    if (status.ok() && !queue.srq.shared())
        status = kernel::no_memory;
    if (!status.ok()) {
        queue.destroy();
        return status;
    }
    (void)queue.moderate(queue.moderation()).ok();
    queue.napi().add(interface_.dev(), queue, kernel::Direction::receive);
    queue.start();
    associate_.queue();
    return {};
}

kernel::Status FurtherQueues::use(TxQueue& queue)
{
    if (queue.cq())
        return {};
    const kernel::Status status =
        queue.create(0, interface_.queues.sizes().sends, interface_.queues.send_sges(), transmit_vector(queue.index()));
    if (!status.ok()) {
        queue.destroy();
        return status;
    }
    queue.napi().add(interface_.dev(), queue, kernel::Direction::transmit);
    queue.start();
    return {};
}

kernel::Status FurtherQueues::set_moderation(unsigned int first, unsigned int end, Moderation wanted, bool adaptive)
{
    kernel::Guard guard(lock_);
    for (unsigned int i = first; i < end; ++i) {
        TRY(interface_.rx[i].moderate(wanted));
        interface_.rx[i].set_adaptive(adaptive);
    }
    return {};
}

void FurtherQueues::adapt_moderation(RxQueue& queue, Moderation wanted)
{
    kernel::Guard guard(lock_);
    // The user may have set the moderation since DIM chose its own.
    if (queue.adaptive())
        (void)queue.moderate(wanted).ok();
}

void FurtherQueues::associate_napis()
{
    if (interface_.rdma_netdev.present())
        return;
    kernel::Guard guard(lock_);
    for (unsigned int i = 0; i < max_receive(); ++i)
        shim_netif_queue_set_napi(interface_.dev(), i,
                                  interface_.rx[i].cq() ? interface_.rx[i].napi().native() : nullptr);
}

void FurtherQueues::destroy()
{
    const auto destroy = [](auto& queues) {
        for (auto& queue : queues) {
            if (queue.index() == 0 || !queue.cq())
                continue;
            queue.napi().remove();
            queue.destroy();
        }
    };
    for (unsigned int i = 1; i < max_receive(); ++i)
        shim_netif_queue_set_napi(interface_.dev(), i, nullptr);
    destroy(interface_.rx);
    destroy(interface_.tx);
}

} // namespace ipoib
