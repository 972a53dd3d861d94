// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Connected mode (RFC 4755) as a whole: its start and stop, and the work on all connections. Messages of the
// communication manager and packets move the two state machines under the path table's lock; whatever may sleep is done
// on the interface's work queue, by look().
#include <algorithm>

#include <ipoib/connected.hpp>
#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <ipoib/table.hpp>
#include <kernel/error_pointer.hpp>
#include <kernel/log.hpp>
#include <kernel/time.hpp>

namespace ipoib {

constinit kernel::LockClass Connections::mutex_class_;
constinit kernel::LockClass Connections::look_class_;

Connections::Connections(Interface& interface)
    : sends(interface), interface_(interface), listener_(on_request, *this), shared_ring_(interface), work_(*this)
{
}

// Creation and destruction

unsigned int Connections::max_mtu() const
{
    const MessageBuffer shape = message_buffer();
    // 16 bytes of the buffer are for the encapsulation, and the alignment of what is behind it.
    return std::min(shape.pieces * shape.piece_bytes - 16, static_cast<unsigned int>(IPOIB_MAX_MTU));
}

unsigned int Connections::message_elements() const
{
    return srq_ ? shim_ib_max_srq_sge(interface_.ca()) : PageRing::own_elements;
}

MessageBuffer Connections::message_buffer() const { return MessageBuffer::of(shim_page_size(), message_elements()); }

unsigned int Connections::receive_completions(unsigned int ring_size) const
{
    if (srq_)
        return ring_size + most_draining;
    return static_cast<unsigned int>(shim_parameters.max_nonsrq_conn_qp) * std::min(ring_size, most_own_buffers) +
           most_draining;
}

PrivateData Connections::private_data() const
{
    const auto longest = max_mtu() + static_cast<unsigned int>(sizeof(Encapsulation));
    return {{kernel::Be32(interface_.qpn()), kernel::Be32(longest)}, IcrcOffer::make()};
}

PrivateData Connections::read(const std::uint8_t* private_data)
{
    PrivateData data;
    std::memcpy(&data, private_data, sizeof(data));
    return data;
}

kernel::Status Connections::create(unsigned int send_size, unsigned int receives, unsigned int sges)
{
    receives_ = receives;
    send_size_ = send_size;
    send_sges_ = sges;
    // One that has shared receive queues and gives none is used as if it had none.
    shares_receives_ = create_shared_queue().ok();
    return sends.create(send_size, sges);
}

kernel::Status Connections::create_shared_queue()
{
    const unsigned int most = shim_ib_max_srq_sge(interface_.ca());
    if (!most)
        return kernel::not_supported;
    srq_ = shim_srq_create(interface_.pd(), receives_, MessageBuffer::of(shim_page_size(), most).pieces);
    const kernel::Status status = kernel::check(srq_);
    if (!status.ok() && status.code() != kernel::not_supported)
        log_warning(interface_.dev(), "failed to allocate SRQ, error %d", status.code());
    return status;
}

void Connections::shared_queue_broke()
{
    shared_queue_broken_.store(true);
    interface_.restart_queues();
}

void Connections::drop_broken_shared_queue()
{
    if (!shared_queue_broken_.load())
        return;
    shared_queue_broken_.store(false);
    drop_shared_queue();
}

void Connections::drop_shared_queue()
{
    if (auto* srq = std::exchange(srq_, nullptr))
        shim_srq_destroy(srq);
    shared_ring_.empty();
}

void Connections::destroy()
{
    drop_shared_queue();
    if (auto* pool = std::exchange(pool_, nullptr))
        shim_pool_destroy(pool);
    sends.destroy();
}

kernel::Status Connections::start()
{
    // The completion queue has no room for rings of the connections' own.
    if (shares_receives_ && !srq_)
        TRY(create_shared_queue());
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
            perform(connection, step(connection, ActiveLife::Event::abandoned), none);
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

void Connections::work_soon() { work_.queue_now(interface_.work_queue); }

void Connections::run()
{
    if (const unsigned long delay = look())
        // Not if it is queued again already: somebody wants it now.
        work_.queue(interface_.work_queue, delay);
}

unsigned long Connections::look()
{
    kernel::Guard one_at_a_time(look_mutex_);
    // Memory may be reclaimed by writing pages to a peer, by a connection that is made here.
    const kernel::NoIo no_io;
    while (ActiveConnection* connection = next_wanted())
        ask(*connection);

    const unsigned long now = shim_jiffies();
    kernel::PacketQueue ready;
    // One grace period for all that were unpublished.
    bool unpublished = false;
    {
        kernel::Guard guard(interface_.paths.lock);
        for (ActiveConnection& connection : active_) {
            if (connection.post_failed.load()) {
                connection.post_failed.store(false);
                perform(connection, step(connection, ActiveLife::Event::failed), ready);
            }
            if (!std::exchange(connection.release_wanted, false))
                continue;
            connection.release = ActiveConnection::Release::unpublished;
            connection.look_at = now;
            connection.patience_ends = now + kernel::milliseconds(grace_ms);
            unpublished = true;
        }
    }
    if (unpublished)
        shim_rcu_synchronize();
    while (ActiveConnection* connection = next_to_release(now))
        release(*connection, now);

    while (end_replaced()) {}
    PassiveLife::Action action;
    while (PassiveConnection* connection = next_due(action)) {
        perform(*connection, action);
        // Active ones do not wait until all are done, of which a flood of REQs leaves many.
        if (shim_jiffies() != now)
            break;
    }

    unsigned long delay = 0;
    const auto sooner = [&delay](unsigned long in) { delay = delay ? std::min(delay, in) : std::max(in, 1UL); };
    {
        kernel::Guard guard(interface_.paths.lock);
        for (ActiveConnection& connection : active_) {
            const bool releasing = connection.release != ActiveConnection::Release::none;
            if (connection.release_wanted)
                sooner(1);
            else if (connection.life.state() == ActiveLife::State::wanted)
                sooner(kernel::reached(may_ask_at(connection), now) ? 1 : may_ask_at(connection) - now);
            else if (!releasing && connection.life.state() != ActiveLife::State::refused)
                continue;
            else if (!kernel::reached(connection.look_at, now))
                sooner(connection.look_at - now);
            else if (!releasing)
                perform(connection, step(connection, ActiveLife::Event::rested), ready);
        }
        for (PassiveConnection& connection : passive_) {
            if (connection.due != PassiveLife::Action::none)
                sooner(1);
            else if (connection.life.ending())
                sooner(kernel::milliseconds(look_again_ms));
        }
    }
    transmit(ready);
    return delay;
}

// debugfs

kernel::Status Connections::show(seq_file* file)
{
    const auto count = [](const kernel::SharedCounter& counter) {
        return static_cast<unsigned long long>(counter.value());
    };
    shim_seq_printf(file,
                    "asked %llu accepted %llu refused %llu broken %llu taken %llu turned_away %llu malformed %llu\n",
                    count(requests), count(accepted), count(refusals), count(broken), count(taken), count(turned_away),
                    count(malformed));
    struct Row {
        const char* side;
        const char* state;
        Gid peer;
        std::uint32_t qpn;
        unsigned int mtu, queue;
        unsigned long since;
        bool without_checksums;
    };
    std::size_t connections = 0;
    {
        kernel::Guard guard(interface_.paths.lock);
        for ([[maybe_unused]] ActiveConnection& connection : active_)
            ++connections;
        connections += passive_count_;
    }
    Snapshot<Row> rows;
    if (!rows.allocate(connections))
        return kernel::no_memory;
    {
        kernel::Guard guard(interface_.paths.lock);
        for (ActiveConnection& connection : active_)
            rows.add({"active", ActiveLife::name(connection.life.state()), connection.peer.gid(), connection.peer.qpn(),
                      connection.mtu ? connection.mtu - static_cast<unsigned int>(sizeof(Encapsulation)) : 0,
                      connection.waiting.length() + connection.sent.load() - connection.completed.load(),
                      connection.since, connection.without_checksums});
        for (PassiveConnection& connection : passive_)
            rows.add({"passive", PassiveLife::name(connection.life.state()), connection.peer.gid, connection.peer.qpn,
                      max_mtu(), connection.ring.outstanding(), connection.since, connection.without_checksums});
    }
    const unsigned long now = shim_jiffies();
    for (const Row& row : rows)
        shim_seq_printf(file, "%-7s %pI6 qpn 0x%06x state %-11s mtu %5u queue %4u age %lu%s\n", row.side,
                        row.peer.bytes, row.qpn, row.state, row.mtu, row.queue,
                        kernel::elapsed(row.since, now) / kernel::seconds(1), row.without_checksums ? " icrc" : "");
    return {};
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
