// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The active side of connections (RFC 4755): requested when a packet needs one, used while established, released when
// broken or not needed any more.
#include <algorithm>
#include <utility>

#include <ipoib/connected.hpp>
#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <ipoib/trace.hpp>
#include <kernel/error_pointer.hpp>
#include <kernel/log.hpp>
#include <kernel/time.hpp>
#include <shim/rc_qp.h>

namespace ipoib {

namespace {

// Doublings of the back-off: up to 64 s.
constexpr unsigned int max_doublings = 6;
// Parameters of a REQ. IPoIB uses neither RDMA reads nor atomics; peers expect the in-tree driver's values. A
// timeout of 20 is 4.096 us * 2^20 = 4.3 s.
constexpr std::uint8_t responder_resources = 4, cm_response_timeout = 20, max_cm_retries = 15;

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

Path* ActiveConnection::current_path() const
{
    const Neighbour* const of = first ? first->neighbour : neighbour;
    return of ? &of->path : nullptr;
}

bool ActiveConnection::waits_for_path(unsigned long now) const
{
    const Path* const path = current_path();
    return path && path->life.confirming() &&
           kernel::elapsed(since, now) < kernel::milliseconds(ActiveConnections::max_path_wait_ms);
}

bool ActiveConnection::retry_due(unsigned long now) const
{
    return life.state() == ActiveLife::State::refused && !release.started() && kernel::reached(check_at, now);
}

ActiveConnection* ActiveConnections::connection_of(Neighbour& neighbour, Path& path)
{
    if (neighbour.attempt)
        return neighbour.attempt;
    auto connection = kernel::make_owned_atomic<ActiveConnection>(*this, shim_cm_endpoint{on_message}, neighbour.key(),
                                                                  &neighbour, nullptr);
    if (!connection)
        return nullptr;
    shim_path_copy(connection->path(), path.record());
    neighbour.attempt = connection.get();
    list_.push_back(*connection);
    return connection.release();
}

void ActiveConnections::send(sk_buff* skb, Neighbour& neighbour, Path& path, TxQueue& queue)
{
    ActiveConnection* connection = connection_of(neighbour, path);
    if (!connection) {
        interface_.paths.dropped.add();
        shim_kfree_skb_reason(skb, SHIM_DROP_NOMEM);
        return;
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
    return traced_step(interface_.dev(), SHIM_TRACE_ACTIVE, connection.peer.gid(), connection.life, event);
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
    auto connection =
        kernel::make_owned_atomic<ActiveConnection>(*this, shim_cm_endpoint{on_message}, first.peer, nullptr, &first);
    if (!connection)
        return nullptr;
    shim_path_copy(connection->path(), first.path());
    list_.push_back(*connection);
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

void ActiveConnections::send_failed(ActiveConnection& connection)
{
    kernel::PacketQueue ready;
    {
        PathTable::Guard guard(interface_.paths);
        if (connection.life.state() == ActiveLife::State::established)
            perform(connection, step(connection, ActiveLife::Event::failed), ready);
    }
    interface_.resubmit(ready);
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

// Requests

void ActiveConnections::send_requests()
{
    const unsigned long now = shim_jiffies();
    while (ActiveConnection* connection = next_to_connect()) {
        requests_sent.add();
        if (const kernel::Status status = send_request(*connection); !status.ok()) {
            log_warning(interface_.dev(), "failed to send a REQ to %pI6, error %d", connection->peer.gid().bytes,
                        status.code());
            requests_failed.add();
            report(*connection, ActiveLife::Event::failed);
        }
        // Thousands may be wanted when the mode changes; the other work of the queue must not wait until all are sent.
        if (shim_jiffies() != now)
            break;
    }
}

ActiveConnection* ActiveConnections::next_to_connect()
{
    const unsigned long now = shim_jiffies();
    PathTable::Guard guard(interface_.paths);
    for (ActiveConnection& connection : list_)
        if (connection.life.state() == ActiveLife::State::wanted && !connection.release.started() &&
            kernel::reached(connection.next_request_at(), now) && copy_path(connection, now)) {
            (void)step(connection, ActiveLife::Event::requested);
            connection.since = now;
            connection.spaced_until = kernel::reached(connection.spaced_until, now) ? now : connection.spaced_until;
            connection.spaced_until += kernel::milliseconds(request_interval_ms);
            // The connection becomes the last one, so that the next search does not pass those that were requested.
            static_cast<kernel::ListNode<ActiveConnection>&>(connection).unlink();
            list_.push_back(connection);
            return &connection;
        }
    return nullptr;
}

bool ActiveConnections::copy_path(ActiveConnection& connection, unsigned long now)
{
    Path* const path = connection.current_path();
    if (!path)
        return true;
    interface_.paths.confirm(*path);
    if (connection.waits_for_path(now))
        return false;
    if (path->life.usable())
        shim_path_copy(connection.path(), path->record());
    return true;
}

bool ActiveConnections::is_requested_elsewhere(ActiveConnection& connection, Path& path)
{
    return connection.life.state() == ActiveLife::State::requested && path.life.usable() &&
           (shim_path_dlid(path.record()) != shim_path_dlid(connection.path()) ||
            shim_path_sl(path.record()) != shim_path_sl(connection.path()));
}

void ActiveConnections::path_queried(Neighbour& neighbour, kernel::PacketQueue& ready)
{
    ActiveConnection* const first = neighbour.attempt;
    if (!first)
        return;
    ActiveConnection* const further = first->flows ? first->flows->pending : nullptr;
    if (first->life.state() == ActiveLife::State::wanted || further)
        work.queue_now();
    // No response to a REQ that went to a former LID is to be expected.
    if (is_requested_elsewhere(*first, neighbour.path)) {
        requests_failed.add();
        perform(*first, step(*first, ActiveLife::Event::stale), ready);
    }
    if (further && is_requested_elsewhere(*further, neighbour.path)) {
        requests_failed.add();
        abandon(*further, ready);
    }
}

kernel::Status ActiveConnections::assign_queue(ActiveConnection& connection)
{
    unsigned int others = 0;
    {
        PathTable::Guard guard(interface_.paths);
        if (connection.first)
            others = FlowBalancer::open(*connection.first);
    }
    TxQueue& queue = interface_.further_queues.choose_transmit(others);
    if (others >> queue.index() & 1)
        return kernel::no_memory;
    PathTable::Guard guard(interface_.paths);
    connection.queue = &queue;
    ++queue.connections;
    return {};
}

kernel::Status ActiveConnections::send_request(ActiveConnection& connection)
{
    TRY(assign_queue(connection));
    // The queue pair has a receive queue of its own, in which nothing is posted: the HCA answers RNR NAK to a peer that
    // sends, which costs neither a buffer nor a completion.
    const shim_rc_qp wanted{
        .send_cq = connection.queue->cq(),
        .recv_cq = interface_.rx[0].cq(),
        .srq = nullptr,
        .send_wrs = interface_.queues.sizes().sends,
        .send_sges = interface_.queues.send_sges(),
        .recv_wrs = 1,
        .recv_sges = 1,
        .context = nullptr,
    };
    connection.qp.reset(TRY(kernel::check(shim_ib_create_rc_qp(interface_.queues.pd(), &wanted))));
    TRY(shim_rc_qp_to_init(connection.qp.get(), interface_.identity.port(), interface_.identity.pkey_index()));
    connection.id.reset(TRY(kernel::check(shim_ib_create_cm_id(interface_.ca(), &connection))));
    const PrivateData ours = interface_.connections.private_data();
    const shim_cm_request request{
        .path = connection.path(),
        .service_id = service_id(connection.peer.qpn()),
        .qpn = shim_ib_qp_num(connection.qp.get()),
        // The SRQ flag also disables end-to-end flow control (IBA 9.7.7.2).
        .srq = interface_.rx[0].srq.shared(),
        .responder_resources = responder_resources,
        .remote_cm_response_timeout = cm_response_timeout,
        .local_cm_response_timeout = cm_response_timeout,
        .max_cm_retries = max_cm_retries,
        .private_data = &ours,
        .private_bytes = PrivateData::bytes(interface_.settings.icrc_as_checksum()),
    };
    return shim_ib_send_cm_req(connection.id.get(), &request);
}

int ActiveConnections::on_message(shim_cm_endpoint* endpoint, ib_cm_id* id, const shim_cm_message* message)
{
    auto& connection = *static_cast<ActiveConnection*>(endpoint);
    ActiveConnections& self = connection.owner;
    switch (message->event) {
    case SHIM_IB_CM_REP_RECEIVED:
        self.handle_reply(connection, id, *message);
        break;
    case SHIM_IB_CM_REJ_RECEIVED:
        self.handle_reject(connection, message->reason);
        break;
    case SHIM_IB_CM_DREQ_RECEIVED:
        (void)shim_ib_send_cm_drep(id);
        [[fallthrough]];
    case SHIM_IB_CM_REQ_ERROR:
    case SHIM_IB_CM_TIMEWAIT_EXIT:
        if (message->event == SHIM_IB_CM_REQ_ERROR)
            self.requests_failed.add();
        self.report(connection, ActiveLife::Event::failed);
        break;
    default:
        break;
    }
    return 0;
}

void ActiveConnections::handle_reply(ActiveConnection& connection, ib_cm_id* id, const shim_cm_message& message)
{
    const auto is_requested = [&] {
        PathTable::Guard guard(interface_.paths);
        return connection.life.state() == ActiveLife::State::requested;
    };
    if (!is_requested())
        return;
    const PrivateData theirs = PrivateData::from(message.private_data);
    const unsigned int max_message = theirs.parameters.receive_mtu.value();
    // No interface has an MTU below min_mtu. A connection for shorter messages would carry no packet; datagrams do.
    constexpr unsigned int min_message = min_mtu + sizeof(Encapsulation);
    if (max_message < min_message) {
        log_warning(interface_.dev(), "Rejecting connection: mtu %u < %u", max_message, min_message);
        interface_.connections.malformed.add();
        shim_ib_send_cm_rej(id, SHIM_CM_REJ_CONSUMER_DEFINED);
        report(connection, ActiveLife::Event::failed);
        return;
    }
    {
        PathTable::Guard guard(interface_.paths);
        connection.max_message = max_message;
        connection.without_checksums = interface_.settings.icrc_as_checksum() && theirs.offer.valid();
    }
    const kernel::Status status = [&]() -> kernel::Status {
        // The queue pair receives nothing: the peer's PSN and the RNR timer do not matter.
        TRY(shim_helper_rc_qp_to_rtr(connection.qp.get(), id, 0, 0));
        TRY(shim_helper_rc_qp_to_rts(connection.qp.get(), id));
        // ib_cm refuses an RTU as invalid if the peer has ended the connection since its REP.
        const kernel::Status sent = shim_ib_send_cm_rtu(id);
        return sent.code() == kernel::invalid ? kernel::connection_reset : sent;
    }();
    // Either end may end the connection at any time.
    if (!status.ok() && status.code() != kernel::connection_reset && is_requested())
        log_warning(interface_.dev(), "failed to make a connection ready, error %d", status.code());
    report(connection, status.ok() ? ActiveLife::Event::accepted : ActiveLife::Event::failed);
}

void ActiveConnections::handle_reject(ActiveConnection& connection, unsigned int reason)
{
    requests_failed.add();
    bool first, at_once;
    {
        PathTable::Guard guard(interface_.paths);
        at_once = reason == SHIM_CM_REJ_STALE_CONN && ++connection.stales < max_stales;
        const std::uint64_t bit = std::uint64_t(1) << std::min(reason, 63U);
        first = !(reasons_logged_ & bit);
        reasons_logged_ |= bit;
    }
    if (first)
        log_warning(interface_.dev(),
                    "connection to %pI6 rejected, reason %u; further ones with this reason are not logged",
                    connection.peer.gid().bytes, reason);
    report(connection, at_once ? ActiveLife::Event::stale : ActiveLife::Event::failed);
}

} // namespace ipoib
