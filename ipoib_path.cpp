// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Path records and neighbours. A packet to a known neighbour, or an ARP packet on a known path, needs one lookup under
// RCU; all else takes the table's lock.
#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <ipoib/path.hpp>
#include <ipoib/trace.hpp>
#include <kernel/log.hpp>
#include <kernel/rcu.hpp>
#include <kernel/time.hpp>

namespace ipoib {

constinit kernel::LockClass PathTable::lock_class_;

namespace {

bool goes_by_datagram(const Settings& settings, const Neighbour& neighbour) TA_REQUIRES(path_lock)
{
    return !settings.connected() || !neighbour.key().connected_capable() || neighbour.refused;
}

} // namespace

kernel::Status PathTable::create()
{
    TRY(neighbours_.create());
    return paths_.create();
}

void PathTable::destroy()
{
    paths_.destroy();
    neighbours_.destroy();
}

void PathTable::send(sk_buff* skb, const HwAddr& to, TxQueue& queue)
{
    kernel::RcuGuard rcu;
    if (Neighbour* neighbour = neighbours_.find(rcu, to)) [[likely]] {
        if (ib_ah* ah = neighbour->ah.load()) [[likely]] {
            kernel::touch(neighbour->last_used, shim_jiffies());
            send_datagram(skb, to, ah, queue);
            return;
        }
        if (ActiveConnection* connection = neighbour->connection.load()) {
            kernel::touch(neighbour->last_used, shim_jiffies());
            interface_.connections.flows.send(*connection, skb, queue);
            return;
        }
    }
    send_slowly(skb, to, true, queue);
}

int PathTable::select_queue(const HwAddr& to, sk_buff* skb)
{
    // Several queues send datagrams: datagram mode, without connections.
    if (interface_.queues.senders() != 1)
        return interface_.queues.select_sender(skb);
    kernel::RcuGuard rcu;
    Neighbour* const neighbour = neighbours_.find(rcu, to);
    ActiveConnection* const connection = neighbour && !neighbour->ah.load() ? neighbour->connection.load() : nullptr;
    // Datagrams, and what sets a path or a connection up, go by the first queue.
    return connection ? static_cast<int>(interface_.connections.flows.select_queue(*connection, skb)) : 0;
}

void PathTable::send_address_resolution(sk_buff* skb, const HwAddr& to)
{
    kernel::RcuGuard rcu;
    if (Path* path = paths_.find(rcu, to.gid())) {
        if (ib_ah* ah = path->ah.load()) {
            kernel::touch(path->last_used, shim_jiffies());
            send_datagram(skb, to, ah, interface_.tx[0]);
            return;
        }
    }
    send_slowly(skb, to, false, interface_.tx[0]);
}

void PathTable::send_slowly(sk_buff* skb, const HwAddr& to, bool make_neighbour, TxQueue& queue)
{
    Guard guard(*this);
    Path* path = accepting_ ? path_to(to.gid()) : nullptr;
    Neighbour* neighbour = path && make_neighbour ? neighbour_at(to, *path) : nullptr;
    if (!path || (make_neighbour && !neighbour)) {
        dropped.add();
        shim_kfree_skb_reason(skb, accepting_ ? SHIM_DROP_NEIGH_CREATEFAIL : SHIM_DROP_DEV_READY);
        return;
    }
    kernel::touch(path->last_used, shim_jiffies());
    set_idle(*path, false);
    if (neighbour)
        kernel::touch(neighbour->last_used, shim_jiffies());
    dropped.add(path->waiting.drop_overdue(SHIM_DROP_NEIGH_FAILED));
    const bool requested = request(*path);
    if (path->life.usable()) {
        if (neighbour && !goes_by_datagram(interface_.settings, *neighbour))
            interface_.connections.active.send(skb, *neighbour, *path, queue);
        else
            send_datagram(skb, to, path->handle->get(), queue);
    } else if (!requested || !path->waiting.push(skb, max_waiting)) {
        if (requested && path->waiting.length() >= max_waiting)
            log_warning(interface_.dev(), "queue length limit %u. Packet drop.", max_waiting);
        dropped.add();
        shim_kfree_skb_reason(skb, requested ? SHIM_DROP_NEIGH_QUEUEFULL : SHIM_DROP_NEIGH_FAILED);
    }
}

void PathTable::send_datagram(sk_buff* skb, const HwAddr& to, ib_ah* ah, TxQueue& queue)
{
    if (queue.index() != 0 && queue.index() >= interface_.queues.senders()) [[unlikely]] {
        interface_.requeuer.push(skb);
        return;
    }
    // The address is in the packet's header.
    const std::uint32_t qpn = to.qpn();
    shim_skb_pull(skb, sizeof(HwAddr));
    queue.ring.send(skb, ah, qpn);
}

void PathTable::publish(Neighbour& neighbour)
{
    neighbour.ah.store(goes_by_datagram(interface_.settings, neighbour) ? neighbour.path.ah.load() : nullptr);
}

bool PathTable::allows(unsigned int count, unsigned int max, const char* what)
{
    if (count < max) [[likely]]
        return true;
    limits_reached.add();
    log_warning(interface_.dev(), "limit of %u %s reached", max, what);
    return false;
}

Path* PathTable::path_to(const Gid& gid)
{
    if (Path* path = paths_.find(gid))
        return path;
    // A new path is queried at once.
    if (!allows(path_count_, max_paths, "paths") || !allows(open_queries_, max_queries, "path record queries"))
        return nullptr;
    auto path = kernel::make_owned_atomic<Path>(gid);
    if (!path || !paths_.insert(*path).ok())
        return nullptr;
    path->table = this;
    all_.push_back(*path);
    ++path_count_;
    return path.release();
}

Neighbour* PathTable::neighbour_at(const HwAddr& address, Path& path)
{
    if (Neighbour* neighbour = neighbours_.find(address))
        return neighbour;
    if (!allows(neighbour_count_, max_neighbours, "neighbours"))
        return nullptr;
    auto neighbour = kernel::make_owned_atomic<Neighbour>(address, path);
    if (!neighbour)
        return nullptr;
    publish(*neighbour);
    if (!neighbours_.insert(*neighbour).ok())
        return nullptr;
    path.neighbours.push_back(*neighbour);
    ++neighbour_count_;
    return neighbour.release();
}

PathLife::Step PathTable::step(Path& path, PathLife::Event event)
{
    return traced_step(interface_.dev(), SHIM_TRACE_PATH, path.key(), path.life, event);
}

bool PathTable::request(Path& path)
{
    if (!path.life.settled() && !allows(open_queries_, max_queries, "path record queries"))
        return path.life.usable();
    return step(path, PathLife::Event::needed).action != PathLife::Action::query || send_query(path);
}

void PathTable::confirm(Path& path)
{
    if (open_queries_ < max_queries)
        (void)request(path);
}

bool PathTable::send_query(Path& path)
{
    const shim_path_query request{
        .dgid = path.key().native(),
        .sgid = interface_.identity.gid().native(),
        .pkey = interface_.identity.pkey().value(),
        .traffic_class = interface_.link.traffic_class(),
    };
    const auto complete = [](int status, sa_path_rec* record, void* context) {
        auto& queried = *static_cast<Path*>(context);
        queried.table->complete_query(queried, status, record);
    };
    queries.add();
    // A response that comes at once waits for the lock.
    const int id = shim_helper_sa_path_query(interface_.ca(), interface_.identity.port(), &request,
                                             path.life.limit_s() * 1000, complete, &path, &path.query);
    if (id == kernel::try_again) {
        // The subnet manager is changing. The next packet triggers the query; packets wait meanwhile.
        (void)step(path, PathLife::Event::unsent);
        return true;
    }
    if (id < 0) {
        log_warning(interface_.dev(), "ib_sa_path_rec_get failed: %d", id);
        (void)finish_query(path, PathLife::Event::failed);
        return path.life.usable();
    }
    path.query_id = id;
    ++open_queries_;
    return true;
}

PathLife::Action PathTable::finish_query(Path& path, PathLife::Event event)
{
    const PathLife::Action action = step(path, event).action;
    switch (action) {
    case PathLife::Action::query:
        log_debug(interface_.dev(), "no response to the query of the path to %pI6; sending another one",
                  path.key().bytes);
        (void)send_query(path);
        break;
    case PathLife::Action::keep:
        failures.add();
        publish(path);
        break;
    case PathLife::Action::drop_waiting:
        failures.add();
        interface_.reaper.retire(set_address_handle(path, {}));
        dropped.add(path.waiting.drop_all(SHIM_DROP_NEIGH_FAILED));
        break;
    case PathLife::Action::none:
    case PathLife::Action::cancel:
    case PathLife::Action::send_waiting:
        break;
    }
    return action;
}

void PathTable::complete_query(Path& path, int status, sa_path_rec* record)
{
    kernel::Owned<AddressHandle> handle;
    if (status == 0) {
        auto made = AddressHandle::own(
            shim_helper_create_ah_from_path(interface_.queues.pd(), interface_.identity.port(), record));
        status = made.status().code();
        handle = made.take();
    }
    kernel::PacketQueue ready;
    {
        Guard guard(*this);
        path.query = nullptr;
        // A refusal from before a fabric event is no answer: the query is sent anew, as if cancelled in time.
        const bool unanswered = status == kernel::timed_out || status == kernel::interrupted || path.life.outdated();
        if (handle) {
            (void)step(path, PathLife::Event::answered);
            shim_path_copy(path.record(), record);
            interface_.reaper.retire(set_address_handle(path, std::move(handle)));
            ready.take(path.waiting);
        } else if (finish_query(path,
                                unanswered && accepting_ ? PathLife::Event::unanswered : PathLife::Event::failed) ==
                   PathLife::Action::drop_waiting) {
            log_debug(interface_.dev(), "no path to %pI6: status %d", path.key().bytes, status);
            remove_neighbours(path);
        }
        for (Neighbour& neighbour : path.neighbours)
            interface_.connections.active.path_queried(neighbour, ready);
    }
    interface_.resubmit(ready);

    Guard guard(*this);
    if (--open_queries_ == 0 && waiting_for_queries_)
        no_open_queries_.complete();
}

kernel::Owned<AddressHandle> PathTable::set_address_handle(Path& path, kernel::Owned<AddressHandle> handle)
{
    std::swap(path.handle, handle);
    publish(path);
    return handle;
}

void PathTable::publish(Path& path)
{
    path.ah.store(path.handle && path.life.settled() ? path.handle->get() : nullptr);
    for (Neighbour& neighbour : path.neighbours)
        publish(neighbour);
}

void PathTable::remove(Neighbour& neighbour)
{
    interface_.connections.active.abandon(neighbour);
    neighbours_.remove(neighbour);
    --neighbour_count_;
    static_cast<kernel::ListNode<Neighbour>&>(neighbour).unlink();
    interface_.reaper.retire(kernel::Owned<Neighbour>(&neighbour));
}

void PathTable::remove_neighbours(Path& path)
{
    for (Neighbour& neighbour : path.neighbours)
        remove(neighbour);
}

void PathTable::set_idle(Path& path, bool idle)
{
    if (path.idle == idle)
        return;
    path.idle = idle;
    if (idle)
        ++idle_count_;
    else
        --idle_count_;
}

void PathTable::unlink(Path& path)
{
    remove_neighbours(path);
    set_idle(path, false);
    paths_.remove(path);
    --path_count_;
    static_cast<kernel::ListNode<Path>&>(path).unlink();
}

void PathTable::release(Path& path)
{
    dropped.add(path.waiting.drop_all(SHIM_DROP_NEIGH_DEAD));
    interface_.reaper.retire(std::move(path.handle));
    interface_.reaper.retire(kernel::Owned<Path>(&path));
}

void PathTable::start()
{
    Guard guard(*this);
    accepting_ = true;
}

void PathTable::flush()
{
    kernel::List<Path> gone;
    bool wait = false;
    {
        Guard guard(*this);
        accepting_ = false;
        for (Path& path : all_) {
            unlink(path);
            gone.push_back(path);
            // The query completes with -EINTR, or its completion waits for this lock. The path stays allocated until
            // release() below: collect_garbage() removes no path with a pending query.
            if (path.query)
                shim_ib_sa_cancel_query(path.query_id, path.query);
        }
        wait = waiting_for_queries_ = open_queries_ != 0;
    }
    if (wait)
        no_open_queries_.wait();
    {
        // complete_query() completes the wait under the lock, and has released it now.
        Guard guard(*this);
        waiting_for_queries_ = false;
    }
    while (Path* path = gone.pop_front())
        release(*path);
}

void PathTable::invalidate(Path& path, PathLife::Event why)
{
    if (step(path, why).action == PathLife::Action::cancel)
        shim_ib_sa_cancel_query(path.query_id, path.query);
    // Packets continue to use the AH, through send_slowly(), which sends a query.
    path.ah.store(nullptr);
    for (Neighbour& neighbour : path.neighbours)
        neighbour.ah.store(nullptr);
}

void PathTable::invalidate_all()
{
    Guard guard(*this);
    for (Path& path : all_) {
        invalidate(path, PathLife::Event::invalidated);
        // There was no SA when these packets came.
        if (!path.waiting.empty())
            (void)request(path);
    }
}

void PathTable::collect_garbage(unsigned long idle)
{
    const unsigned long now = shim_jiffies();
    const auto unused = [now, idle](auto& object) {
        return kernel::elapsed(object.last_used.load_relaxed(), now) > idle;
    };
    kernel::List<Path> gone;
    const auto end = [this, &gone](Path& path) TA_REQUIRES(path_lock) {
        unlink(path);
        gone.push_back(path);
    };
    {
        Guard guard(*this);
        for (Path& path : all_) {
            for (Neighbour& neighbour : path.neighbours)
                if (unused(neighbour))
                    remove(neighbour);
            dropped.add(path.waiting.drop_overdue(SHIM_DROP_NEIGH_FAILED));
            // No query could be sent when these packets came.
            if (!path.waiting.empty())
                (void)request(path);
            if (path.life.unconfirmed())
                invalidate(path, PathLife::Event::aged);
            if (!path.neighbours.empty() || path.idle || path.life.query_pending())
                continue;
            // A failed path is removed, unless packets wait for another query.
            if (!path.life.usable()) {
                if (path.waiting.empty())
                    end(path);
            } else if (unused(path)) {
                // Moves it to the end of the list, so that the longest unused path is evicted first.
                static_cast<kernel::ListNode<Path>&>(path).unlink();
                all_.push_back(path);
                set_idle(path, true);
                invalidate(path, PathLife::Event::aged);
            }
        }
        for (Path& path : all_) {
            if (idle_count_ <= max_idle)
                break;
            if (path.idle)
                end(path);
        }
    }
    while (Path* path = gone.pop_front())
        release(*path);
}

} // namespace ipoib
