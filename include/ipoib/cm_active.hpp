// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The active side of connections (RFC 4755), which sends: one for each neighbour that accepts them.
#pragma once
#include <cstdint>

#include <ipoib/active_life.hpp>
#include <ipoib/address.hpp>
#include <ipoib/cm_endpoint.hpp>
#include <kernel/list.hpp>
#include <kernel/opaque.hpp>
#include <kernel/packet_queue.hpp>
#include <kernel/rcu.hpp>
#include <kernel/result.hpp>
#include <shim/cm.h>
#include <shim/qp.h>
#include <shim/sa.h>

namespace ipoib {

class ActiveConnections;
class Interface;
class Neighbour;
class Path;

class ActiveConnection : public Endpoint, public kernel::ListNode<ActiveConnection> {
public:
    ActiveConnection(ActiveConnections& owner, Handler handler, Neighbour& neighbour, const HwAddr& peer)
        : Endpoint(handler), owner(owner), neighbour(&neighbour), peer(peer)
    {
    }
    ActiveConnections& owner;

    // Under the path table's lock.
    ActiveLife life;
    // nullptr: abandoned.
    Neighbour* neighbour;
    const HwAddr peer;
    kernel::PacketQueue waiting;
    // Time of the last change of state, in jiffies.
    unsigned long since = 0;
    // Consecutive failed attempts; determines the back-off.
    unsigned int refusals = 0;
    // Consecutive REJs whose reason is a stale connection.
    unsigned int stales = 0;
    // Limits the rate of REQs: each adds an interval, and it may be max_requests_at_once - 1 intervals ahead of now.
    unsigned long spaced_until = 0;
    bool release_wanted = false;
    bool broken = false;

    // Used by the work queue; written before the connection is published.
    ib_cm_id* id = nullptr;
    ib_qp* qp = nullptr;
    // The longest message that the peer accepts, encapsulation included.
    unsigned int mtu = 0;
    // The peer accepts messages without checksums.
    bool without_checksums = false;
    // Time of the next check, and deadline for outstanding sends while it is released, in jiffies.
    unsigned long check_at = 0, deadline = 0;
    enum class Release { none, unpublished, in_error } release = Release::none;

    // Sends of the send pool: posted under the transmit lock, and completed.
    kernel::Published<std::uint32_t> sent, completed;
    std::uint32_t last_slot = 0;
    // A post failed. The poster may hold the lock that ending the connection takes, so service() ends it.
    kernel::Published<bool> post_failed;

    sa_path_rec* path() { return path_.get(); }

private:
    kernel::Opaque<sa_path_rec> path_{};
};

// CONTEXT, if not said otherwise: process.
class ActiveConnections {
public:
    // Packets that wait for one connection.
    static constexpr unsigned int max_waiting = 64;
    // Limit of REQs to one peer, whose connections end at once: max_requests_at_once, then one each interval.
    static constexpr unsigned int max_requests_at_once = 4, request_interval_ms = 100;
    // How long sends of a connection that is not needed any more may still arrive.
    static constexpr unsigned int grace_ms = 200;

    explicit ActiveConnections(Interface& interface) : interface_(interface) {}

    // Sends, queues or drops a packet with its hard header, for a neighbour that accepts connections and whose path is
    // known. CONTEXT: under the transmit lock and the path table's lock.
    void send(sk_buff* skb, Neighbour& neighbour, Path& path);
    // The neighbour is removed. CONTEXT: under the path table's lock.
    void abandon(Neighbour& neighbour);
    // All neighbours are removed. CONTEXT: under the path table's lock.
    void abandon_all();
    // The connection's queue pair is out of service. CONTEXT: the poll.
    void send_failed(ActiveConnection& connection);
    // Sends the REQs that are due.
    void send_requests();
    // Releases broken and abandoned connections, as far as they are due. now: jiffies. The caller transmits the packets
    // in ready.
    void release_due(unsigned long now, kernel::PacketQueue& ready);
    // Ends back-offs. Returns the time until service() is needed again in jiffies, 0: it is not. The caller transmits
    // the packets in ready after releasing the lock. CONTEXT: under the path table's lock.
    unsigned long next_check(unsigned long now, kernel::PacketQueue& ready);
    // Transmits packets anew that waited.
    void transmit(kernel::PacketQueue& ready);

    // CONTEXT: under the path table's lock.
    kernel::List<ActiveConnection>& list() { return list_; }

    kernel::SharedCounter requests, accepted, refusals, broken;

private:
    static int on_message(Endpoint& endpoint, ib_cm_id* id, const shim_cm_message& message);

    // CONTEXT: under the path table's lock.
    ActiveConnection* connection_of(Neighbour& neighbour, Path& path);
    ActiveLife::Step step(ActiveConnection& connection, ActiveLife::Event event);
    // The caller transmits the packets in ready after releasing the lock.
    void perform(ActiveConnection& connection, ActiveLife::Step step, kernel::PacketQueue& ready);

    // Takes the lock.
    void advance(ActiveConnection& connection, ActiveLife::Event event);
    void connect(ActiveConnection& connection);
    kernel::Status send_request(ActiveConnection& connection);
    void handle_reply(ActiveConnection& connection, ib_cm_id* id, const shim_cm_message& message);
    void handle_reject(ActiveConnection& connection, unsigned int reason);
    // The time, in jiffies, from which on its next REQ may be sent.
    static unsigned long next_request_at(const ActiveConnection& connection);
    ActiveConnection* next_to_connect();
    ActiveConnection* next_to_release(unsigned long now);
    void release(ActiveConnection& connection, unsigned long now);

    Interface& interface_;
    // Under the path table's lock.
    kernel::List<ActiveConnection> list_;
    // Reasons of REJs that were logged.
    std::uint64_t reasons_logged_ = 0;
};

} // namespace ipoib
