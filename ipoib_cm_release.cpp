// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The end of active connections (RFC 4755): unpublished, a grace period, their sends completed or flushed, destroyed.
#include <utility>

#include <ipoib/connected.hpp>
#include <ipoib/interface.hpp>
#include <kernel/log.hpp>
#include <kernel/time.hpp>

namespace ipoib {

ActiveRelease::Action ActiveConnection::continue_release(unsigned long now)
{
    const bool sending = outstanding() != 0;
    if (sending && !kernel::reached(deadline, now)) {
        check_at = now + kernel::milliseconds(Connections::check_interval_ms);
        return ActiveRelease::Action::none;
    }
    const auto step = release.on(sending ? ActiveRelease::Event::timed_out : ActiveRelease::Event::completed);
    deadline = now + kernel::milliseconds(step.limit_ms);
    return step.action;
}

void ActiveConnections::start_release(ActiveConnection& connection, ActiveRelease::Event why)
{
    (void)connection.release.on(why);
    work.queue_now();
}

void ActiveConnections::release_due(unsigned long now, kernel::PacketQueue& ready)
{
    // One grace period for all that were unpublished.
    bool unpublished = false;
    {
        PathTable::Guard guard(interface_.paths);
        for (ActiveConnection& connection : list_) {
            if (connection.post_failed.load()) {
                connection.post_failed.store(false);
                perform(connection, step(connection, ActiveLife::Event::failed), ready);
            }
            if (!connection.release.wants_grace_period())
                continue;
            const auto released = connection.release.on(ActiveRelease::Event::grace_period);
            connection.in_grace_period = unpublished = true;
            connection.deadline = kernel::milliseconds(released.limit_ms);
        }
    }
    if (unpublished) {
        shim_synchronize_net();
        // Transmitters posted until now.
        now = shim_jiffies();
        PathTable::Guard guard(interface_.paths);
        for (ActiveConnection& connection : list_) {
            if (!std::exchange(connection.in_grace_period, false))
                continue;
            connection.check_at = now;
            connection.deadline += now;
        }
    }
    while (ActiveConnection* connection = next_to_release(now))
        release(*connection, now);
}

ActiveConnection* ActiveConnections::next_to_release(unsigned long now)
{
    PathTable::Guard guard(interface_.paths);
    for (ActiveConnection& connection : list_)
        if (connection.release.awaits_sends() && kernel::reached(connection.check_at, now))
            return &connection;
    return nullptr;
}

void ActiveConnections::release(ActiveConnection& connection, unsigned long now)
{
    for (;;) {
        ActiveRelease::Action action;
        {
            PathTable::Guard guard(interface_.paths);
            action = connection.continue_release(now);
        }
        if (action == ActiveRelease::Action::none)
            return;
        if (action == ActiveRelease::Action::destroy)
            break;
        if (connection.qp)
            (void)shim_qp_to_error(connection.qp.get());
    }
    if (const std::uint32_t outstanding = connection.outstanding())
        log_warning(interface_.dev(), "timing out; %u sends not completed", outstanding);
    destroy(connection);
}

void ActiveConnections::destroy(ActiveConnection& connection)
{
    connection.id.reset();
    connection.qp.reset();
    if (connection.queue)
        connection.queue->pool.reclaim(connection);

    kernel::PacketQueue ready;
    bool gone;
    {
        PathTable::Guard guard(interface_.paths);
        connection.flows.reset();
        if (TxQueue* const queue = std::exchange(connection.queue, nullptr))
            --queue->connections;
        (void)connection.release.on(ActiveRelease::Event::destroyed);
        perform(connection, step(connection, ActiveLife::Event::released), ready);
        gone = connection.life.state() == ActiveLife::State::gone;
        if (gone) {
            connection.unlink();
            --count_;
        }
    }
    interface_.resubmit(ready);
    if (gone)
        kernel::Owned<ActiveConnection>(&connection).reset();
}

} // namespace ipoib
