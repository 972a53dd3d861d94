// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The shared receive queue of connections: created with the queues, filled for the first connection, dropped with its
// buffers when the interface closes.
#include <algorithm>

#include <ipoib/interface.hpp>
#include <ipoib/rx_queue.hpp>
#include <ipoib/shared_receive_queue.hpp>
#include <kernel/error_pointer.hpp>
#include <kernel/log.hpp>

namespace ipoib {

unsigned int SharedReceiveQueue::max_mtu() const
{
    const MessageBuffer shape = buffer();
    // 16 bytes of the buffer are for the encapsulation, and the alignment of what follows.
    return std::min(shape.bytes() - 16, static_cast<unsigned int>(IPOIB_MAX_MTU));
}

unsigned int SharedReceiveQueue::srq_elements() const
{
    return std::min(shim_ib_max_srq_sge(interface_.ca()), MessageBuffer::max_pieces);
}

unsigned int SharedReceiveQueue::elements() const { return shared_ ? srq_elements() : RcReceiveRing::own_elements; }

MessageBuffer SharedReceiveQueue::buffer() const { return MessageBuffer::of(shim_page_size(), elements()); }

unsigned int SharedReceiveQueue::completions(unsigned int ring_size) const
{
    constexpr unsigned int drains = PassiveConnections::max_draining;
    if (shared_)
        return ring_size + drains;
    return static_cast<unsigned int>(shim_parameters.max_nonsrq_conn_qp) *
               std::min(ring_size, PassiveConnections::max_own_buffers) +
           drains;
}

void SharedReceiveQueue::create(unsigned int receives)
{
    buffers_ = receives;
    // An HCA that has SRQs and does not grant one is used as if it had none.
    shared_ = create_srq().ok();
}

kernel::Status SharedReceiveQueue::create_srq()
{
    if (!srq_elements())
        return kernel::not_supported;
    auto srq = kernel::check(shim_ib_create_srq(interface_.queues.pd(), buffers_, srq_elements()));
    if (srq.ok())
        srq_.reset(srq.take());
    else if (srq.status().code() != kernel::not_supported)
        log_warning(interface_.dev(), "failed to allocate SRQ, error %d", srq.status().code());
    return srq.status();
}

kernel::Status SharedReceiveQueue::fill()
{
    constexpr unsigned int max_kept = 2048;
    const MessageBuffer shape = buffer();
    shim_napi* const napi = queue_.napi().native();
    // One may exist: creating the other may have failed for an earlier connection.
    if (!small_)
        TRY(small_.create(interface_.dev(), napi, std::min(buffers_, max_kept), MessageBuffer::small_piece));
    if (!large_)
        TRY(large_.create(interface_.dev(), napi, std::min(buffers_ * (shape.bytes() / shape.other_bytes), max_kept),
                          shape.other_bytes));
    if (!shared_ || ring.created())
        return {};
    if (!srq_)
        TRY(create_srq());
    TRY(ring.create(buffers_, elements()));
    const kernel::Status status = ring.post_to(srq(), nullptr);
    if (!status.ok())
        broke();
    return status;
}

void SharedReceiveQueue::broke() { interface_.state.restart_queues(); }

void SharedReceiveQueue::stop()
{
    // The pools exist since the first connection.
    if (small_)
        destroy();
}

void SharedReceiveQueue::destroy()
{
    srq_.reset();
    ring.empty();
    small_.destroy();
    large_.destroy();
}

} // namespace ipoib
