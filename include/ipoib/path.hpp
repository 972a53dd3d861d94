// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Paths, one for each GID that we send to, and neighbours, one for each hardware address behind a path. A neighbour
// caches its path's address handle, so that sending takes one look-up, no lock and no reference count.
#pragma once
#include <cstdint>

#include <ipoib/address.hpp>
#include <ipoib/path_life.hpp>
#include <ipoib/reaper.hpp>
#include <kernel/hash_table.hpp>
#include <kernel/packet_queue.hpp>
#include <kernel/rcu.hpp>
#include <shim/debugfs.h>
#include <shim/sa.h>

namespace ipoib {

class ActiveConnection;
class Interface;
class Path;

// What the transmit path reads: the address handle, and whether it is above suspicion.
class Neighbour : public kernel::Hashed<HwAddr>, public Retirable, public kernel::ListNode<Neighbour> {
public:
    Neighbour(const HwAddr& address, Path& path)
        : Hashed(address), Retirable(free_retired<Neighbour>, Until::grace_period), path(path)
    {
    }
    Path& path;
    // nullptr: there is a connection, or the path is to be asked.
    kernel::Published<ib_ah*> ah;
    // Established; nullptr otherwise.
    kernel::Published<ActiveConnection*> connection;
    kernel::Published<unsigned long> last_used;
    // Under PathTable's lock: the connection, in whatever state, and that there is none to be had at present.
    ActiveConnection* attempt = nullptr;
    bool refused = false;
};

class Path : public kernel::Hashed<Gid>, public Retirable, public kernel::ListNode<Path> {
public:
    explicit Path(const Gid& gid) : Hashed(gid), Retirable(free_retired<Path>, Until::grace_period) {}

    // All but the hash node, ah and last_used: under PathTable's lock.
    PathLife life;
    // Of a usable path: what the SA said.
    sa_path_rec* record() { return reinterpret_cast<sa_path_rec*>(record_); }
    kernel::Owned<AddressHandle> handle;
    kernel::List<Neighbour> neighbours;
    kernel::PacketQueue waiting;
    // Unused, and counted as such.
    bool idle = false;
    ib_sa_query* query = nullptr;
    int query_id = 0;
    class PathTable* table = nullptr;
    // handle's, for readers; nullptr also when the path is in doubt.
    kernel::Published<ib_ah*> ah;
    kernel::Published<unsigned long> last_used;

private:
    alignas(SHIM_ALIGNOF_PATH_RECORD) std::byte record_[SHIM_SIZEOF_PATH_RECORD] = {};
};

class PathTable {
public:
    // Packets that wait for one path.
    static constexpr unsigned int most_waiting = 64;
    // A subnet has so many unicast LIDs (IBA 4.1.3). Whoever sends us ARP requests chooses the addresses that we answer
    // to: what these cost must have an end. So must the questions that they have us send to the subnet administrator at
    // once.
    static constexpr unsigned int most_paths = 0xbfff;
    static constexpr unsigned int most_neighbours = 0xbfff;
    static constexpr unsigned int most_questions = 1024;
    // Paths that nobody has used for a while. They are kept for a time without a subnet manager, which would not tell
    // them again.
    static constexpr unsigned int max_idle = 8192;

    explicit PathTable(Interface& interface) : interface_(interface) {}

    // CONTEXT: process.
    kernel::Status create();
    void destroy();

    // Sends the packet, which begins with its hard header, to a unicast address; takes it in every case.
    // CONTEXT: under the transmit lock.
    void send(sk_buff* skb, const HwAddr& to);
    // The same for ARP and RARP: these never make a neighbour.
    void send_address_resolution(sk_buff* skb, const HwAddr& to);

    // From now on packets are taken, until flush(). CONTEXT: process.
    void accept() TA_EXCLUDES(lock);
    // Forgets all paths and neighbours, and waits for answers that are under way. CONTEXT: RTNL.
    void flush() TA_EXCLUDES(lock);
    // Every path is asked for again when it is next used, and now if packets wait for it.
    void doubt_all() TA_EXCLUDES(lock);
    // Forgets neighbours that were not used for longer than idle jiffies, and paths that are not usable; drops packets
    // that have waited for too long, and asks for paths that others wait for. Unused paths are asked for again when
    // they are used; max_idle of them are kept.
    void collect_garbage(unsigned long idle) TA_EXCLUDES(lock);
    // For debugfs, in the in-tree driver's format.
    kernel::Status show(seq_file* file) TA_EXCLUDES(lock);
    // A line for each neighbour: its address, the way its packets go, since when it is unused.
    kernel::Status show_neighbours(seq_file* file) TA_EXCLUDES(lock);

    // Lets a neighbour's packets take the way that is right for it now.
    void publish(Neighbour& neighbour) TA_REQUIRES(lock);
    // A waiting packet, with its hard header, goes as a datagram. CONTEXT: under the transmit lock.
    void send_datagram(sk_buff* skb, const HwAddr& to, Path& path) TA_REQUIRES(lock);

    // Of packets that could not be sent.
    kernel::SharedCounter dropped;
    kernel::SharedCounter questions, failures;
    // Times that a path, a neighbour or a question would have been one too many.
    kernel::SharedCounter refusals;

private:
    static kernel::LockClass lock_class_;

public:
    // Of paths, neighbours and connections.
    kernel::SpinLock lock{lock_class_, "ipoib_paths"};

private:
    struct Sizes {
        unsigned int paths, neighbours;
    };
    Sizes sizes() TA_EXCLUDES(lock);
    static void answered(int status, sa_path_rec* record, void* context);
    void answer(Path& path, int status, sa_path_rec* record) TA_EXCLUDES(lock);

    void send_slowly(sk_buff* skb, const HwAddr& to, bool make_neighbour) TA_EXCLUDES(lock);
    bool goes_by_datagram(const Neighbour& neighbour) const;
    // False, and counted, if there are so many already.
    bool allows(unsigned int count, unsigned int most, const char* what);
    bool may_ask() TA_REQUIRES(lock);
    Path* path_to(const Gid& gid) TA_REQUIRES(lock);
    Neighbour* neighbour_at(const HwAddr& address, Path& path) TA_REQUIRES(lock);
    PathLife::Step step(Path& path, PathLife::Event event) TA_REQUIRES(lock);
    // Sends the question if the path's life says so. False: there is nothing to wait for, and the path is not usable.
    bool ask(Path& path) TA_REQUIRES(lock);
    bool send_question(Path& path) TA_REQUIRES(lock);
    // Takes a step and does what it says, after a question that brought no record.
    PathLife::Action settle(Path& path, PathLife::Event event) TA_REQUIRES(lock);
    // Publishes the path's handle to it and its neighbours.
    void publish(Path& path) TA_REQUIRES(lock);
    // Gives the path another handle (perhaps none), publishes it, and returns the one before.
    kernel::Owned<AddressHandle> install(Path& path, kernel::Owned<AddressHandle> handle) TA_REQUIRES(lock);
    void forget(Neighbour& neighbour) TA_REQUIRES(lock);
    void forget_neighbours(Path& path) TA_REQUIRES(lock);
    void set_idle(Path& path, bool idle) TA_REQUIRES(lock);
    // The path is asked for again when it is next used.
    void doubt(Path& path, PathLife::Event why) TA_REQUIRES(lock);
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
    unsigned int open_questions_ TA_GUARDED(lock) = 0;
    bool waiting_for_answers_ TA_GUARDED(lock) = false;
    kernel::Completion no_open_questions_;
};

} // namespace ipoib
