// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Paths, one for each GID that we send to, and neighbours, one for each hardware address behind a path. A neighbour
// caches its path's address handle, so that sending takes one look-up, no lock and no reference count.
#pragma once
#include <cstdint>

#include <ipoib/address.hpp>
#include <ipoib/path_life.hpp>
#include <ipoib/path_lock.hpp>
#include <ipoib/reaper.hpp>
#include <kernel/counter.hpp>
#include <kernel/hash_table.hpp>
#include <kernel/opaque.hpp>
#include <kernel/packet_queue.hpp>
#include <kernel/published.hpp>
#include <shim/sa.h>

namespace ipoib {

class ActiveConnection;
class Interface;
class Path;
class TxQueue;

// A destination of unicast packets: one for each hardware address. The transmit path reads ah and connection under RCU.
class Neighbour : public kernel::Hashed<HwAddr>, public Retirable, public kernel::ListNode<Neighbour> {
public:
    Neighbour(const HwAddr& address, Path& path) : Hashed(address), Retirable(free_retired<Neighbour>), path(path) {}
    Path& path;
    // nullptr: packets are sent over connection, or the path must be queried.
    kernel::Published<ib_ah*> ah;
    // nullptr unless established.
    kernel::Published<ActiveConnection*> connection;
    // In jiffies.
    kernel::Published<unsigned long> last_used;
    // The connection, in any state.
    ActiveConnection* attempt TA_GUARDED(path_lock) = nullptr;
    // The peer refused a connection: packets go as datagrams until the back-off ends.
    bool refused TA_GUARDED(path_lock) = false;
};

// The path to a port: one for each GID.
class Path : public kernel::Hashed<Gid>, public Retirable, public kernel::ListNode<Path> {
public:
    explicit Path(const Gid& gid) : Hashed(gid), Retirable(free_retired<Path>) {}

    class PathTable* table = nullptr;
    PathLife life TA_GUARDED(path_lock);
    // The SA's record; valid if the path is usable.
    sa_path_rec* record() TA_REQUIRES(path_lock) { return record_.get(); }
    kernel::List<Neighbour> neighbours TA_GUARDED(path_lock);
    // Connections to neighbours for which ActiveLife::opening() holds.
    unsigned int opening TA_GUARDED(path_lock) = 0;
    // Counted in idle_count_.
    bool idle TA_GUARDED(path_lock) = false;
    ib_sa_query* query TA_GUARDED(path_lock) = nullptr;
    int query_id TA_GUARDED(path_lock) = 0;
    // Under the lock while the path is in the table.
    kernel::Owned<AddressHandle> handle;
    kernel::PacketQueue waiting;
    // handle's AH for the transmit path; nullptr also if the path was invalidated.
    kernel::Published<ib_ah*> ah;
    // In jiffies.
    kernel::Published<unsigned long> last_used;

private:
    kernel::Opaque<sa_path_rec> record_ TA_GUARDED(path_lock){};
};

class PathTable {
public:
    // Packets that wait for one path.
    static constexpr unsigned int max_waiting = 64;
    // The number of unicast LIDs of a subnet (IBA 4.1.3). Remote hosts choose the addresses that ARP answers go to, so
    // paths, neighbours and pending queries need limits.
    static constexpr unsigned int max_paths = 0xbfff;
    static constexpr unsigned int max_neighbours = 0xbfff;
    static constexpr unsigned int max_queries = 1024;
    // Unused paths that are kept: without a subnet manager their records could not be queried again.
    static constexpr unsigned int max_idle = 8192;

    explicit PathTable(Interface& interface) : interface_(interface) {}

    // destroy() also undoes a create() that failed. CONTEXT: process.
    kernel::Status create();
    void destroy();

    // Sends the packet, which begins with its hard header, to a unicast address; consumes it. queue: the transmit queue
    // that it is on.
    void send(sk_buff* skb, const HwAddr& to, TxQueue& queue) TA_REQUIRES(kernel::transmit_lock) TA_EXCLUDES(path_lock);
    // Returns the number of the transmit queue for a packet to this address; -1: any. CONTEXT: any.
    int select_queue(const HwAddr& to, sk_buff* skb);
    // The same as send() for ARP and RARP, which create no neighbour. CONTEXT: the first transmit queue.
    void send_address_resolution(sk_buff* skb, const HwAddr& to) TA_REQUIRES(kernel::transmit_lock)
        TA_EXCLUDES(path_lock);

    // Packets are accepted between start() and flush(). CONTEXT: process.
    void start() TA_EXCLUDES(path_lock);
    // Removes all paths and neighbours, and waits for pending queries.
    void flush() TA_REQUIRES(kernel::rtnl) TA_EXCLUDES(path_lock);
    // Every path is queried again when it is next used, or at once if packets wait for it.
    void invalidate_all() TA_EXCLUDES(path_lock);
    // Removes neighbours that were not used for more than idle jiffies, and unusable paths; drops packets that wait for
    // too long, and queries paths that others wait for. Unused paths are queried again when they are used; max_idle of
    // them are kept.
    void collect_garbage(unsigned long idle) TA_EXCLUDES(path_lock);
    // Calls visit(Path&) for each path, under the lock.
    template <class Visit>
    void for_each(Visit visit) TA_EXCLUDES(path_lock)
    {
        Guard guard(*this);
        for (Path& path : all_)
            visit(path);
    }

    // Sends a query if the path's record is stale, and there are fewer than max_queries.
    void confirm(Path& path) TA_REQUIRES(path_lock);
    // Sets a neighbour's ah according to the mode and its connection.
    void publish(Neighbour& neighbour) TA_REQUIRES(path_lock);
    // Sends a packet, with its hard header, as a datagram. CONTEXT: under an RcuGuard or the lock, which keeps the AH.
    void send_datagram(sk_buff* skb, const HwAddr& to, ib_ah* ah, TxQueue& queue) TA_REQUIRES(kernel::transmit_lock);

    // Returns false, and counts, if the limit is reached. CONTEXT: any.
    bool allows(unsigned int count, unsigned int max, const char* what);

    // Packets that could not be sent.
    kernel::SharedCounter dropped;
    kernel::SharedCounter queries, failures;
    // Times that a limit of paths, neighbours, queries or active connections was reached.
    kernel::SharedCounter limits_reached;

    // Holds path_lock: the lock of this table.
    class [[nodiscard]] TA_SCOPED Guard {
    public:
        explicit Guard(PathTable& table) TA_ACQUIRE(path_lock) : guard_(table.lock_) {}
        ~Guard() TA_RELEASE() {}
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;

    private:
        kernel::Guard<kernel::SpinLock> guard_;
    };

private:
    void complete_query(Path& path, int status, sa_path_rec* record) TA_EXCLUDES(path_lock);

    void send_slowly(sk_buff* skb, const HwAddr& to, bool make_neighbour, TxQueue& queue)
        TA_REQUIRES(kernel::transmit_lock) TA_EXCLUDES(path_lock);
    Path* path_to(const Gid& gid) TA_REQUIRES(path_lock);
    Neighbour* neighbour_at(const HwAddr& address, Path& path) TA_REQUIRES(path_lock);
    PathLife::Step step(Path& path, PathLife::Event event) TA_REQUIRES(path_lock);
    // Sends a query if the path's state machine says so. Returns false if packets for the path must be dropped; true
    // also if there is currently no SA: then they wait.
    bool request(Path& path) TA_REQUIRES(path_lock);
    bool send_query(Path& path) TA_REQUIRES(path_lock);
    // Moves the state machine after a query that brought no record.
    PathLife::Action finish_query(Path& path, PathLife::Event event) TA_REQUIRES(path_lock);
    // Publishes the path's AH to the path and its neighbours.
    void publish(Path& path) TA_REQUIRES(path_lock);
    // Replaces the path's AH (nullptr: none), publishes it, and returns the former one.
    kernel::Owned<AddressHandle> set_address_handle(Path& path, kernel::Owned<AddressHandle> handle)
        TA_REQUIRES(path_lock);
    void remove(Neighbour& neighbour) TA_REQUIRES(path_lock);
    void remove_neighbours(Path& path) TA_REQUIRES(path_lock);
    void set_idle(Path& path, bool idle) TA_REQUIRES(path_lock);
    // The path is queried again when it is next used.
    void invalidate(Path& path, PathLife::Event why) TA_REQUIRES(path_lock);
    void unlink(Path& path) TA_REQUIRES(path_lock);
    void release(Path& path);

    static kernel::LockClass lock_class_;

    Interface& interface_;
    kernel::SpinLock lock_{lock_class_, "ipoib_paths"};
    kernel::HashTable<HwAddr, Neighbour> neighbours_;
    kernel::HashTable<Gid, Path> paths_;
    kernel::List<Path> all_ TA_GUARDED(path_lock);
    unsigned int path_count_ TA_GUARDED(path_lock) = 0;
    unsigned int neighbour_count_ TA_GUARDED(path_lock) = 0;
    unsigned int idle_count_ TA_GUARDED(path_lock) = 0;
    bool accepting_ TA_GUARDED(path_lock) = false;
    unsigned int open_queries_ TA_GUARDED(path_lock) = 0;
    bool waiting_for_queries_ TA_GUARDED(path_lock) = false;
    kernel::Completion no_open_queries_;
};

} // namespace ipoib
