// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Connections (RFC 4755): made, accepted, released. Messages of the communication manager and packets move the two
// state machines under the path table's lock; whatever may sleep is done on the interface's work queue, by look().
#include <algorithm>

#include <ipoib/connected.hpp>
#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <kernel/error_pointer.hpp>
#include <kernel/log.hpp>

namespace ipoib {

constinit kernel::LockClass Connections::mutex_class_;
constinit kernel::LockClass Connections::look_class_;

namespace {

// Of a queue pair in its error state: how long its completions may take.
constexpr unsigned int patience_seconds = 5;
// Sends of a connection that nobody needs any more may still arrive.
constexpr unsigned int grace_ms = 200;
constexpr unsigned int look_again_ms = 10;
constexpr unsigned int longest_rest_seconds = 64;
constexpr unsigned int idle_seconds = 512;
// REQs taken: so many at once, then so many a second.
constexpr unsigned int requests_at_once = 1024, requests_per_second = 256;
// A receiver that is out of buffers is asked again after 0.64 ms, six times (IBA 9.7.5.2.8).
constexpr std::uint8_t rnr_timer = 12, rnr_retries = 6;

unsigned long jiffies_of_ms(unsigned int ms) { return ms * shim_jiffies_per_second() / 1000 + 1; }
unsigned long jiffies_of_seconds(unsigned int seconds) { return seconds * shim_jiffies_per_second(); }
bool reached(unsigned long time, unsigned long now) { return static_cast<long>(now - time) >= 0; }

Introduction introduction_of(const Interface& interface)
{
    return {kernel::Be32(interface.qpn()),
            kernel::Be32(interface.connections.max_mtu() + static_cast<unsigned int>(sizeof(Encapsulation)))};
}

Introduction read_introduction(const std::uint8_t* private_data)
{
    Introduction introduction;
    std::memcpy(&introduction, private_data, sizeof(introduction));
    return introduction;
}

} // namespace

Connections::Connections(Interface& interface)
    : sends(interface), interface_(interface), listener_(on_request, *this), shared_ring_(interface), work_(*this)
{
}

// Creation and destruction

unsigned int Connections::max_mtu() const
{
    const unsigned int sges = srq_ ? shim_ib_max_srq_sge(interface_.ca()) : PageRing::most_pages;
    // 16 bytes of the buffer are for the encapsulation, and the alignment of what is behind it.
    return std::min(sges * shim_page_size() - 16, static_cast<unsigned int>(IPOIB_MAX_MTU));
}

unsigned int Connections::receive_completions(unsigned int ring_size) const
{
    if (shim_ib_max_srq_sge(interface_.ca()))
        return ring_size + most_draining;
    return static_cast<unsigned int>(shim_parameters.max_nonsrq_conn_qp) * std::min(ring_size, most_own_buffers) +
           most_draining;
}

kernel::Status Connections::create(unsigned int send_size, unsigned int receives, unsigned int sges)
{
    receives_ = receives;
    send_size_ = send_size;
    send_sges_ = sges;
    if (const unsigned int most = shim_ib_max_srq_sge(interface_.ca())) {
        srq_ = shim_srq_create(interface_.pd(), receives, std::min(most, PageRing::most_pages));
        if (const kernel::Status status = kernel::check(srq_); !status.ok() && status.code() != kernel::not_supported)
            log_warning(interface_.dev(), "failed to allocate SRQ, error %d", status.code());
    }
    return sends.create(send_size, sges);
}

void Connections::destroy()
{
    if (auto* srq = std::exchange(srq_, nullptr))
        shim_srq_destroy(srq);
    shared_ring_.empty();
    if (auto* pool = std::exchange(pool_, nullptr))
        shim_pool_destroy(pool);
    sends.destroy();
}

kernel::Status Connections::start()
{
    {
        kernel::Guard guard(interface_.paths.lock);
        accepting_ = true;
        requests_left_ = requests_at_once;
        requests_since_ = shim_jiffies();
    }
    listen_id_ = shim_cm_create(interface_.ca(), &static_cast<Endpoint&>(listener_));
    kernel::Status status = kernel::check(listen_id_);
    if (status.ok())
        status = shim_cm_listen(listen_id_, service_id(interface_.qpn()));
    if (!status.ok()) {
        log_warning(interface_.dev(), "failed to listen for connections, error %d", status.code());
        stop();
    }
    return status;
}

void Connections::stop()
{
    {
        kernel::Guard guard(interface_.paths.lock);
        accepting_ = false;
    }
    if (auto* id = std::exchange(listen_id_, nullptr))
        shim_cm_destroy(id);
    work_.cancel();
    kernel::PacketQueue none;
    {
        kernel::Guard guard(interface_.paths.lock);
        for (PassiveConnection& connection : passive_)
            advance(connection, PassiveLife::Event::ended);
        for (ActiveConnection& connection : active_)
            perform(connection, connection.life.on(ActiveLife::Event::abandoned), none);
    }
    // The polls still run, and end what was begun; nothing takes longer than its patience.
    for ((void)look(); !idle(); (void)look())
        shim_sleep_ms(1);
    work_.cancel();
}

bool Connections::idle()
{
    kernel::Guard guard(interface_.paths.lock);
    return active_.empty() && passive_.empty();
}

// Work

void Connections::work_soon() { work_.requeue(interface_.work_queue); }

void Connections::run()
{
    if (const unsigned long delay = look())
        work_.requeue(interface_.work_queue, delay);
}

unsigned long Connections::look()
{
    kernel::Guard one_at_a_time(look_mutex_);
    while (ActiveConnection* connection = next_wanted())
        ask(*connection);

    const unsigned long now = shim_jiffies();
    kernel::PacketQueue ready;
    bool again = false;
    // One grace period for all that were unpublished.
    bool unpublished = false;
    {
        kernel::Guard guard(interface_.paths.lock);
        for (ActiveConnection& connection : active_) {
            if (connection.post_failed.load()) {
                connection.post_failed.store(false);
                perform(connection, connection.life.on(ActiveLife::Event::failed), ready);
            }
            if (!std::exchange(connection.release_wanted, false))
                continue;
            connection.release = ActiveConnection::Release::unpublished;
            connection.look_at = now;
            connection.patience_ends = now + jiffies_of_ms(grace_ms);
            unpublished = true;
        }
    }
    if (unpublished)
        shim_rcu_synchronize();
    while (ActiveConnection* connection = next_to_release(now))
        again |= !release(*connection, now);

    PassiveLife::Action action;
    while (PassiveConnection* connection = next_due(action))
        perform(*connection, action);

    unsigned long delay = 0;
    const auto sooner = [&delay](unsigned long in) { delay = delay ? std::min(delay, in) : std::max(in, 1UL); };
    {
        kernel::Guard guard(interface_.paths.lock);
        for (ActiveConnection& connection : active_) {
            if (connection.life.state() == ActiveLife::State::wanted || connection.release_wanted) {
                sooner(1);
            } else if (connection.life.state() == ActiveLife::State::refused &&
                       connection.release == ActiveConnection::Release::none) {
                if (!reached(connection.look_at, now))
                    sooner(connection.look_at - now);
                else
                    perform(connection, connection.life.on(ActiveLife::Event::rested), ready);
            }
        }
        for (PassiveConnection& connection : passive_)
            if (connection.life.ending() || connection.due != PassiveLife::Action::none)
                sooner(jiffies_of_ms(look_again_ms));
    }
    if (again)
        sooner(jiffies_of_ms(look_again_ms));
    transmit(ready);
    return delay;
}

// Active side: state

ActiveConnection* Connections::connection_of(Neighbour& neighbour, Path& path)
{
    if (neighbour.attempt)
        return neighbour.attempt;
    auto connection = kernel::make_owned_atomic<ActiveConnection>(*this, on_active_message, neighbour, neighbour.key());
    if (!connection)
        return nullptr;
    shim_path_copy(connection->path(), path.record());
    neighbour.attempt = connection.get();
    active_.push_back(*connection);
    return connection.release();
}

void Connections::send(sk_buff* skb, Neighbour& neighbour, Path& path)
{
    interface_.paths.lock.assert_held();
    ActiveConnection* connection = connection_of(neighbour, path);
    if (!connection) {
        interface_.paths.dropped.add();
        shim_skb_drop(skb);
        return;
    }
    kernel::PacketQueue none;
    if (connection->life.state() == ActiveLife::State::idle)
        shim_path_copy(connection->path(), path.record());
    perform(*connection, connection->life.on(ActiveLife::Event::needed), none);
    if (connection->life.state() == ActiveLife::State::established) {
        shim_skb_pull(skb, sizeof(HwAddr));
        sends.send(*connection, skb);
    } else if (connection->waiting.push(skb, most_waiting)) {
        // It goes with the connection, or with its refusal.
    } else if (shim_skb_len(skb) - sizeof(HwAddr) <= interface_.longest_frame()) {
        interface_.paths.send_datagram(skb, neighbour.key(), path);
    } else {
        interface_.paths.dropped.add();
        shim_skb_drop(skb);
    }
}

void Connections::abandon(Neighbour& neighbour)
{
    interface_.paths.lock.assert_held();
    if (ActiveConnection* connection = neighbour.attempt) {
        kernel::PacketQueue none;
        perform(*connection, connection->life.on(ActiveLife::Event::abandoned), none);
    }
}

// What is in ready afterwards is to be transmitted without it.
void Connections::perform(ActiveConnection& connection, ActiveLife::Step step, kernel::PacketQueue& ready)
{
    interface_.paths.lock.assert_held();
    using Action = ActiveLife::Action;
    Neighbour* const neighbour = connection.neighbour;
    if (step.action != Action::none) {
        connection.since = shim_jiffies();
        log_debug(interface_.dev(), "connection to %pI6: %s", connection.peer.gid().bytes, ActiveLife::name(step.next));
    }
    switch (step.action) {
    case Action::none:
    case Action::destroy:
        break;
    case Action::ask:
        work_soon();
        break;
    case Action::send:
        connection.refusals = 0;
        accepted.add();
        neighbour->connection.store(&connection);
        interface_.paths.publish(*neighbour);
        ready.take(connection.waiting);
        break;
    case Action::recover:
        broken.add();
        neighbour->connection.store(nullptr);
        connection.broken = true;
        connection.release_wanted = true;
        work_soon();
        break;
    case Action::fall_back:
        ++connection.refusals;
        neighbour->refused = true;
        interface_.paths.publish(*neighbour);
        ready.take(connection.waiting);
        connection.broken = true;
        connection.release_wanted = true;
        work_soon();
        break;
    case Action::rest: {
        const unsigned int doubled = 1U << std::min(connection.refusals - 1, 6U);
        connection.look_at = shim_jiffies() + jiffies_of_seconds(std::min(doubled, longest_rest_seconds));
        work_soon();
        break;
    }
    case Action::resume:
        neighbour->refused = false;
        interface_.paths.publish(*neighbour);
        if (!connection.waiting.empty())
            perform(connection, connection.life.on(ActiveLife::Event::needed), ready);
        break;
    case Action::close:
        if (neighbour) {
            neighbour->connection.store(nullptr);
            neighbour->attempt = nullptr;
            connection.neighbour = nullptr;
        }
        interface_.paths.dropped.add(connection.waiting.drop_all());
        if (connection.release == ActiveConnection::Release::none)
            connection.release_wanted = true;
        work_soon();
        break;
    }
}

void Connections::advance(ActiveConnection& connection, ActiveLife::Event event)
{
    kernel::PacketQueue ready;
    {
        kernel::Guard guard(interface_.paths.lock);
        perform(connection, connection.life.on(event), ready);
    }
    transmit(ready);
}

void Connections::send_failed(ActiveConnection& connection)
{
    kernel::Guard guard(interface_.paths.lock);
    kernel::PacketQueue none;
    // Established or nothing: there is never a packet to be sent on.
    if (connection.life.state() == ActiveLife::State::established)
        perform(connection, connection.life.on(ActiveLife::Event::failed), none);
}

void Connections::transmit(kernel::PacketQueue& ready)
{
    while (sk_buff* skb = ready.pop())
        shim_skb_transmit_again(skb, interface_.dev());
}

// Active side: asking

ActiveConnection* Connections::next_wanted()
{
    kernel::Guard guard(interface_.paths.lock);
    for (ActiveConnection& connection : active_)
        if (connection.life.state() == ActiveLife::State::wanted &&
            connection.release == ActiveConnection::Release::none) {
            (void)connection.life.on(ActiveLife::Event::asked);
            connection.since = shim_jiffies();
            return &connection;
        }
    return nullptr;
}

void Connections::ask(ActiveConnection& connection)
{
    requests.add();
    if (const kernel::Status status = send_request(connection); !status.ok()) {
        log_warning(interface_.dev(), "failed to ask %pI6 for a connection, error %d", connection.peer.gid().bytes,
                    status.code());
        refusals.add();
        advance(connection, ActiveLife::Event::failed);
    }
}

kernel::Status Connections::send_request(ActiveConnection& connection)
{
    const shim_rc_qp wanted{
        .send_cq = interface_.send_cq(),
        .recv_cq = interface_.recv_cq(),
        .srq = srq_,
        .send_wrs = send_size_,
        .send_sges = send_sges_,
        .recv_wrs = srq_ ? 0U : 1U,
        .recv_sges = 1,
        .context = nullptr,
    };
    connection.qp = shim_rc_qp_create(interface_.pd(), &wanted);
    TRY(kernel::check(connection.qp));
    TRY(shim_rc_qp_to_init(connection.qp, interface_.port(), interface_.pkey_index()));
    connection.id = shim_cm_create(interface_.ca(), &static_cast<Endpoint&>(connection));
    TRY(kernel::check(connection.id));
    const Introduction introduction = introduction_of(interface_);
    const shim_cm_request request{
        .path = connection.path(),
        .service_id = service_id(connection.peer.qpn()),
        .qpn = shim_qp_number(connection.qp),
        .srq = srq_ != nullptr,
        .private_data = &introduction,
        .private_bytes = sizeof(introduction),
    };
    return shim_cm_send_req(connection.id, &request);
}

int Connections::on_active_message(Endpoint& endpoint, ib_cm_id* id, const shim_cm_message& message)
{
    auto& connection = static_cast<ActiveConnection&>(endpoint);
    Connections& self = connection.owner;
    switch (message.event) {
    case SHIM_CM_REP:
        self.accept_reply(connection, id, message);
        break;
    case SHIM_CM_REJ:
        self.refuse(connection, message.reason);
        break;
    case SHIM_CM_DREQ:
        (void)shim_cm_send_drep(id);
        [[fallthrough]];
    case SHIM_CM_REQ_ERROR:
    case SHIM_CM_TIMEWAIT_EXIT:
        if (message.event == SHIM_CM_REQ_ERROR)
            self.refusals.add();
        self.advance(connection, ActiveLife::Event::failed);
        break;
    default:
        break;
    }
    return 0;
}

void Connections::accept_reply(ActiveConnection& connection, ib_cm_id* id, const shim_cm_message& message)
{
    {
        kernel::Guard guard(interface_.paths.lock);
        if (connection.life.state() != ActiveLife::State::asked)
            return;
    }
    connection.mtu = read_introduction(message.private_data).receive_mtu.value();
    if (connection.mtu <= sizeof(Encapsulation)) {
        log_warning(interface_.dev(), "Rejecting connection: mtu %u <= %zu", connection.mtu, sizeof(Encapsulation));
        malformed.add();
        shim_cm_send_rej(id, SHIM_CM_REJ_CONSUMER_DEFINED);
        advance(connection, ActiveLife::Event::failed);
        return;
    }
    const kernel::Status status = [&]() -> kernel::Status {
        // It receives nothing, so no PSN but that of our REQ, and no timer, matter.
        TRY(shim_rc_qp_to_rtr(connection.qp, id, 0, 0));
        TRY(shim_rc_qp_to_rts(connection.qp, id));
        return shim_cm_send_rtu(id);
    }();
    if (!status.ok())
        log_warning(interface_.dev(), "failed to make a connection ready, error %d", status.code());
    advance(connection, status.ok() ? ActiveLife::Event::accepted : ActiveLife::Event::failed);
}

void Connections::refuse(ActiveConnection& connection, unsigned int reason)
{
    refusals.add();
    bool first;
    {
        kernel::Guard guard(interface_.paths.lock);
        const std::uint64_t bit = std::uint64_t(1) << std::min(reason, 63U);
        first = !(reasons_logged_ & bit);
        reasons_logged_ |= bit;
    }
    if (first)
        log_warning(interface_.dev(), "connection to %pI6 rejected, reason %u; others for it are not logged",
                    connection.peer.gid().bytes, reason);
    advance(connection, reason == SHIM_CM_REJ_STALE_CONN ? ActiveLife::Event::stale : ActiveLife::Event::failed);
}

// Active side: release

ActiveConnection* Connections::next_to_release(unsigned long now)
{
    kernel::Guard guard(interface_.paths.lock);
    for (ActiveConnection& connection : active_)
        if (connection.release != ActiveConnection::Release::none && reached(connection.look_at, now))
            return &connection;
    return nullptr;
}

bool Connections::release(ActiveConnection& connection, unsigned long now)
{
    using Release = ActiveConnection::Release;
    const bool idle = connection.sent.load() == connection.completed.load();
    const bool patient = !reached(connection.patience_ends, now);
    if (connection.release == Release::unpublished && connection.qp) {
        if (!idle && !connection.broken && patient) {
            connection.look_at = now + jiffies_of_ms(look_again_ms);
            return false;
        }
        (void)shim_qp_to_error(connection.qp);
        connection.release = Release::in_error;
        connection.patience_ends = now + jiffies_of_seconds(patience_seconds);
        if (!idle) {
            connection.look_at = now + 1;
            return false;
        }
    } else if (!idle && patient) {
        connection.look_at = now + 1;
        return false;
    }
    if (!idle)
        log_warning(interface_.dev(), "timing out; %u sends not completed",
                    connection.sent.load() - connection.completed.load());
    if (auto* id = std::exchange(connection.id, nullptr))
        shim_cm_destroy(id);
    if (auto* qp = std::exchange(connection.qp, nullptr))
        shim_qp_destroy(qp);
    sends.reclaim(connection);

    kernel::PacketQueue ready;
    bool gone;
    {
        kernel::Guard guard(interface_.paths.lock);
        connection.release = Release::none;
        connection.release_wanted = false;
        connection.broken = false;
        perform(connection, connection.life.on(ActiveLife::Event::released), ready);
        gone = connection.life.state() == ActiveLife::State::gone;
        if (gone)
            static_cast<kernel::ListNode<ActiveConnection>&>(connection).unlink();
    }
    transmit(ready);
    if (gone)
        kernel::Owned<ActiveConnection>(&connection).reset();
    return true;
}

// Passive side: accepting

int Connections::on_request(Endpoint& endpoint, ib_cm_id* id, const shim_cm_message& message)
{
    Connections& self = static_cast<Listener&>(endpoint).owner;
    if (message.event != SHIM_CM_REQ)
        return 0;
    auto reason = SHIM_CM_REJ_CONSUMER_DEFINED;
    const kernel::Status status = self.accept(id, message, reason);
    if (!status.ok()) {
        self.turned_away.add();
        log_debug(self.interface_.dev(), "REQ turned away, reason %d, error %d", reason, status.code());
        shim_cm_send_rej(id, reason);
    }
    return status.code();
}

// Whether a REQ is to be taken; makes room for it.
bool Connections::admit(const Gid& peer, std::uint32_t qpn, shim_cm_reason& reason)
{
    interface_.paths.lock.assert_held();
    reason = SHIM_CM_REJ_NO_RESOURCES;
    if (!accepting_)
        return false;
    const unsigned long now = shim_jiffies();
    const unsigned long more = (now - requests_since_) * requests_per_second / shim_jiffies_per_second();
    if (more) {
        requests_left_ = static_cast<unsigned int>(std::min<unsigned long>(requests_left_ + more, requests_at_once));
        requests_since_ = now;
    }
    if (!requests_left_)
        return false;
    --requests_left_;

    PassiveConnection* oldest = nullptr;
    for (PassiveConnection& connection : passive_) {
        if (connection.life.ending())
            continue;
        // Who asks anew has forgotten what it had.
        if (connection.peer_qpn == qpn && connection.peer_gid == peer)
            advance(connection, PassiveLife::Event::ended);
        else if (!oldest || static_cast<long>(connection.last_used.load() - oldest->last_used.load()) < 0)
            oldest = &connection;
    }
    const unsigned int most = srq_ ? most_passive : static_cast<unsigned int>(shim_parameters.max_nonsrq_conn_qp);
    if (passive_count_ < most)
        return true;
    reason = SHIM_CM_REJ_NO_QP;
    // Its place for the next who asks.
    if (oldest && now - oldest->last_used.load() > jiffies_of_seconds(10))
        advance(*oldest, PassiveLife::Event::ended);
    return false;
}

kernel::Status Connections::fill_shared_ring()
{
    if (!pool_) {
        pool_ = shim_pool_create(std::min(receives_ * PageRing::most_pages, 8192U), 0);
        TRY(kernel::check(pool_));
    }
    if (!srq_ || shared_ring_.created())
        return {};
    TRY(shared_ring_.create(receives_, shim_ib_max_srq_sge(interface_.ca())));
    return shared_ring_.post_to(srq_, nullptr);
}

kernel::Status Connections::accept(ib_cm_id* id, const shim_cm_message& message, shim_cm_reason& reason)
{
    kernel::Guard one_at_a_time(mutex_);
    const Introduction introduction = read_introduction(message.private_data);
    if (!message.reliable) {
        reason = SHIM_CM_REJ_INVALID_TRANSPORT_TYPE;
        return kernel::not_supported;
    }
    // The high byte may be anything (RFC 4755 section 4.2).
    const std::uint32_t qpn = introduction.qpn.value() & 0xffffff;
    if (qpn == 0 || introduction.receive_mtu.value() <= sizeof(Encapsulation)) {
        malformed.add();
        return kernel::invalid;
    }
    const Gid peer = Gid::from(message.peer);
    {
        kernel::Guard guard(interface_.paths.lock);
        if (!admit(peer, qpn, reason))
            return kernel::try_again;
        ++passive_count_;
    }
    kernel::Owned<PassiveConnection> connection;
    const std::uint32_t psn = shim_random() & 0xffffff;
    const kernel::Status status = [&]() -> kernel::Status {
        reason = SHIM_CM_REJ_NO_RESOURCES;
        TRY(fill_shared_ring());
        connection = kernel::make_owned<PassiveConnection>(*this, on_passive_message, interface_);
        if (!connection)
            return kernel::no_memory;
        connection->peer_gid = peer;
        connection->peer_qpn = qpn;
        connection->since = shim_jiffies();
        connection->last_used.store(connection->since);
        reason = SHIM_CM_REJ_NO_QP;
        return set_up(*connection, id, psn);
    }();
    if (!status.ok()) {
        log_warning(interface_.dev(), "failed to set a connection up, error %d", status.code());
        if (connection && connection->qp)
            shim_qp_destroy(connection->qp);
        kernel::Guard guard(interface_.paths.lock);
        --passive_count_;
        return status;
    }
    PassiveConnection& made = *connection.release();
    made.id = id;
    shim_cm_set_context(id, &static_cast<Endpoint&>(made));
    {
        kernel::Guard guard(interface_.paths.lock);
        passive_.push_back(made);
    }
    taken.add();
    const Introduction ours = introduction_of(interface_);
    const shim_cm_reply reply{
        .qpn = shim_qp_number(made.qp),
        .psn = psn,
        .srq = srq_ != nullptr,
        .rnr_retries = rnr_retries,
        .private_data = &ours,
        .private_bytes = sizeof(ours),
    };
    const int error = shim_cm_send_rep(id, &reply);
    kernel::Guard guard(interface_.paths.lock);
    // Whether or not it was sent, the identifier is the connection's now.
    advance(made, error ? PassiveLife::Event::ended : PassiveLife::Event::replied);
    return {};
}

kernel::Status Connections::set_up(PassiveConnection& connection, ib_cm_id* id, std::uint32_t psn)
{
    const unsigned int own = srq_ ? 0 : std::min(receives_, most_own_buffers);
    const shim_rc_qp wanted{
        // The drain is to come behind all that was received.
        .send_cq = interface_.recv_cq(),
        .recv_cq = interface_.recv_cq(),
        .srq = srq_,
        .send_wrs = 1,
        .send_sges = 1,
        .recv_wrs = own,
        .recv_sges = srq_ ? 0 : PageRing::most_pages,
        .context = &connection,
    };
    connection.qp = shim_rc_qp_create(interface_.pd(), &wanted);
    TRY(kernel::check(connection.qp));
    TRY(shim_rc_qp_to_init(connection.qp, interface_.port(), interface_.pkey_index()));
    if (own) {
        TRY(connection.ring.create(own, PageRing::most_pages));
        TRY(connection.ring.post_to(nullptr, connection.qp));
    }
    TRY(shim_rc_qp_to_rtr(connection.qp, id, psn, rnr_timer));
    // It sends nothing but its drain, for which any state beyond will do.
    (void)shim_rc_qp_to_rts(connection.qp, id);
    return {};
}

int Connections::on_passive_message(Endpoint& endpoint, ib_cm_id* id, const shim_cm_message& message)
{
    auto& connection = static_cast<PassiveConnection&>(endpoint);
    Connections& self = connection.owner;
    switch (message.event) {
    case SHIM_CM_DREQ:
        (void)shim_cm_send_drep(id);
        [[fallthrough]];
    case SHIM_CM_REJ:
    case SHIM_CM_DREP:
    case SHIM_CM_REP_ERROR:
    case SHIM_CM_DREQ_ERROR:
    case SHIM_CM_TIMEWAIT_EXIT: {
        kernel::Guard guard(self.interface_.paths.lock);
        self.advance(connection, PassiveLife::Event::ended);
        break;
    }
    default:
        break;
    }
    return 0;
}

// Passive side: receiving and the end

void Connections::received(const shim_wc* wc)
{
    auto& connection = *static_cast<PassiveConnection*>(shim_wc_qp_context(wc));
    if (shim_wc_id(wc) & drain_tag) {
        connection.drained.store(true);
        work_soon();
        return;
    }
    (srq_ ? shared_ring_ : connection.ring).handle(wc, connection);
}

void Connections::advance(PassiveConnection& connection, PassiveLife::Event event)
{
    interface_.paths.lock.assert_held();
    const auto step = connection.life.on(event);
    if (step.action == PassiveLife::Action::none)
        return;
    connection.due = step.action;
    connection.since = shim_jiffies();
    connection.patience_ends = connection.since + jiffies_of_seconds(patience_seconds);
    work_soon();
}

PassiveConnection* Connections::next_due(PassiveLife::Action& action)
{
    kernel::Guard guard(interface_.paths.lock);
    for (PassiveConnection& connection : passive_) {
        if (connection.due == PassiveLife::Action::none) {
            if (connection.drained.load())
                advance(connection, PassiveLife::Event::drained);
            else if (connection.flushed.load() && draining_ < most_draining)
                advance(connection, PassiveLife::Event::flushed);
            else if (connection.life.ending() && reached(connection.patience_ends, shim_jiffies()))
                advance(connection, PassiveLife::Event::timed_out);
        }
        action = std::exchange(connection.due, PassiveLife::Action::none);
        if (action == PassiveLife::Action::none)
            continue;
        if (action == PassiveLife::Action::drain) {
            connection.counted = true;
            ++draining_;
        }
        return &connection;
    }
    return nullptr;
}

void Connections::perform(PassiveConnection& connection, PassiveLife::Action action)
{
    switch (action) {
    case PassiveLife::Action::none:
        break;
    case PassiveLife::Action::flush:
        (void)shim_qp_to_error(connection.qp);
        break;
    case PassiveLife::Action::drain: {
        auto* wr = reinterpret_cast<shim_send_wr*>(connection.drain_wr);
        shim_send_wr_init(wr, drain_tag, nullptr);
        shim_send_wr_set_message(wr, 0);
        shim_send_wr_set_signaled(wr, true);
        shim_send_wr_set_next(wr, nullptr);
        if (const int error = shim_post_send(connection.qp, wr)) {
            log_warning(interface_.dev(), "failed to drain a connection, error %d", error);
            kernel::Guard guard(interface_.paths.lock);
            advance(connection, PassiveLife::Event::timed_out);
        }
        break;
    }
    case PassiveLife::Action::destroy:
        free(connection);
        break;
    }
}

void Connections::free(PassiveConnection& connection)
{
    if (!connection.drained.load())
        log_warning(interface_.dev(), "RX drain timing out");
    {
        kernel::Guard guard(interface_.paths.lock);
        static_cast<kernel::ListNode<PassiveConnection>&>(connection).unlink();
        --passive_count_;
        draining_ -= connection.counted;
    }
    shim_cm_destroy(connection.id);
    shim_qp_destroy(connection.qp);
    kernel::Owned<PassiveConnection>(&connection).reset();
}

void Connections::collect_garbage()
{
    const unsigned long now = shim_jiffies();
    kernel::Guard guard(interface_.paths.lock);
    for (PassiveConnection& connection : passive_)
        if (!connection.life.ending() && now - connection.last_used.load() > jiffies_of_seconds(idle_seconds))
            advance(connection, PassiveLife::Event::ended);
}

// debugfs

void Connections::show(seq_file* file)
{
    const auto count = [](const kernel::SharedCounter& counter) {
        return static_cast<unsigned long long>(counter.value());
    };
    shim_seq_printf(file,
                    "asked %llu accepted %llu refused %llu broken %llu taken %llu turned_away %llu malformed %llu\n",
                    count(requests), count(accepted), count(refusals), count(broken), count(taken), count(turned_away),
                    count(malformed));
    const unsigned long now = shim_jiffies();
    kernel::Guard guard(interface_.paths.lock);
    for (ActiveConnection& connection : active_)
        shim_seq_printf(file, "active  %pI6 qpn 0x%06x state %-11s mtu %5u queue %4u age %lu\n",
                        connection.peer.gid().bytes, connection.peer.qpn(), ActiveLife::name(connection.life.state()),
                        connection.mtu ? connection.mtu - static_cast<unsigned int>(sizeof(Encapsulation)) : 0,
                        connection.waiting.length() + connection.sent.load() - connection.completed.load(),
                        (now - connection.since) / shim_jiffies_per_second());
    for (PassiveConnection& connection : passive_)
        shim_seq_printf(file, "passive %pI6 qpn 0x%06x state %-11s mtu %5u queue %4u age %lu\n",
                        connection.peer_gid.bytes, connection.peer_qpn, PassiveLife::name(connection.life.state()),
                        max_mtu(), connection.ring.outstanding(), (now - connection.since) / shim_jiffies_per_second());
}

} // namespace ipoib

int ipoib_cm_event(ib_cm_id* id, const shim_cm_message* message, void* context)
{
    return static_cast<ipoib::Endpoint*>(context)->handle(id, *message);
}

void ipoib_last_wqe_reached(void* context)
{
    // An active connection takes no receives.
    if (!context)
        return;
    auto& connection = *static_cast<ipoib::PassiveConnection*>(context);
    connection.flushed.store(true);
    connection.owner.look_soon();
}
