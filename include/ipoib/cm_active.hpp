// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The active side of connections (RFC 4755), which sends: one connection to each neighbour that accepts it, and further
// ones for busy flows (FlowBalancer).
#pragma once
#include <cstdint>

#include <ipoib/active_life.hpp>
#include <ipoib/active_release.hpp>
#include <ipoib/address.hpp>
#include <ipoib/path_lock.hpp>
#include <kernel/counter.hpp>
#include <kernel/handle.hpp>
#include <kernel/list.hpp>
#include <kernel/memory.hpp>
#include <kernel/opaque.hpp>
#include <kernel/packet_queue.hpp>
#include <kernel/published.hpp>
#include <kernel/result.hpp>
#include <kernel/work.hpp>
#include <shim/cm.h>
#include <shim/qp.h>
#include <shim/sa.h>

namespace ipoib {

class ActiveConnections;
struct PeerFlows;
class Interface;
class Neighbour;
class Path;
class TxQueue;

class ActiveConnection : public shim_cm_endpoint, public kernel::ListNode<ActiveConnection> {
public:
    // neighbour: nullptr for a further connection. first: the peer's first connection, nullptr if this is it.
    ActiveConnection(ActiveConnections& owner, const shim_cm_endpoint& endpoint, const HwAddr& peer,
                     Neighbour* neighbour, ActiveConnection* first)
        : shim_cm_endpoint(endpoint), owner(owner), peer(peer), further(first), neighbour(neighbour), first(first)
    {
    }
    ~ActiveConnection();
    ActiveConnections& owner;
    const HwAddr peer;
    // Not the peer's first connection, which the neighbour knows; see FlowBalancer.
    const bool further;

    ActiveLife life TA_GUARDED(path_lock);
    ActiveRelease release TA_GUARDED(path_lock);
    // nullptr: abandoned, or a further connection.
    Neighbour* neighbour TA_GUARDED(path_lock);
    // The peer's first connection; nullptr in that one itself, and in a further one that carries no flows any more.
    ActiveConnection* first TA_GUARDED(path_lock);
    // Packets that wait until it is established; then those of flows that are moved to it.
    kernel::PacketQueue waiting TA_GUARDED(path_lock);
    // Time of the last change of state, in jiffies.
    unsigned long since TA_GUARDED(path_lock) = 0;
    // A further connection to the peer failed: the time, in jiffies, until which none is requested.
    unsigned long refused_until TA_GUARDED(path_lock) = 0;
    bool refused TA_GUARDED(path_lock) = false;
    // Consecutive failed attempts; determines the back-off.
    unsigned int refusals TA_GUARDED(path_lock) = 0;
    // Consecutive REJs whose reason is a stale connection.
    unsigned int stales TA_GUARDED(path_lock) = 0;
    // Limits the rate of REQs (a token bucket, as a time in jiffies): each REQ adds request_interval_ms, and is sent
    // when the time is at most max_requests_at_once - 1 intervals after now.
    unsigned long spaced_until TA_GUARDED(path_lock) = shim_jiffies();
    // Time of the next check of the release, or of the next attempt after a back-off, in jiffies.
    unsigned long check_at TA_GUARDED(path_lock) = 0;
    // Deadline for the release's outstanding sends, in jiffies; in the grace period of the release the time from its
    // end on.
    unsigned long deadline TA_GUARDED(path_lock) = 0;
    bool in_grace_period TA_GUARDED(path_lock) = false;

    // Written by service() before the REQ is sent; used by CM callbacks, and by the transmit path while the connection
    // is published. id is destroyed first, which waits for the callbacks.
    kernel::Handle<ib_qp, shim_ib_destroy_qp> qp;
    kernel::Handle<ib_cm_id, shim_ib_destroy_cm_id> id;
    // Sends for the connection, from its REQ to its release.
    TxQueue* queue = nullptr;
    // How packets are distributed over this, the peer's first connection, and further ones; nullptr: over this one.
    // Freed with the queue pair.
    kernel::Owned<PeerFlows> flows;
    // Flows are being moved from or to the connection.
    kernel::Published<bool> moving;
    // Written under the lock before the connection is published. The longest message that the peer accepts, in bytes,
    // encapsulation included.
    unsigned int max_message = 0;
    // The peer accepts messages without checksums.
    bool without_checksums = false;

    // Sends of the send pool: posted, and completed.
    kernel::Published<std::uint32_t> sent, completed;
    // RcSendPool::discount_silent() has discounted sends, and none with this number or a later one has completed since.
    // Written by the poll. The peer's next connection inherits both.
    kernel::Published<bool> silent;
    std::uint32_t silent_to TA_GUARDED(kernel::transmit_poll) = 0;
    std::uint32_t last_slot TA_GUARDED(kernel::transmit_lock) = 0;
    // A post failed. The poster may hold the lock that ending the connection takes, so service() ends it.
    kernel::Published<bool> post_failed;

    // The record that its REQ is sent with.
    sa_path_rec* path() { return path_.get(); }
    // nullptr: the neighbour was removed, or the peer's first connection is gone.
    Path* current_path() const TA_REQUIRES(path_lock);
    // Returns true if the REQ is to be sent after the response to a query: a REQ to a former LID gets no response, and
    // ib_cm repeats it for more than a minute. now: jiffies.
    bool waits_for_path(unsigned long now) const TA_REQUIRES(path_lock);
    // Copies the path's current record. Returns false if the REQ is to wait for a newer one. now: jiffies.
    bool follow_path(class PathTable& paths, unsigned long now) TA_REQUIRES(path_lock);
    // Returns true if the REQ was sent with another LID or SL than those of the path's record.
    bool is_requested_elsewhere(Path& of) TA_REQUIRES(path_lock);
    // Sends that are not completed.
    std::uint32_t outstanding() const { return sent.load() - completed.load(); }
    // The time, in jiffies, from which on the next REQ may be sent.
    unsigned long next_request_at() const TA_REQUIRES(path_lock);
    // Sets check_at to the end of the back-off after the last refusal.
    void back_off() TA_REQUIRES(path_lock);
    // Returns true if the back-off after a refusal is over. now: jiffies.
    bool retry_due(unsigned long now) const TA_REQUIRES(path_lock);
    // Returns what the release does now, which waits for the outstanding sends up to a deadline. now: jiffies.
    ActiveRelease::Action continue_release(unsigned long now) TA_REQUIRES(path_lock);

private:
    kernel::Opaque<sa_path_rec> path_{};
};
// All that the driver allocates for an active connection; the limit is in Documentation/connected-mode.md.
static_assert(sizeof(ActiveConnection) < 1024);

// CONTEXT, if not said otherwise: process.
class ActiveConnections {
public:
    // Packets that wait for one connection.
    static constexpr unsigned int max_waiting = 64;
    // Connections to one port for which ActiveLife::opening() holds. Each takes a queue pair and, without a response,
    // more than a minute; and any host can name any number of queue pairs of a port in ARP.
    static constexpr unsigned int max_opening = 8;
    // Limit of REQs to a peer that ends each connection at once: max_requests_at_once, then one each
    // request_interval_ms.
    static constexpr unsigned int max_requests_at_once = 4, request_interval_ms = 100;
    // A REQ waits so long for a new path record.
    static constexpr unsigned int max_path_wait_ms = 500;
    // The number of consecutive REJs with reason "stale connection" that make a refusal. After each one before, a REQ
    // is sent at once.
    static constexpr unsigned int max_stales = 4;

    ActiveConnections(Interface& interface, kernel::WorkQueue& queue) : work(*this, queue), interface_(interface) {}

    // Sends, queues or drops a packet with its hard header, for a neighbour that accepts connections and whose path is
    // known. Beyond a limit of connections it goes as a datagram. queue: the transmit queue that it is on.
    void send(sk_buff* skb, Neighbour& neighbour, Path& path, TxQueue& queue)
        TA_REQUIRES(kernel::transmit_lock, path_lock);
    // The neighbour is removed.
    void abandon(Neighbour& neighbour) TA_REQUIRES(path_lock);
    // A query of the neighbour's path has ended. The caller transmits the packets in ready after releasing the lock.
    void path_queried(Neighbour& neighbour, kernel::PacketQueue& ready) TA_REQUIRES(path_lock);
    // The connection's queue pair is out of service, or its peer is silent. Returns false if it had ended before.
    bool send_failed(ActiveConnection& connection) TA_REQUIRES(kernel::transmit_poll) TA_EXCLUDES(path_lock);
    // The connection is not needed any more. The caller transmits the packets in ready after releasing the lock.
    void abandon(ActiveConnection& connection, kernel::PacketQueue& ready) TA_REQUIRES(path_lock);
    // All neighbours are removed.
    void abandon_all() TA_REQUIRES(path_lock);
    // Requests a further connection to the peer of this one, which is established. nullptr: no memory, or the limit.
    ActiveConnection* request_another(ActiveConnection& first) TA_REQUIRES(path_lock);

    kernel::List<ActiveConnection>& list() TA_REQUIRES(path_lock) { return list_; }

    kernel::SharedCounter requests_sent, established, requests_failed, disconnected;

    // Sends REQs, releases connections and ends back-offs, as far as they are due. Returns the time until the next call
    // in jiffies, 0: none is needed.
    unsigned long service() TA_EXCLUDES(path_lock);
    kernel::RepeatedWork<&ActiveConnections::service> work;

private:
    static int on_message(shim_cm_endpoint* endpoint, ib_cm_id* id, const shim_cm_message* message);

    void send_requests() TA_EXCLUDES(path_lock);
    // now: jiffies. The caller transmits the packets in ready after releasing the lock.
    void release_due(unsigned long now, kernel::PacketQueue& ready) TA_EXCLUDES(path_lock);
    // Returns delay, or the time until the next check if that is sooner; 0: none is needed.
    unsigned long next_check(unsigned long now, unsigned long delay) TA_REQUIRES(path_lock);

    // Moves the state machine, and counts for the limits.
    ActiveLife::Step step(ActiveConnection& connection, ActiveLife::Event event) TA_REQUIRES(path_lock);
    // The caller transmits the packets in ready after releasing the lock.
    void perform(ActiveConnection& connection, ActiveLife::Step step, kernel::PacketQueue& ready)
        TA_REQUIRES(path_lock);

    void fall_back(ActiveConnection& connection, kernel::PacketQueue& ready) TA_REQUIRES(path_lock);
    void resume(ActiveConnection& connection, kernel::PacketQueue& ready) TA_REQUIRES(path_lock);
    void close(ActiveConnection& connection, kernel::PacketQueue& ready) TA_REQUIRES(path_lock);
    // The connection carries packets, or none any more.
    void publish(ActiveConnection& connection, kernel::PacketQueue& ready) TA_REQUIRES(path_lock);
    void unpublish(ActiveConnection& connection, kernel::PacketQueue& ready) TA_REQUIRES(path_lock);

    // Moves the state machine and performs its action.
    void report(ActiveConnection& connection, ActiveLife::Event event) TA_EXCLUDES(path_lock);
    // A further connection is never in a queue in which its peer has one: then the function fails.
    kernel::Status assign_queue(ActiveConnection& connection) TA_EXCLUDES(path_lock);
    kernel::Status send_request(ActiveConnection& connection) TA_EXCLUDES(path_lock);
    void handle_reply(ActiveConnection& connection, ib_cm_id* id, const shim_cm_message& message)
        TA_EXCLUDES(path_lock);
    void handle_reject(ActiveConnection& connection, unsigned int reason) TA_EXCLUDES(path_lock);
    ActiveConnection* next_to_connect() TA_EXCLUDES(path_lock);
    ActiveConnection* next_to_release(unsigned long now) TA_EXCLUDES(path_lock);
    void release(ActiveConnection& connection, unsigned long now) TA_EXCLUDES(path_lock);
    void destroy(ActiveConnection& connection) TA_EXCLUDES(path_lock);
    // Has service() release the connection.
    void start_release(ActiveConnection& connection, ActiveRelease::Event why) TA_REQUIRES(path_lock);

    Interface& interface_;
    kernel::List<ActiveConnection> list_ TA_GUARDED(path_lock);
    // Entries of the list.
    unsigned int count_ TA_GUARDED(path_lock) = 0;
    // Reasons of REJs that were logged.
    std::uint64_t reasons_logged_ TA_GUARDED(path_lock) = 0;
};

} // namespace ipoib
