// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The passive side of connections (RFC 4755), which receives.
#pragma once
#include <cstdint>

#include <ipoib/address.hpp>
#include <ipoib/passive_life.hpp>
#include <ipoib/path_lock.hpp>
#include <ipoib/rc_receive_ring.hpp>
#include <kernel/counter.hpp>
#include <kernel/handle.hpp>
#include <kernel/list.hpp>
#include <kernel/lock.hpp>
#include <kernel/opaque.hpp>
#include <kernel/published.hpp>
#include <kernel/result.hpp>
#include <kernel/work.hpp>
#include <shim/cm.h>
#include <shim/cq.h>
#include <shim/netdevice.h>
#include <shim/qp.h>
#include <shim/wr.h>

namespace ipoib {

class Interface;
class PassiveConnections;
class RxQueue;

class PassiveConnection : public shim_cm_endpoint, public kernel::ListNode<PassiveConnection> {
public:
    // The requester's port and UD queue pair, as its REQ names them.
    struct Peer {
        Gid gid;
        std::uint32_t lid = 0, qpn = 0;
        bool operator==(const Peer&) const = default;
    };

    PassiveConnection(PassiveConnections& owner, const shim_cm_endpoint& endpoint, Interface& interface, RxQueue& queue,
                      const Peer& peer)
        : shim_cm_endpoint(endpoint), owner(owner), queue(queue), peer(peer), requested_at(shim_jiffies()),
          since(requested_at), ring(interface, queue), last_used(requested_at - 1)
    {
    }
    PassiveConnections& owner;
    // Handles what the connection receives.
    RxQueue& queue;
    const Peer peer;
    // Time of the REQ, in jiffies.
    const unsigned long requested_at;

    PassiveLife life TA_GUARDED(path_lock);
    // The state machine's action that service() has not performed yet.
    PassiveLife::Action due TA_GUARDED(path_lock) = PassiveLife::Action::none;
    // Time of the last change of state, in jiffies.
    unsigned long since TA_GUARDED(path_lock);
    // Deadline of the current state, in jiffies, while the connection ends.
    unsigned long deadline TA_GUARDED(path_lock) = 0;

    // Our REP offered to accept messages without checksums. Written before any message can arrive.
    bool without_checksums = false;
    // The connection's receive ring, if there is no shared receive queue. Freed after the queue pair.
    RcReceiveRing ring;
    kernel::Handle<ib_qp, shim_ib_destroy_qp> qp;
    kernel::Handle<ib_cm_id, shim_ib_destroy_cm_id> id;
    kernel::Opaque<shim_send_wr> drain_wr{};

    // Set in any context, read by service().
    kernel::Published<bool> flushed, drained;
    // Set by the poll with the first message; service() ends others of the peer if there are too many.
    kernel::Published<bool> proven;
    // Time of the last message, in jiffies, written by the poll. Before the first, one less than when the REQ came, so
    // that the first message changes it.
    kernel::Published<unsigned long> last_used;
    // A message came, which the peer sent: anyone can send a REQ in its name.
    bool used() const { return last_used.load() != requested_at - 1; }
};

// CONTEXT, if not said otherwise: process.
class PassiveConnections {
public:
    // Connections of one peer, which may distribute its flows over several. One more evicts the one that was idle for
    // longest: the peer probably lost it.
    static constexpr unsigned int max_of_peer = SHIM_MAX_TX_QUEUES;
    // Connections that drain at a time; the receive completion queue has entries for these drains.
    static constexpr unsigned int max_draining = 64;
    // Time from a drain that could not be posted to the destruction of its queue pair.
    static constexpr unsigned int refused_drain_ms = 100;
    // Buffers of a connection without a shared receive queue.
    static constexpr unsigned int max_own_buffers = 64;
    // REQs that are accepted at once; then requests_per_second.
    static constexpr unsigned int max_requests_at_once = 1024, requests_per_second = 256;

    PassiveConnections(Interface& interface, kernel::WorkQueue& queue);

    // REQs for the interface's service are accepted from start() to stop_listening(). CONTEXT: the polls run.
    kernel::Status start() TA_REQUIRES(kernel::rtnl) TA_EXCLUDES(path_lock);
    void stop_listening() TA_REQUIRES(kernel::rtnl) TA_EXCLUDES(mutex_, path_lock);
    void end_all() TA_REQUIRES(path_lock);
    // Ends connections that are idle.
    void collect_garbage() TA_EXCLUDES(path_lock);
    // The queue pair's receives are flushed: "last WQE reached" (IBA 10.3.1), or all receives of the connection's own
    // ring completed. CONTEXT: any.
    void flushed(PassiveConnection& connection);
    // A receive or a drain completed in the queue.
    void received(const shim_wc* wc, RxQueue& queue) TA_REQUIRES(kernel::receive_poll);

    kernel::List<PassiveConnection>& list() TA_REQUIRES(path_lock) { return list_; }
    unsigned int count() const TA_REQUIRES(path_lock) { return count_; }

    kernel::SharedCounter accepted, rejected;

    // Ends connections of peers that use too many, and does what connections' state machines want, until the
    // current jiffy ends. Returns the time until the next call in jiffies, 0: none is needed.
    unsigned long service() TA_EXCLUDES(path_lock);
    kernel::RepeatedWork<&PassiveConnections::service> work;

private:
    struct Listener : shim_cm_endpoint {
        PassiveConnections& owner;
    };

    static int on_request(shim_cm_endpoint* endpoint, ib_cm_id* id, const shim_cm_message* message);
    static int on_message(shim_cm_endpoint* endpoint, ib_cm_id* id, const shim_cm_message* message);

    unsigned long next_check() TA_EXCLUDES(path_lock);

    kernel::Status accept(ib_cm_id* id, const shim_cm_message& message, shim_cm_reason& reason)
        TA_EXCLUDES(mutex_, path_lock);
    kernel::Status set_up(PassiveConnection& connection, ib_cm_id* id, std::uint32_t psn) TA_REQUIRES(mutex_);
    // Lists the connection, which takes the identifier, and sends the REP.
    void reply(PassiveConnection& connection, ib_cm_id* id, std::uint32_t psn) TA_REQUIRES(mutex_)
        TA_EXCLUDES(path_lock);
    void destroy(PassiveConnection& connection) TA_EXCLUDES(path_lock);
    // Ends connections of one peer that uses a new one, if there are too many. Returns false if there is no such peer.
    bool check_proven() TA_EXCLUDES(path_lock);
    void destroy_undrained(PassiveConnection& connection);
    PassiveConnection* next_due(PassiveLife::Action& action) TA_EXCLUDES(path_lock);
    void perform(PassiveConnection& connection, PassiveLife::Action action) TA_EXCLUDES(path_lock);

    bool admit(const PassiveConnection::Peer& peer, shim_cm_reason& reason) TA_REQUIRES(path_lock);
    // Returns the receive queues, as bits, that have more of the peer's connections than others.
    unsigned int avoided_queues(const PassiveConnection::Peer& peer) TA_EXCLUDES(path_lock);
    void end_exceeding(const PassiveConnection::Peer& peer) TA_REQUIRES(path_lock);
    // Moves the state machine; service() performs its action.
    void step(PassiveConnection& connection, PassiveLife::Event event) TA_REQUIRES(path_lock);

    static kernel::LockClass mutex_class_;

    Interface& interface_;
    Listener listener_;
    kernel::Handle<ib_cm_id, shim_ib_destroy_cm_id> listen_id_ TA_GUARDED(kernel::rtnl);
    // One REQ at a time.
    kernel::Mutex mutex_ TA_ACQUIRED_BEFORE(path_lock){mutex_class_, "ipoib_accept"};
    kernel::List<PassiveConnection> list_ TA_GUARDED(path_lock);
    unsigned int count_ TA_GUARDED(path_lock) = 0;
    // Connections in state draining.
    unsigned int draining_ TA_GUARDED(path_lock) = 0;
    bool accepting_ TA_GUARDED(path_lock) = false;
    // REQs that may still be accepted, and the time when more were added, in jiffies.
    unsigned int requests_left_ TA_GUARDED(path_lock) = 0;
    unsigned long requests_since_ TA_GUARDED(path_lock) = 0;
};

} // namespace ipoib
