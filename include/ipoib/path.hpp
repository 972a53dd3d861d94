// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Paths, one for each GID that we send to, and neighbours, one for each hardware address behind a path. A neighbour
// caches its path's address handle, so that sending takes one look-up, no lock and no reference count.
#pragma once
#include <cstdint>

#include <ipoib/address.hpp>
#include <ipoib/path_life.hpp>
#include <ipoib/reaper.hpp>
#include <kernel/hash_table.hpp>
#include <kernel/opaque.hpp>
#include <kernel/packet_queue.hpp>
#include <kernel/rcu.hpp>
#include <shim/debugfs.h>
#include <shim/sa.h>

namespace ipoib {

class ActiveConnection;
class Interface;
class Path;

// A destination of unicast packets: one for each hardware address. The transmit path reads ah and connection under RCU.
class Neighbour : public kernel::Hashed<HwAddr>, public Retirable, public kernel::ListNode<Neighbour> {
public:
    Neighbour(const HwAddr& address, Path& path)
        : Hashed(address), Retirable(free_retired<Neighbour>, Until::grace_period), path(path)
    {
    }
    Path& path;
    // nullptr: packets are sent over connection, or the path must be queried.
    kernel::Published<ib_ah*> ah;
    // nullptr unless established.
    kernel::Published<ActiveConnection*> connection;
    kernel::Published<unsigned long> last_used;
    // Under PathTable's lock. attempt: the connection, in any state. refused: the peer refused one; packets go as
    // datagrams until the back-off ends.
    ActiveConnection* attempt = nullptr;
    bool refused = false;
};

// The path to a port: one for each GID.
class Path : public kernel::Hashed<Gid>, public Retirable, public kernel::ListNode<Path> {
public:
    explicit Path(const Gid& gid) : Hashed(gid), Retirable(free_retired<Path>, Until::grace_period) {}

    // Under PathTable's lock, except for the hash node, ah and last_used.
    PathLife life;
    // The SA's record; valid if the path is usable.
    sa_path_rec* record() { return record_.get(); }
    kernel::Owned<AddressHandle> handle;
    kernel::List<Neighbour> neighbours;
    kernel::PacketQueue waiting;
    // Counted in idle_count_.
    bool idle = false;
    ib_sa_query* query = nullptr;
    int query_id = 0;
    class PathTable* table = nullptr;
    // handle's AH for the transmit path; nullptr also if the path was invalidated.
    kernel::Published<ib_ah*> ah;
    kernel::Published<unsigned long> last_used;

private:
    kernel::Opaque<sa_path_rec> record_{};
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

    // Sends the packet, which begins with its hard header, to a unicast address; consumes it. CONTEXT: under the
    // transmit lock.
    void send(sk_buff* skb, const HwAddr& to);
    // The same for ARP and RARP, which create no neighbour.
    void send_address_resolution(sk_buff* skb, const HwAddr& to);

    // Packets are accepted between start() and flush(). CONTEXT: process.
    void start() TA_EXCLUDES(lock);
    // Removes all paths and neighbours, and waits for pending queries. CONTEXT: RTNL.
    void flush() TA_EXCLUDES(lock);
    // Every path is queried again when it is next used, or at once if packets wait for it.
    void invalidate_all() TA_EXCLUDES(lock);
    // Removes neighbours that were not used for more than idle jiffies, and unusable paths; drops packets that wait for
    // too long, and queries paths that others wait for. Unused paths are queried again when they are used; max_idle of
    // them are kept.
    void collect_garbage(unsigned long idle) TA_EXCLUDES(lock);
    // Writes the debugfs file _path, in the in-tree driver's format.
    kernel::Status show(seq_file* file) TA_EXCLUDES(lock);
    // Writes the debugfs file _neigh: a line for each neighbour, with its address, how its packets are sent, and its
    // age.
    kernel::Status show_neighbours(seq_file* file) TA_EXCLUDES(lock);

    // Sets a neighbour's ah according to the mode and its connection.
    void publish(Neighbour& neighbour) TA_REQUIRES(lock);
    // Sends a packet, with its hard header, as a datagram. CONTEXT: under the transmit lock.
    void send_datagram(sk_buff* skb, const HwAddr& to, Path& path) TA_REQUIRES(lock);

    // Packets that could not be sent.
    kernel::SharedCounter dropped;
    kernel::SharedCounter queries, failures;
    // Times that a limit of paths, neighbours or queries was reached.
    kernel::SharedCounter refusals;

private:
    static kernel::LockClass lock_class_;

public:
    // Guards paths, neighbours and connections.
    kernel::SpinLock lock{lock_class_, "ipoib_paths"};

private:
    struct Sizes {
        unsigned int paths, neighbours;
    };
    Sizes sizes() TA_EXCLUDES(lock);
    static void query_completed(int status, sa_path_rec* record, void* context);
    void complete_query(Path& path, int status, sa_path_rec* record) TA_EXCLUDES(lock);

    void send_slowly(sk_buff* skb, const HwAddr& to, bool make_neighbour) TA_EXCLUDES(lock);
    bool goes_by_datagram(const Neighbour& neighbour) const;
    // Returns false, and counts, if the limit is reached.
    bool allows(unsigned int count, unsigned int max, const char* what);
    bool may_query() TA_REQUIRES(lock);
    Path* path_to(const Gid& gid) TA_REQUIRES(lock);
    Neighbour* neighbour_at(const HwAddr& address, Path& path) TA_REQUIRES(lock);
    PathLife::Step step(Path& path, PathLife::Event event) TA_REQUIRES(lock);
    // Sends a query if the path's state machine says so. Returns false if no query is pending and the path is not
    // usable.
    bool request(Path& path) TA_REQUIRES(lock);
    bool send_query(Path& path) TA_REQUIRES(lock);
    // Moves the state machine after a query that brought no record.
    PathLife::Action finish_query(Path& path, PathLife::Event event) TA_REQUIRES(lock);
    // Publishes the path's AH to the path and its neighbours.
    void publish(Path& path) TA_REQUIRES(lock);
    // Replaces the path's AH (nullptr: none), publishes it, and returns the former one.
    kernel::Owned<AddressHandle> set_address_handle(Path& path, kernel::Owned<AddressHandle> handle) TA_REQUIRES(lock);
    void remove(Neighbour& neighbour) TA_REQUIRES(lock);
    void remove_neighbours(Path& path) TA_REQUIRES(lock);
    void set_idle(Path& path, bool idle) TA_REQUIRES(lock);
    // The path is queried again when it is next used.
    void invalidate(Path& path, PathLife::Event why) TA_REQUIRES(lock);
    void unlink(Path& path) TA_REQUIRES(lock);
    void release(Path& path);

    Interface& interface_;
    kernel::HashTable<HwAddr, Neighbour> neighbours_;
    kernel::HashTable<Gid, Path> paths_;
    kernel::List<Path> all_ TA_GUARDED(lock);
    unsigned int path_count_ TA_GUARDED(lock) = 0;
    unsigned int neighbour_count_ TA_GUARDED(lock) = 0;
    unsigned int idle_count_ TA_GUARDED(lock) = 0;
    bool accepting_ TA_GUARDED(lock) = false;
    unsigned int open_queries_ TA_GUARDED(lock) = 0;
    bool waiting_for_queries_ TA_GUARDED(lock) = false;
    kernel::Completion no_open_queries_;
};

} // namespace ipoib
