// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The passive side of connections (RFC 4755), which receives.
#pragma once
#include <cstdint>

#include <ipoib/address.hpp>
#include <ipoib/cm_endpoint.hpp>
#include <ipoib/passive_life.hpp>
#include <ipoib/rc_receive_ring.hpp>
#include <kernel/list.hpp>
#include <kernel/lock.hpp>
#include <kernel/opaque.hpp>
#include <kernel/rcu.hpp>
#include <kernel/result.hpp>
#include <shim/cm.h>
#include <shim/cq.h>
#include <shim/qp.h>
#include <shim/wr.h>

namespace ipoib {

class Interface;
class PassiveConnections;
class SharedReceiveQueue;

class PassiveConnection : public Endpoint, public kernel::ListNode<PassiveConnection> {
public:
    PassiveConnection(PassiveConnections& owner, Handler handler, Interface& interface)
        : Endpoint(handler), owner(owner), ring(interface)
    {
    }
    PassiveConnections& owner;

    // The requester's port and UD queue pair, as its REQ names them.
    struct Peer {
        Gid gid;
        std::uint32_t lid = 0, qpn = 0;
        bool operator==(const Peer&) const = default;
    };
    // Written before any message can arrive.
    Peer peer;

    // Under the path table's lock.
    PassiveLife life;
    PassiveLife::Action due = PassiveLife::Action::none;
    unsigned long since = 0;
    // Counted in draining_.
    bool counted = false;
    // Our REP offered to accept messages without checksums.
    bool without_checksums = false;

    ib_cm_id* id = nullptr;
    ib_qp* qp = nullptr;
    // Deadline of the present state, in jiffies, while it ends.
    unsigned long deadline = 0;
    // The connection's receive ring, if there is no shared receive queue.
    RcReceiveRing ring;
    kernel::Opaque<shim_send_wr> drain_wr{};

    // Set in any context, read by service().
    kernel::Published<bool> flushed, drained;
    // The peer had a connection when it asked for this one. Written before any message can arrive, then by the poll.
    bool renewed = false;
    // Set by the poll with the first message; service() ends the peer's older connections.
    kernel::Published<bool> proven;
    // Written by the poll: jiffies of the last message, or one before the REQ.
    kernel::Published<unsigned long> last_used;
};

// CONTEXT, if not said otherwise: process.
class PassiveConnections {
public:
    // Connections, with a shared receive queue; without, the module parameter max_nonsrq_conn_qp.
    static constexpr unsigned int max_connections = 8192;
    // Connections that drain at a time; the receive completion queue has entries for these drains.
    static constexpr unsigned int max_draining = 64;
    // Buffers of a connection without a shared receive queue.
    static constexpr unsigned int max_own_buffers = 64;
    // REQs that are accepted at once; then requests_per_second.
    static constexpr unsigned int max_requests_at_once = 1024, requests_per_second = 256;

    explicit PassiveConnections(Interface& interface);

    // REQs for the interface's service are accepted from start() to stop_listening(). CONTEXT: RTNL; the polls run.
    kernel::Status start();
    void stop_listening();
    // Ends all connections. CONTEXT: under the path table's lock.
    void end_all();
    // Ends older connections of peers that use a newer one, and does what connections' state machines want, up to the
    // end of the present jiffy, now.
    void service(unsigned long now);
    // Returns the time until service() is needed again in jiffies, 0: it is not. CONTEXT: under the path table's lock.
    unsigned long next_check();
    // Ends connections that are idle.
    void collect_garbage();
    // All receives of the connection's queue pair were given back. CONTEXT: any.
    void flushed(PassiveConnection& connection);
    // A receive or a drain completed. CONTEXT: the poll.
    void received(const shim_wc* wc);

    // CONTEXT: under the path table's lock.
    kernel::List<PassiveConnection>& list() { return list_; }
    unsigned int count() const { return count_; }

    kernel::SharedCounter taken, turned_away, malformed;

private:
    struct Listener : Endpoint {
        Listener(Handler handler, PassiveConnections& owner) : Endpoint(handler), owner(owner) {}
        PassiveConnections& owner;
    };

    SharedReceiveQueue& receives() const;
    static int on_request(Endpoint& endpoint, ib_cm_id* id, const shim_cm_message& message);
    static int on_message(Endpoint& endpoint, ib_cm_id* id, const shim_cm_message& message);

    kernel::Status accept(ib_cm_id* id, const shim_cm_message& message, shim_cm_reason& reason);
    kernel::Status set_up(PassiveConnection& connection, ib_cm_id* id, std::uint32_t psn);
    void destroy(PassiveConnection& connection);
    // False: no connection has newly replaced older ones.
    bool end_replaced();
    void pause_polls();
    PassiveConnection* next_due(PassiveLife::Action& action);
    void perform(PassiveConnection& connection, PassiveLife::Action action);

    // CONTEXT: under the path table's lock.
    bool admit(const PassiveConnection::Peer& peer, bool& renewed, shim_cm_reason& reason);
    void end_older(PassiveConnection& connection);
    void advance(PassiveConnection& connection, PassiveLife::Event event);

    static kernel::LockClass mutex_class_;

    Interface& interface_;
    Listener listener_;
    ib_cm_id* listen_id_ = nullptr;
    // One REQ at a time. Taken before the path table's lock.
    kernel::Mutex mutex_{mutex_class_, "ipoib_accept"};
    // Under the path table's lock.
    kernel::List<PassiveConnection> list_;
    unsigned int count_ = 0, draining_ = 0;
    bool accepting_ = false;
    // REQs that may still be accepted, and the time when more were added, in jiffies.
    unsigned int requests_left_ = 0;
    unsigned long requests_since_ = 0;
};

} // namespace ipoib
