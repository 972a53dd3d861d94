// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The active side's requests (RFC 4755): the path that a REQ takes, the queue pair that it is for, and the responses.
#include <algorithm>

#include <ipoib/connected.hpp>
#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <kernel/error_pointer.hpp>
#include <kernel/log.hpp>
#include <kernel/time.hpp>
#include <shim/rc_qp.h>

namespace ipoib {

namespace {

// Parameters of a REQ. IPoIB uses neither RDMA reads nor atomics; peers expect the in-tree driver's values. A
// timeout of 20 is 4.096 us * 2^20 = 4.3 s.
constexpr std::uint8_t responder_resources = 4, cm_response_timeout = 20, max_cm_retries = 15;

} // namespace

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

bool ActiveConnection::follow_path(PathTable& paths, unsigned long now)
{
    Path* const path = current_path();
    if (!path)
        return true;
    paths.confirm(*path);
    if (waits_for_path(now))
        return false;
    if (path->life.usable())
        shim_path_copy(path_.get(), path->record());
    return true;
}

bool ActiveConnection::is_requested_elsewhere(Path& of)
{
    return life.state() == ActiveLife::State::requested && of.life.usable() &&
           (shim_path_dlid(of.record()) != shim_path_dlid(path()) || shim_path_sl(of.record()) != shim_path_sl(path()));
}

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
            kernel::reached(connection.next_request_at(), now) && connection.follow_path(interface_.paths, now)) {
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

void ActiveConnections::path_queried(Neighbour& neighbour, kernel::PacketQueue& ready)
{
    ActiveConnection* const first = neighbour.attempt;
    if (!first)
        return;
    ActiveConnection* const further = first->flows ? first->flows->pending : nullptr;
    if (first->life.state() == ActiveLife::State::wanted || further)
        work.queue_now();
    // No response to a REQ that went to a former LID is to be expected.
    if (first->is_requested_elsewhere(neighbour.path)) {
        requests_failed.add();
        perform(*first, step(*first, ActiveLife::Event::stale), ready);
    }
    if (further && further->is_requested_elsewhere(neighbour.path)) {
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
        log_warning(interface_.dev(), "Rejecting connection: mtu %u <= %u", max_message, min_message - 1);
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
        TRY(shim_helper_rc_qp_to_rts(connection.qp.get(), id, Connections::max_timeout, Connections::max_rnr_retries));
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
