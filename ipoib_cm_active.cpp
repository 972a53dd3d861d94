// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The active side of connections (RFC 4755): requested when a packet needs one, used while established, released when
// broken or not needed any more.
#include <algorithm>
#include <utility>

#include <ipoib/connected.hpp>
#include <ipoib/interface.hpp>
#include <ipoib/trace.hpp>
#include <kernel/log.hpp>
#include <kernel/time.hpp>

namespace ipoib {

namespace {

// Doublings of the back-off: up to 64 s.
constexpr unsigned int max_doublings = 6;

} // namespace

ActiveConnection::~ActiveConnection() = default;

unsigned long ActiveConnection::next_request_at() const
{
    return spaced_until -
           (ActiveConnections::max_requests_at_once - 1) * kernel::milliseconds(ActiveConnections::request_interval_ms);
}

void ActiveConnection::back_off()
{
    stales = 0;
    const unsigned int doublings = std::min(refusals - 1, max_doublings);
    check_at = shim_jiffies() + kernel::with_jitter(kernel::seconds(1U << doublings));
}

bool ActiveConnection::retry_due(unsigned long now) const
{
    return life.state() == ActiveLife::State::refused && !release.started() && kernel::reached(check_at, now);
}

void ActiveConnections::send(sk_buff* skb, Neighbour& neighbour, Path& path, TxQueue& queue)
{
    ActiveConnection* connection = neighbour.attempt;
    const bool begins = !connection || connection->life.state() == ActiveLife::State::idle;
    if (begins && (!interface_.paths.allows(path.opening, max_opening, "connection attempts to one port") ||
                   (!connection && !interface_.paths.allows(count_, Connections::max_connections, "connections")))) {
        interface_.paths.send_datagram(skb, neighbour.key(), path.handle->get(), queue);
        return;
    }
    if (!connection) {
        auto made = kernel::make_owned_atomic<ActiveConnection>(*this, shim_cm_endpoint{on_message}, neighbour.key(),
                                                                &neighbour, nullptr);
        if (!made) {
            interface_.paths.dropped.add();
            shim_kfree_skb_reason(skb, SHIM_DROP_NOMEM);
            return;
        }
        shim_path_copy(made->path(), path.record());
        connection = neighbour.attempt = made.release();
        list_.push_back(*connection);
        ++count_;
    }
    kernel::PacketQueue none;
    perform(*connection, step(*connection, ActiveLife::Event::needed), none);
    if (connection->life.state() == ActiveLife::State::established) {
        interface_.connections.flows.send_locked(*connection, skb, queue);
    } else if (connection->waiting.push(skb, max_waiting)) {
        // The packet is transmitted when the connection is established or refused.
    } else if (shim_skb_len(skb) - sizeof(HwAddr) <= interface_.mtu.max_frame()) {
        interface_.paths.send_datagram(skb, neighbour.key(), path.handle->get(), queue);
    } else {
        interface_.paths.dropped.add();
        shim_kfree_skb_reason(skb, SHIM_DROP_NEIGH_QUEUEFULL);
    }
}

ActiveLife::Step ActiveConnections::step(ActiveConnection& connection, ActiveLife::Event event)
{
    const bool was_opening = connection.life.opening();
    const auto step = traced_step(interface_.dev(), SHIM_TRACE_ACTIVE, connection.peer.gid(), connection.life, event);
    if (Neighbour* const neighbour = connection.neighbour) {
        neighbour->path.opening += connection.life.opening();
        neighbour->path.opening -= was_opening;
    }
    return step;
}

void ActiveConnections::abandon(Neighbour& neighbour)
{
    kernel::PacketQueue held;
    if (ActiveConnection* connection = neighbour.attempt)
        abandon(*connection, held);
    interface_.paths.dropped.add(held.drop_all(SHIM_DROP_NEIGH_FAILED));
}

void ActiveConnections::abandon(ActiveConnection& connection, kernel::PacketQueue& ready)
{
    perform(connection, step(connection, ActiveLife::Event::abandoned), ready);
}

ActiveConnection* ActiveConnections::request_another(ActiveConnection& first)
{
    if (!interface_.paths.allows(count_, Connections::max_connections, "connections"))
        return nullptr;
    auto connection =
        kernel::make_owned_atomic<ActiveConnection>(*this, shim_cm_endpoint{on_message}, first.peer, nullptr, &first);
    if (!connection)
        return nullptr;
    shim_path_copy(connection->path(), first.path());
    list_.push_back(*connection);
    ++count_;
    kernel::PacketQueue none;
    perform(*connection, step(*connection, ActiveLife::Event::needed), none);
    return connection.release();
}

void ActiveConnections::abandon_all()
{
    kernel::PacketQueue held;
    for (ActiveConnection& connection : list_)
        abandon(connection, held);
    interface_.paths.dropped.add(held.drop_all(SHIM_DROP_NEIGH_FAILED));
}

void ActiveConnections::perform(ActiveConnection& connection, ActiveLife::Step step, kernel::PacketQueue& ready)
{
    using Action = ActiveLife::Action;
    if (step.action != Action::none) {
        connection.since = shim_jiffies();
        log_debug(interface_.dev(), "connection to %pI6: %s", connection.peer.gid().bytes, ActiveLife::name(step.next));
    }
    switch (step.action) {
    case Action::none:
    case Action::destroy:
        break;
    case Action::connect:
        work.queue_now();
        break;
    case Action::send:
        connection.refusals = 0;
        connection.stales = 0;
        established.add();
        publish(connection, ready);
        break;
    case Action::recover:
        disconnected.add();
        interface_.connections.flows.failed(connection);
        unpublish(connection, ready);
        start_release(connection, ActiveRelease::Event::failed);
        break;
    case Action::fall_back:
        fall_back(connection, ready);
        start_release(connection, ActiveRelease::Event::failed);
        break;
    case Action::back_off:
    case Action::resume:
        // The peer's first connection serves; FlowBalancer may request another one later.
        if (connection.further) {
            abandon(connection, ready);
        } else if (step.action == Action::back_off) {
            connection.back_off();
            work.queue_now();
        } else {
            resume(connection, ready);
        }
        break;
    case Action::close:
        close(connection, ready);
        break;
    }
}

void ActiveConnections::publish(ActiveConnection& connection, kernel::PacketQueue& ready)
{
    FlowBalancer& flows = interface_.connections.flows;
    if (connection.further) {
        flows.established(connection);
        return;
    }
    flows.begin(connection);
    connection.neighbour->connection.store(&connection);
    interface_.paths.publish(*connection.neighbour);
    ready.take(connection.waiting);
}

void ActiveConnections::unpublish(ActiveConnection& connection, kernel::PacketQueue& ready)
{
    FlowBalancer& flows = interface_.connections.flows;
    if (connection.further)
        flows.ended(connection, ready);
    else
        flows.end_all(connection, ready);
    if (Neighbour* const neighbour = connection.neighbour)
        neighbour->connection.store(nullptr);
}

void ActiveConnections::fall_back(ActiveConnection& connection, kernel::PacketQueue& ready)
{
    ++connection.refusals;
    if (connection.further) {
        interface_.connections.flows.failed(connection);
        unpublish(connection, ready);
        return;
    }
    connection.neighbour->refused = true;
    interface_.paths.publish(*connection.neighbour);
    ready.take(connection.waiting);
}

void ActiveConnections::resume(ActiveConnection& connection, kernel::PacketQueue& ready)
{
    connection.neighbour->refused = false;
    interface_.paths.publish(*connection.neighbour);
    if (!connection.waiting.empty())
        perform(connection, step(connection, ActiveLife::Event::needed), ready);
}

void ActiveConnections::close(ActiveConnection& connection, kernel::PacketQueue& ready)
{
    unpublish(connection, ready);
    if (Neighbour* const neighbour = std::exchange(connection.neighbour, nullptr))
        neighbour->attempt = nullptr;
    interface_.paths.dropped.add(connection.waiting.drop_all(SHIM_DROP_NEIGH_FAILED));
    start_release(connection, ActiveRelease::Event::abandoned);
}

void ActiveConnections::report(ActiveConnection& connection, ActiveLife::Event event)
{
    kernel::PacketQueue ready;
    {
        PathTable::Guard guard(interface_.paths);
        perform(connection, step(connection, event), ready);
    }
    interface_.resubmit(ready);
}

bool ActiveConnections::send_failed(ActiveConnection& connection)
{
    kernel::PacketQueue ready;
    {
        PathTable::Guard guard(interface_.paths);
        if (connection.life.state() != ActiveLife::State::established)
            return false;
        perform(connection, step(connection, ActiveLife::Event::failed), ready);
    }
    interface_.resubmit(ready);
    return true;
}

// The work item

unsigned long ActiveConnections::service()
{
    // Memory may be reclaimed by writing pages to a peer, over a connection that is made here.
    const kernel::NoIo no_io;
    send_requests();
    const unsigned long now = shim_jiffies();
    kernel::PacketQueue ready;
    release_due(now, ready);
    unsigned long delay = interface_.connections.flows.service(ready);
    {
        PathTable::Guard guard(interface_.paths);
        for (ActiveConnection& connection : list_)
            if (connection.retry_due(now))
                perform(connection, step(connection, ActiveLife::Event::retry_due), ready);
        delay = next_check(now, delay);
    }
    interface_.resubmit(ready);
    return delay;
}

unsigned long ActiveConnections::next_check(unsigned long now, unsigned long delay)
{
    const auto sooner = [&delay](unsigned long in) { delay = delay ? std::min(delay, in) : std::max(in, 1UL); };
    for (ActiveConnection& connection : list_) {
        if (connection.release.wants_grace_period())
            sooner(1);
        else if (connection.life.state() == ActiveLife::State::wanted && connection.waits_for_path(now))
            sooner(connection.since + kernel::milliseconds(max_path_wait_ms) - now);
        else if (connection.life.state() == ActiveLife::State::wanted)
            sooner(kernel::reached(connection.next_request_at(), now) ? 1 : connection.next_request_at() - now);
        else if (!connection.release.started() && connection.life.state() != ActiveLife::State::refused)
            continue;
        else if (!kernel::reached(connection.check_at, now))
            sooner(connection.check_at - now);
    }
    return delay;
}

} // namespace ipoib
