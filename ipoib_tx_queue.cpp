// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The transmit queue: flow control, completions by event or by reaping, and the stall watchdog.
#include <algorithm>

#include <ipoib/interface.hpp>
#include <ipoib/tx_queue.hpp>
#include <ipoib/wr_id.hpp>
#include <kernel/error_pointer.hpp>
#include <kernel/time.hpp>
#include <shim/ndo.h>
#include <shim/trace.h>

namespace ipoib {

namespace {

// Reports that the queue was stopped or woken, and the fuller of ring and pool.
void trace(const TxQueue& queue, const net_device* dev, const char* what)
{
    const std::uint32_t datagrams = queue.ring.index().used(), messages = queue.pool.used();
    if (!queue.ring.has_space() || (queue.pool.has_space() && datagrams >= messages))
        shim_trace_ring(dev, "send", what, datagrams, queue.ring.index().size());
    else
        shim_trace_ring(dev, "connected", what, messages, queue.pool.size());
}

} // namespace

TxQueue::TxQueue(Interface& interface, unsigned int index)
    : ring(interface, *this), pool(interface, *this), interface_(interface), dev_(interface.dev()), index_(index),
      reap_(*this), silence_(*this), watch_(*this)
{
}

kernel::Status TxQueue::create(unsigned int datagrams, unsigned int messages, unsigned int sges, unsigned int vector)
{
    cq_.reset(TRY(kernel::check(shim_ib_create_cq(
        interface_.ca(), datagrams + messages, vector,
        [](ib_cq*, void* context) { static_cast<TxQueue*>(context)->notified(); }, this))));
    prompt_sends_ = std::max(datagrams, messages) / 4;
    return messages ? pool.create(messages, sges) : kernel::Status();
}

void TxQueue::destroy()
{
    ring.destroy();
    pool.destroy();
    cq_.reset();
}

void TxQueue::start()
{
    closed_.store(false);
    armed_.store(false);
    napi_.start();
    // A value that is not the tail, so that the first run of watch() finds no stall.
    watched_tail_ = ring.index().tail() - 1;
    if (ring.created())
        watch_.queue(reap_queue, kernel::seconds(IPOIB_WATCHDOG_S));
}

void TxQueue::stop()
{
    watch_.cancel();
    napi_.stop();
    // A poll may still run behind napi_complete_done(), and queue the items.
    shim_synchronize_net();
    reap_.cancel();
    silence_.cancel();
    reap_queued_.store(false);
    silence_queued_.store(false);
    silence_due_.store(false);
}

void TxQueue::empty()
{
    ring.empty();
    shim_netdev_tx_reset_queue(dev_, index_);
}

void TxQueue::stop_stack()
{
    stops.add();
    trace(*this, dev_, "stopped");
    shim_netif_tx_stop_queue(dev_, index_);
    // Pairs with the barrier in wake_stack(): either it sees the stopped queue, or the space it freed is seen here.
    shim_smp_mb();
    if (has_space())
        shim_netif_tx_start_queue(dev_, index_);
}

void TxQueue::hold_stack()
{
    ++holds_;
    held_.store(true);
    // Pairs with the second barrier in wake_stack().
    shim_smp_mb();
    shim_netif_tx_stop_queue(dev_, index_);
}

void TxQueue::release_stack()
{
    if (--holds_)
        return;
    held_.store(false);
    wake_stack();
}

void TxQueue::wake_stack()
{
    shim_smp_mb();
    if (!shim_netif_tx_queue_stopped(dev_, index_))
        return;
    // Pairs with the barrier in hold_stack(): a queue that is seen stopped is seen held.
    shim_smp_mb();
    if (ring.half_free() && pool.half_free() && !held_.load() && !closed_.load()) {
        trace(*this, dev_, "woken");
        shim_netif_tx_wake_queue(dev_, index_);
    }
}

void TxQueue::finished(std::uint32_t count, std::uint64_t payload, std::uint32_t queued)
{
    packets.add(count);
    bytes.add(payload);
    finished_.store(finished_.load_relaxed() + queued);
    shim_netdev_tx_completed_queue(dev_, index_, count, queued);
}

bool TxQueue::prompt() const
{
    return outstanding() > prompt_sends_ || accounted.load_relaxed() - finished_.load_relaxed() > prompt_bytes ||
           shim_netif_xmit_stopped(dev_, index_) || closed();
}

void TxQueue::expect_completions()
{
    // Pairs with the barriers of scheduling and completing a poll: either the poll sees what was posted, or its end is
    // seen here.
    shim_smp_mb();
    if (prompt()) {
        if (shim_netif_xmit_stopped(dev_, index_) && pool.used() != 0 && !silence_queued_.load_relaxed()) {
            silence_queued_.store(true);
            silence_.queue(reap_queue, kernel::milliseconds(silence_ms));
        }
        if (armed_.load_relaxed())
            return;
        armed_.store(true);
        if (shim_ib_req_notify_cq(cq()))
            notified();
    } else if (!reap_queued_.load_relaxed()) {
        reap_queued_.store(true);
        // The next tick; with ticks of 1 ms the one after it.
        reap_.queue(reap_queue, 1 + shim_hz() / 1000);
    }
}

void TxQueue::reap()
{
    reap_queued_.store(false);
    napi_.poll_now();
}

void TxQueue::check_silence()
{
    silence_queued_.store(false);
    silence_due_.store(true);
    napi_.poll_now();
}

void TxQueue::watch()
{
    const std::uint32_t tail = ring.index().tail();
    // A closed queue is being restarted.
    if (ring.index().empty() || closed())
        watched_tail_ = tail - 1;
    else if (tail == watched_tail_)
        interface_.tx_timed_out(index_);
    else
        watched_tail_ = tail;
    watch_.queue(reap_queue, kernel::seconds(IPOIB_WATCHDOG_S));
}

int TxQueue::complete(int limit, int budget)
{
    int done = 0;
    while (done < limit) {
        const int wanted = std::min(Completions::max, limit - done);
        const int got = shim_ib_poll_cq(cq(), wanted, completions_.first());
        for (int i = 0; i < got; ++i) {
            const shim_wc* wc = completions_.at(i);
            if (WrId::kind(wc) == WrId::Kind::rc)
                pool.complete(wc, budget);
            else
                ring.complete(wc, budget);
        }
        if (got > 0)
            done += got;
        if (got < wanted)
            break;
    }
    return done;
}

void TxQueue::complete_all()
{
    // Completions beyond this number are of sends that were posted meanwhile.
    (void)complete(static_cast<int>(ring.index().size() + pool.size()), 0);
}

int TxQueue::poll(int budget)
{
    // A budget of 0 (netpoll): handles one completion.
    const int done = complete(budget > 0 ? budget : 1, budget);
    // Netpoll may interrupt a transmitter, whose lock is needed.
    if (budget > 0 && silence_due_.load_relaxed()) [[unlikely]] {
        silence_due_.store(false);
        pool.discount_silent();
    }
    wake_stack();
    if (done < budget && napi_.complete(done) && outstanding() != 0)
        expect_completions();
    return std::min(done, budget);
}

} // namespace ipoib
