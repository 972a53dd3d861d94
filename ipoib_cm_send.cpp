// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The connected transmit path (RFC 4755): the send pool. ipoib_path.cpp finds the peer, ipoib_flows.cpp its connection.
#include <utility>

#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <ipoib/wr_id.hpp>
#include <kernel/log.hpp>
#include <kernel/sequence.hpp>

namespace ipoib {

namespace {

// The silence ends when all that are posted by now have completed. CONTEXT: under the transmit lock.
TA_REQUIRES(kernel::transmit_poll)
void mark_silent(ActiveConnection& connection)
{
    const std::uint32_t last = connection.sent.load_relaxed();
    if (!connection.silent.load_relaxed() || kernel::not_before(last, connection.silent_to))
        connection.silent_to = last;
    connection.silent.store(true);
}

} // namespace

kernel::Status RcSendPool::create(unsigned int size, unsigned int sges)
{
    sges_ = sges;
    if (!slots_.allocate(size) || !free_slots_.allocate(size))
        return kernel::no_memory;
    for (unsigned int i = 0; i < size; ++i) {
        slots_[i].set_lkey(interface_.queues.lkey());
        free_slots_[i] = i;
    }
    available_.reset(size);
    available_.produce(size);
    return {};
}

void RcSendPool::destroy()
{
    available_.reset(0);
    slots_.reset();
    free_slots_.reset();
}

void RcSendPool::send(ActiveConnection& to, sk_buff* skb, bool more)
{
    const unsigned int bytes = shim_skb_len(skb);
    if (bytes > to.max_message) [[unlikely]] {
        interface_.pmtu.reject(skb, to.max_message - sizeof(Encapsulation));
        return;
    }
    if (to.silent.load_relaxed() && to.outstanding() >= silent_limit()) [[unlikely]]
        return interface_.drop(skb, SHIM_DROP_NEIGH_QUEUEFULL);
    // Connections have no offloads: a checksum that the stack left open, before the mode changed or for peers that need
    // none, is computed here.
    const bool plain = !shim_skb_gso_size(skb) &&
                       (to.without_checksums || !shim_skb_checksum_partial(skb) || shim_helper_skb_checksum(skb) == 0);
    const bool ready = plain && !queue_.closed() && !available_.empty();
    // Read after the head, which is written after the entry.
    const std::uint32_t here = available_.tail();
    const std::uint32_t index = ready ? free_slots_[available_.slot(here)] : 0;
    Slot& slot = slots_[index];
    if (!ready || !slot.map(interface_.ca(), skb, 0, sges_)) [[unlikely]]
        return interface_.drop(skb, queue_.drop_reason());
    available_.consume_to(here + 1);
    const std::uint32_t number = to.sent.load_relaxed() + 1;
    slot.payload_bytes = bytes - sizeof(Encapsulation);
    slot.queued_bytes = bytes;
    slot.connection = &to;
    slot.number = number;
    slot.previous = to.last_slot;
    to.last_slot = index;
    shim_send_wr_init(slot.native(), WrId::of(WrId::Kind::rc, index), slot.sge);
    shim_send_wr_set_message(slot.native(), slot.sges);
    shim_send_wr_set_flags(slot.native(), number % signal_interval == 0, false);
    shim_send_wr_set_next(slot.native(), nullptr);
    if (open_ != &to)
        ring_doorbell();
    if (last_)
        shim_send_wr_set_next(last_->native(), slot.native());
    else
        first_ = &slot;
    last_ = &slot;
    open_ = &to;
    to.sent.store(number);
    shim_helper_skb_tx_timestamp(skb);
    log_connected_data(interface_.dev(), "sending packet: length %u, connection to qpn 0x%06x", bytes, to.peer.qpn());
    if (queue_.account(bytes, more))
        ring_doorbell();
}

void RcSendPool::ring_doorbell()
{
    if (!first_)
        return;
    shim_send_wr_signal(last_->native());
    doorbells.add();
    const int error = shim_helper_post_send(open_->qp.get(), first_->native(), nullptr);
    first_ = last_ = nullptr;
    if (error) [[unlikely]] {
        // service() will destroy the queue pair; reclaim() then frees its sends, posted or not.
        log_warning(interface_.dev(), "post_send on a connection failed, error %d", error);
        open_->post_failed.store(true);
        interface_.connections.active.work.queue_now();
    }
    queue_.expect_completions();
    open_ = nullptr;
}

void RcSendPool::finish(ActiveConnection& connection, std::uint32_t last, int budget)
{
    const std::uint32_t count = slots_[last].number - connection.completed.load_relaxed();
    if (static_cast<std::int32_t>(count) <= 0) [[unlikely]]
        return;
    std::uint64_t payload = 0;
    std::uint32_t queued = 0;
    std::uint32_t head = available_.head();
    std::uint32_t index = last;
    // Backwards: earlier sends are linked, later ones may not be yet.
    for (std::uint32_t i = 0; i < count; ++i) {
        Slot& slot = slots_[index];
        slot.unmap(interface_.ca());
        payload += slot.payload_bytes;
        queued += std::exchange(slot.queued_bytes, 0);
        slot.checks = 0;
        shim_napi_consume_skb(slot.skb, budget);
        free_slots_[available_.slot(head++)] = index;
        index = slot.previous;
    }
    if (connection.silent.load_relaxed() && kernel::not_before(slots_[last].number, connection.silent_to)) [[unlikely]]
        connection.silent.store(false);
    connection.completed.store(slots_[last].number);
    available_.produce(count);
    queue_.finished(count, payload, queued);
}

void RcSendPool::complete(const shim_wc* wc, int budget)
{
    const std::uint32_t index = WrId::index(wc);
    if (index >= size()) [[unlikely]] {
        log_warning(interface_.dev(), "cm send completion for index %u of %u", index, size());
        return;
    }
    ActiveConnection& connection = *slots_[index].connection;
    const bool ok = shim_wc_ok(wc);
    if (!ok) [[unlikely]] {
        queue_.errors.add();
        if (shim_wc_retries_exceeded(wc))
            log_debug(interface_.dev(), "failed cm send event (status=%d, wrid=%u vend_err %#x)", shim_wc_status(wc),
                      index, shim_wc_vendor_error(wc));
        else if (!shim_wc_flushed(wc))
            log_warning(interface_.dev(), "failed cm send event (status=%d, wrid=%u vend_err %#x)", shim_wc_status(wc),
                        index, shim_wc_vendor_error(wc));
    }
    // Before finish(): a connection whose sends are all counted as completed may be freed at any time.
    if (!ok) [[unlikely]]
        (void)interface_.connections.active.send_failed(connection);
    finish(connection, index, budget);
}

void RcSendPool::discount_silent()
{
    std::uint32_t queued = 0, overdue = 0;
    {
        // A sender gives a slot its bytes before BQL knows of them: the lock keeps such slots out.
        const kernel::TransmitGuard guard(interface_.dev(), queue_.index());
        for (std::uint32_t i = 0; i < size(); ++i) {
            Slot& slot = slots_[i];
            if (slot.queued_bytes == 0 && slot.checks == 0)
                continue;
            if (slot.checks < max_checks)
                ++slot.checks;
            if (slot.checks == 1)
                continue;
            mark_silent(*slot.connection);
            queued += std::exchange(slot.queued_bytes, 0);
            overdue += slot.checks == max_checks;
        }
    }
    queue_.finished(0, 0, queued);
    // With fewer of them, those of other peers are to complete first.
    if (overdue > size() / 2)
        end_silent();
}

void RcSendPool::end_silent()
{
    for (std::uint32_t i = 0; i < size(); ++i) {
        // Set only if the send is outstanding, so its connection lives until the end of the poll.
        if (slots_[i].checks < max_checks)
            continue;
        ActiveConnection& connection = *slots_[i].connection;
        if (!interface_.connections.active.send_failed(connection))
            continue;
        log_warning(interface_.dev(), "connection to %pI6 ended: %u of %u sends are outstanding, some for %u ms",
                    connection.peer.gid().bytes, connection.outstanding(), size(), max_checks * TxQueue::silence_ms);
        // The next one could stop the queue again.
        connection.silent_to = connection.sent.load_relaxed() + size();
    }
}

void RcSendPool::reclaim(ActiveConnection& connection)
{
    if (connection.outstanding() == 0)
        return;
    const TxQueue::PollPause pause(queue_.napi());
    kernel::transmit_poll.assume_excluded();
    // The connection was unpublished a grace period ago.
    kernel::transmit_lock.assume_excluded();
    // HCAs in software leave a queue pair's completions in the completion queue, which would complete the slots' next
    // sends.
    queue_.complete_all();
    // Completed slots may be in use by other connections.
    if (connection.outstanding() != 0)
        finish(connection, connection.last_slot, 0);
}

} // namespace ipoib
