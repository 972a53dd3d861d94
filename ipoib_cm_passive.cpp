// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The passive side of connections (RFC 4755): REQs admitted and answered, messages received, connections ended.
#include <algorithm>

#include <ipoib/connected.hpp>
#include <ipoib/encapsulation.hpp>
#include <ipoib/flush_limit.hpp>
#include <ipoib/interface.hpp>
#include <ipoib/trace.hpp>
#include <ipoib/wr_id.hpp>
#include <kernel/error_pointer.hpp>
#include <kernel/log.hpp>
#include <kernel/time.hpp>
#include <shim/rc_qp.h>

namespace ipoib {

namespace {

constexpr unsigned int idle_s = 512;
// A connection that was idle for longer is ended when a REQ finds no free slot. It may be one that its peer has lost.
constexpr unsigned int min_idle_before_eviction_s = 10;
// Attempts to stop the poll while the completion queue is empty, 1 ms apart.
constexpr unsigned int max_pauses = 10;
// A sender whose message finds no buffer retries after 0.64 ms, six times (IBA 9.7.5.2.8).
constexpr std::uint8_t rnr_timer = 12, rnr_retries = 6;

} // namespace

constinit kernel::LockClass PassiveConnections::mutex_class_;

PassiveConnections::PassiveConnections(Interface& interface, kernel::WorkQueue& queue)
    : work(*this, queue), interface_(interface), listener_{{on_request}, *this}
{
}

kernel::Status PassiveConnections::start()
{
    {
        PathTable::Guard guard(interface_.paths);
        accepting_ = true;
        requests_left_ = max_requests_at_once;
        requests_since_ = shim_jiffies();
    }
    listen_id_.reset(TRY(kernel::check(shim_ib_create_cm_id(interface_.ca(), &listener_))));
    return shim_ib_cm_listen(listen_id_.get(), service_id(interface_.identity.qpn()));
}

void PassiveConnections::stop_listening()
{
    {
        PathTable::Guard guard(interface_.paths);
        accepting_ = false;
    }
    listen_id_.reset();
}

// The work item

unsigned long PassiveConnections::service()
{
    const kernel::NoIo no_io;
    const unsigned long now = shim_jiffies();
    // A flood of REQs leaves many; the other work of the queue must not wait until all are done.
    while (shim_jiffies() == now && check_proven()) {}
    PassiveLife::Action action;
    while (PassiveConnection* connection = next_due(action)) {
        perform(*connection, action);
        if (shim_jiffies() != now)
            break;
    }
    return next_check();
}

unsigned long PassiveConnections::next_check()
{
    PathTable::Guard guard(interface_.paths);
    bool ending = false;
    for (PassiveConnection& connection : list_) {
        if (connection.due != PassiveLife::Action::none || connection.proven.load())
            return 1;
        ending |= connection.life.ending();
    }
    return ending ? kernel::milliseconds(Connections::check_interval_ms) : 0;
}

// Accepting

int PassiveConnections::on_request(shim_cm_endpoint* endpoint, ib_cm_id* id, const shim_cm_message* message)
{
    PassiveConnections& self = static_cast<Listener*>(endpoint)->owner;
    if (message->event != SHIM_IB_CM_REQ_RECEIVED)
        return 0;
    auto reason = SHIM_CM_REJ_CONSUMER_DEFINED;
    const kernel::Status status = self.accept(id, *message, reason);
    if (!status.ok()) {
        self.rejected.add();
        log_debug(self.interface_.dev(), "REQ rejected, reason %d, error %d", reason, status.code());
        shim_ib_send_cm_rej(id, reason);
    }
    return status.code();
}

// Returns true if a REQ is accepted. Anyone can send a REQ in the name of a peer, so it ends no connection that is in
// use.
bool PassiveConnections::admit(const PassiveConnection::Peer& peer, shim_cm_reason& reason)
{
    reason = SHIM_CM_REJ_NO_RESOURCES;
    if (!accepting_)
        return false;
    const unsigned long now = shim_jiffies();
    const unsigned long more = kernel::elapsed(requests_since_, now) * requests_per_second / shim_hz();
    if (more) {
        requests_left_ =
            static_cast<unsigned int>(std::min<unsigned long>(requests_left_ + more, max_requests_at_once));
        requests_since_ = now;
    }
    if (!requests_left_)
        return false;
    --requests_left_;

    PassiveConnection* oldest = nullptr;
    bool another = false;
    const auto idle = [now](const PassiveConnection& connection) {
        return kernel::elapsed(connection.last_used.load(), now) > kernel::seconds(min_idle_before_eviction_s);
    };
    for (PassiveConnection& connection : list_) {
        if (connection.life.ending())
            continue;
        another |= connection.peer == peer && connection.used() && !idle(connection);
        if (!oldest || kernel::before(connection.last_used.load(), oldest->last_used.load()))
            oldest = &connection;
    }
    const bool shared = interface_.rx[0].srq.shared();
    const unsigned int max_count =
        shared ? Connections::max_connections : static_cast<unsigned int>(shim_parameters.max_nonsrq_conn_qp);
    // Each connection has its own buffers then: the last half of the slots is for peers' first connections.
    if (!shared && another && count_ >= max_count / 2)
        return false;
    if (count_ < max_count)
        return true;
    reason = SHIM_CM_REJ_NO_QP;
    // Evicts the connection that was idle for longest, so that the next REQ finds a free slot.
    if (oldest && idle(*oldest))
        step(*oldest, PassiveLife::Event::ended);
    return false;
}

unsigned int PassiveConnections::avoided_queues(const PassiveConnection::Peer& peer)
{
    PathTable::Guard guard(interface_.paths);
    unsigned int connections[SHIM_MAX_RX_QUEUES]{}, avoided = 0;
    for (const PassiveConnection& connection : list_)
        if (connection.peer == peer && !connection.life.ending())
            ++connections[connection.queue.index()];
    const unsigned int fewest = *std::min_element(connections, connections + interface_.rx.count());
    for (unsigned int queue = 0; queue < interface_.rx.count(); ++queue)
        avoided |= (connections[queue] > fewest ? 1U : 0U) << queue;
    return avoided;
}

kernel::Status PassiveConnections::accept(ib_cm_id* id, const shim_cm_message& message, shim_cm_reason& reason)
{
    kernel::Guard one_at_a_time(mutex_);
    const kernel::NoIo no_io;
    const PrivateData theirs = PrivateData::from(message.private_data);
    if (!message.reliable) {
        reason = SHIM_CM_REJ_INVALID_TRANSPORT_TYPE;
        return kernel::not_supported;
    }
    // The high byte is reserved; it is ignored (RFC 4755 section 6).
    const std::uint32_t qpn = theirs.parameters.qpn.value() & 0xffffff;
    if (qpn == 0 || theirs.parameters.receive_mtu.value() <= sizeof(Encapsulation)) {
        interface_.connections.malformed.add();
        return kernel::invalid;
    }
    if (message.packet_life_time > Connections::max_packet_life_time)
        return kernel::invalid;
    const PassiveConnection::Peer peer{Gid::from(message.peer), message.peer_lid, qpn};
    {
        PathTable::Guard guard(interface_.paths);
        if (!admit(peer, reason))
            return kernel::try_again;
        ++count_;
    }
    kernel::Owned<PassiveConnection> connection;
    const std::uint32_t psn = shim_get_random_u32() & 0xffffff;
    const kernel::Status status = [&]() TA_REQUIRES(mutex_) -> kernel::Status {
        reason = SHIM_CM_REJ_NO_RESOURCES;
        RxQueue& queue = interface_.further_queues.choose_receive(avoided_queues(peer));
        TRY(queue.srq.fill());
        connection =
            kernel::make_owned<PassiveConnection>(*this, shim_cm_endpoint{on_message}, interface_, queue, peer);
        if (!connection)
            return kernel::no_memory;
        connection->without_checksums = interface_.settings.icrc_as_checksum() && theirs.offer.valid();
        reason = SHIM_CM_REJ_NO_QP;
        return set_up(*connection, id, psn);
    }();
    if (!status.ok()) {
        // The peer may withdraw its REQ at any time.
        if (status.code() != kernel::connection_reset)
            log_warning(interface_.dev(), "failed to set a connection up, error %d", status.code());
        connection.reset();
        PathTable::Guard guard(interface_.paths);
        --count_;
        return status;
    }
    reply(*connection.release(), id, psn);
    return {};
}

void PassiveConnections::reply(PassiveConnection& connection, ib_cm_id* id, std::uint32_t psn)
{
    connection.id.reset(id);
    shim_cm_set_context(id, &connection);
    {
        PathTable::Guard guard(interface_.paths);
        list_.push_back(connection);
        ++connection.queue.connections;
    }
    accepted.add();
    const PrivateData ours = interface_.connections.private_data();
    const shim_cm_reply rep{
        .qpn = shim_ib_qp_num(connection.qp.get()),
        .psn = psn,
        .srq = connection.queue.srq.shared(),
        .rnr_retries = rnr_retries,
        .private_data = &ours,
        .private_bytes = PrivateData::bytes(connection.without_checksums),
    };
    const int error = shim_ib_send_cm_rep(id, &rep);
    PathTable::Guard guard(interface_.paths);
    // The connection owns the identifier, even if the REP was not sent.
    step(connection, error ? PassiveLife::Event::ended : PassiveLife::Event::replied);
}

kernel::Status PassiveConnections::set_up(PassiveConnection& connection, ib_cm_id* id, std::uint32_t psn)
{
    RxQueue& queue = connection.queue;
    const bool shared = queue.srq.shared();
    const unsigned int own = shared ? 0 : std::min(queue.srq.buffers(), max_own_buffers);
    const shim_rc_qp wanted{
        // The drain's completion must come after those of all receives: one completion queue for both.
        .send_cq = queue.cq(),
        .recv_cq = queue.cq(),
        .srq = queue.srq.srq(),
        .send_wrs = 1,
        .send_sges = 1,
        .recv_wrs = own,
        .recv_sges = shared ? 0 : queue.srq.elements(),
        .context = &connection,
    };
    connection.qp.reset(TRY(kernel::check(shim_ib_create_rc_qp(interface_.queues.pd(), &wanted))));
    TRY(shim_rc_qp_to_init(connection.qp.get(), interface_.identity.port(), interface_.identity.pkey_index()));
    if (own) {
        TRY(connection.ring.create(own, queue.srq.elements()));
        TRY(connection.ring.post_to(nullptr, connection.qp.get()));
    }
    TRY(shim_helper_rc_qp_to_rtr(connection.qp.get(), id, psn, rnr_timer));
    // The queue pair sends only its drain, which completes in RTS and in ERROR.
    (void)shim_helper_rc_qp_to_rts(connection.qp.get(), id, Connections::max_timeout, Connections::max_rnr_retries);
    return {};
}

int PassiveConnections::on_message(shim_cm_endpoint* endpoint, ib_cm_id* id, const shim_cm_message* message)
{
    auto& connection = *static_cast<PassiveConnection*>(endpoint);
    PassiveConnections& self = connection.owner;
    switch (message->event) {
    case SHIM_IB_CM_DREQ_RECEIVED:
        (void)shim_ib_send_cm_drep(id);
        [[fallthrough]];
    case SHIM_IB_CM_REJ_RECEIVED:
    case SHIM_IB_CM_DREP_RECEIVED:
    case SHIM_IB_CM_REP_ERROR:
    case SHIM_IB_CM_DREQ_ERROR:
    case SHIM_IB_CM_TIMEWAIT_EXIT: {
        PathTable::Guard guard(self.interface_.paths);
        self.step(connection, PassiveLife::Event::ended);
        break;
    }
    default:
        break;
    }
    return 0;
}

// Receiving and the end

void PassiveConnections::end_all()
{
    for (PassiveConnection& connection : list_)
        step(connection, PassiveLife::Event::ended);
}

void PassiveConnections::received(const shim_wc* wc, RxQueue& queue)
{
    auto& connection = *static_cast<PassiveConnection*>(shim_wc_qp_context(wc));
    if (WrId::kind(wc) == WrId::Kind::drain) {
        connection.drained.store(true);
        work.queue_now();
        return;
    }
    (queue.srq.shared() ? queue.srq.ring : connection.ring).complete(wc, connection);
}

void PassiveConnections::flushed(PassiveConnection& connection)
{
    connection.flushed.store(true);
    work.queue_now();
}

void PassiveConnections::step(PassiveConnection& connection, PassiveLife::Event event)
{
    const auto before = connection.life.state();
    const auto step = traced_step(interface_.dev(), SHIM_TRACE_PASSIVE, connection.peer.gid, connection.life, event);
    if (step.next != before)
        connection.since = shim_jiffies();
    if (step.action == PassiveLife::Action::none)
        return;
    draining_ += step.next == PassiveLife::State::draining;
    draining_ -= before == PassiveLife::State::draining;
    connection.due = step.action;
    work.queue_now();
}

// The first message proves that the peer named in the REQ sent it. If that makes too many, those that were idle for
// longest end.
void PassiveConnections::end_exceeding(const PassiveConnection::Peer& peer)
{
    for (;;) {
        unsigned int count = 0;
        PassiveConnection* longest = nullptr;
        for (PassiveConnection& connection : list_) {
            if (connection.peer != peer || !connection.used() || connection.life.ending())
                continue;
            ++count;
            if (!longest || kernel::before(connection.last_used.load(), longest->last_used.load()))
                longest = &connection;
        }
        if (count <= max_of_peer)
            return;
        step(*longest, PassiveLife::Event::ended);
    }
}

// One peer at a time, since each takes a walk of the list under the lock.
bool PassiveConnections::check_proven()
{
    PathTable::Guard guard(interface_.paths);
    for (PassiveConnection& connection : list_) {
        if (!connection.proven.load())
            continue;
        connection.proven.store(false);
        if (!connection.life.ending())
            end_exceeding(connection.peer);
        return true;
    }
    return false;
}

PassiveConnection* PassiveConnections::next_due(PassiveLife::Action& action)
{
    PathTable::Guard guard(interface_.paths);
    for (PassiveConnection& connection : list_) {
        if (connection.due == PassiveLife::Action::none) {
            if (connection.drained.load())
                step(connection, PassiveLife::Event::drained);
            else if (connection.flushed.load() && connection.life.state() != PassiveLife::State::draining) {
                // This state has no deadline of its own; the connections that drain have one.
                if (draining_ < max_draining)
                    step(connection, PassiveLife::Event::flushed);
            } else if (connection.life.ending() && kernel::reached(connection.deadline, shim_jiffies()))
                step(connection, PassiveLife::Event::timed_out);
        }
        action = std::exchange(connection.due, PassiveLife::Action::none);
        if (action == PassiveLife::Action::none)
            continue;
        // The deadline starts with the action, which earlier connections in the list may delay. The connection becomes
        // the last one: a flood of others in front of one must not delay it without end.
        connection.deadline = shim_jiffies() + kernel::seconds(flush_limit_s);
        static_cast<kernel::ListNode<PassiveConnection>&>(connection).unlink();
        list_.push_back(connection);
        return &connection;
    }
    return nullptr;
}

void PassiveConnections::perform(PassiveConnection& connection, PassiveLife::Action action)
{
    switch (action) {
    case PassiveLife::Action::none:
        break;
    case PassiveLife::Action::flush:
        (void)shim_qp_to_error(connection.qp.get());
        break;
    case PassiveLife::Action::drain: {
        shim_send_wr* const wr = connection.drain_wr.get();
        shim_send_wr_init(wr, WrId::of(WrId::Kind::drain, 0), nullptr);
        shim_send_wr_set_message(wr, 0);
        shim_send_wr_set_flags(wr, true, false);
        shim_send_wr_set_next(wr, nullptr);
        if (const int error = shim_helper_post_send(connection.qp.get(), wr, nullptr)) {
            log_warning(interface_.dev(), "failed to drain a connection, error %d", error);
            // The poll handles earlier receives meanwhile.
            PathTable::Guard guard(interface_.paths);
            connection.deadline = shim_jiffies() + kernel::milliseconds(refused_drain_ms);
        }
        break;
    }
    case PassiveLife::Action::destroy:
        destroy(connection);
        break;
    }
}

// Destroys a queue pair whose drain did not complete, with the poll stopped, which may be handling a completion of it.
// The completion queue may contain one too, which HCAs in software do not remove. Completions of other queue pairs
// can't be told apart, so the completion queue may never be found empty.
void PassiveConnections::destroy_undrained(PassiveConnection& connection)
{
    RxQueue& queue = connection.queue;
    for (unsigned int tries = 1; connection.qp; ++tries) {
        if (tries > 1)
            shim_msleep(1);
        const RxQueue::PollPause pause(queue.napi());
        if (tries == max_pauses || !shim_ib_req_notify_cq(queue.cq()))
            connection.qp.reset();
    }
}

void PassiveConnections::destroy(PassiveConnection& connection)
{
    const bool drained = connection.drained.load();
    if (!drained)
        log_warning(interface_.dev(), "RX drain timing out");
    {
        PathTable::Guard guard(interface_.paths);
        connection.unlink();
        --count_;
        --connection.queue.connections;
    }
    connection.id.reset();
    if (drained)
        connection.qp.reset();
    else
        destroy_undrained(connection);
    kernel::Owned<PassiveConnection>(&connection).reset();
}

void PassiveConnections::collect_garbage()
{
    const unsigned long now = shim_jiffies();
    PathTable::Guard guard(interface_.paths);
    for (PassiveConnection& connection : list_)
        if (!connection.life.ending() && kernel::elapsed(connection.last_used.load(), now) > kernel::seconds(idle_s))
            step(connection, PassiveLife::Event::ended);
}

} // namespace ipoib

void ipoib_last_wqe_reached(void* context)
{
    // An active connection takes no receives.
    if (!context)
        return;
    auto& connection = *static_cast<ipoib::PassiveConnection*>(context);
    connection.owner.flushed(connection);
}
