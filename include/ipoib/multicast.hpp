// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The multicast groups of one interface (RFC 4391 sections 4 and 5): the broadcast group first, whose parameters are
// the link's; the groups that the stack listens to; and those that we only send to.
#pragma once
#include <cstdint>

#include <ipoib/address.hpp>
#include <ipoib/group_join.hpp>
#include <ipoib/reaper.hpp>
#include <kernel/hash_table.hpp>
#include <kernel/packet_queue.hpp>
#include <kernel/rcu.hpp>
#include <kernel/work.hpp>
#include <shim/debugfs.h>
#include <shim/sa.h>

namespace ipoib {

class Interface;
class GroupSet;
// A list of those that may have to ask.
class Candidates;

class Group : public kernel::Hashed<Gid>,
              public Retirable,
              public kernel::ListNode<Group>,
              public kernel::ListNode<Candidates> {
public:
    Group(GroupSet& set, const Gid& mgid, bool send_only)
        : Hashed(mgid), Retirable(free_retired<Group>, Until::grace_period), set(set), join(send_only)
    {
    }
    GroupSet& set;
    // Under the set's lock.
    GroupJoin join;
    kernel::PacketQueue waiting;
    unsigned long retry_at = 0;
    const unsigned long created = shim_jiffies();
    // The SA may have forgotten us; to be told to join, once there is no join under way.
    bool forgotten = false;
    // Found in the stack's list, during sync_with_stack().
    bool listed = false;
    // Under the set's mutex.
    ib_sa_multicast* membership = nullptr;
    kernel::Owned<AddressHandle> handle;
    bool attached = false;
    std::uint16_t mlid = 0;
    // For the transmit path.
    kernel::Published<ib_ah*> ah;
    kernel::Published<unsigned long> last_used;
};

class GroupSet {
public:
    // Packets that wait for one group.
    static constexpr unsigned int most_waiting = 64;
    // Groups that we only send to: a subnet has so many multicast LIDs (IBA 4.1.3). Whoever sends to us over IPv6
    // chooses the addresses that we look for, each in a group of its own.
    static constexpr unsigned int most_send_only = 0x3fff;

    explicit GroupSet(Interface& interface) : interface_(interface), joins_(*this), sync_(*this) {}

    // CONTEXT: process.
    kernel::Status create();
    void destroy();

    // Sends the packet, which begins with its hard header, to a group of this link; takes it in every case.
    // CONTEXT: under the transmit lock.
    void send(sk_buff* skb, const HwAddr& to);

    // Joins from now on, until leave_all(). CONTEXT: process.
    void accept() TA_EXCLUDES(lock_);
    // CONTEXT: RTNL; waits for joins that are under way.
    void leave_all() TA_EXCLUDES(mutex_, lock_);
    // The SA may have forgotten our memberships: joins all again, and goes on sending meanwhile.
    void rejoin_all() TA_EXCLUDES(lock_);
    // The stack's list of groups has changed. CONTEXT: any.
    void list_changed() TA_EXCLUDES(lock_);
    // Drops packets that have waited for too long, and leaves send-only groups that were not used for longer than idle
    // jiffies. CONTEXT: the interface's work queue.
    void collect_garbage(unsigned long idle) TA_EXCLUDES(mutex_, lock_);
    // For debugfs, in the in-tree driver's format.
    kernel::Status show(seq_file* file) TA_EXCLUDES(lock_);

    kernel::SharedCounter dropped;
    kernel::SharedCounter joins, refusals;

private:
    static int answered(int status, const shim_mcmember* member, void* context);
    int answer(Group& group, int status, const shim_mcmember& member) TA_EXCLUDES(mutex_, lock_);

    void run_joins() TA_EXCLUDES(mutex_, lock_);
    void sync_with_stack() TA_EXCLUDES(mutex_, lock_);
    static void visit_listed(void* context, const std::uint8_t* address);
    void list(const HwAddr& address) TA_EXCLUDES(lock_);

    // nullptr: no memory, or one send-only group too many.
    Group* add(const Gid& mgid, bool send_only) TA_REQUIRES(lock_);
    // Something has happened to the group: run_joins() is to see whether it asks.
    void nominate(Group& group) TA_REQUIRES(lock_);
    // The next group that is to ask now, moved to its asking state; nullptr: none.
    Group* next_to_ask() TA_EXCLUDES(lock_);
    GroupJoin::Step step(Group& group, GroupJoin::Event event) TA_REQUIRES(lock_);
    // Takes the group off its list of candidates, or to the other; true: it asks, and was moved to its asking state.
    bool due(Group& group, unsigned long now) TA_REQUIRES(lock_);
    void ask(Group& group) TA_REQUIRES(mutex_);
    kernel::Status use(Group& group, const shim_mcmember& member) TA_REQUIRES(mutex_);
    // Takes the machine's step after an answer; returns the packets that can go.
    kernel::PacketQueue settle(Group& group, GroupJoin::Event answer) TA_REQUIRES(mutex_);
    void transmit(kernel::PacketQueue packets);
    // False: the group has no address handle yet. CONTEXT: as send(), an RCU reader.
    bool send_now(Group& group, sk_buff* skb);
    void unlink(Group& group) TA_REQUIRES(lock_);
    // Ends an unlinked group.
    void leave(Group& group) TA_EXCLUDES(mutex_, lock_);
    void drop(sk_buff* skb, shim_drop why);

    Interface& interface_;
    static kernel::LockClass lock_class_;
    static kernel::LockClass mutex_class_;
    // Serialises joins with their answers. Taken before lock_, and never while leaving: that waits for answers.
    kernel::Mutex mutex_{mutex_class_, "ipoib_joins"};
    kernel::SpinLock lock_{lock_class_, "ipoib_groups"};
    kernel::HashTable<Gid, Group> groups_;
    kernel::List<Group> all_ TA_GUARDED(lock_);
    Group* broadcast_ TA_GUARDED(lock_) = nullptr;
    unsigned int send_only_count_ TA_GUARDED(lock_) = 0;
    bool accepting_ TA_GUARDED(lock_) = false;
    // Those that something has happened to, so that it is not looked for among all; and those that wait for the end of
    // their back-off, which is at next_retry_ or later.
    kernel::List<Group, Candidates> candidates_ TA_GUARDED(lock_);
    kernel::List<Group, Candidates> backing_off_ TA_GUARDED(lock_);
    unsigned long next_retry_ TA_GUARDED(lock_) = 0;
    kernel::Work<&GroupSet::run_joins> joins_;
    kernel::Work<&GroupSet::sync_with_stack> sync_;
};

} // namespace ipoib
