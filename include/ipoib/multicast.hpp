// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The multicast groups of one interface (RFC 4391 sections 4 and 5): the broadcast group first, whose parameters are
// the link's; the groups that the stack listens to; and those that we only send to.
#pragma once
#include <cstdint>

#include <ipoib/address.hpp>
#include <ipoib/group_join.hpp>
#include <ipoib/reaper.hpp>
#include <kernel/counter.hpp>
#include <kernel/handle.hpp>
#include <kernel/hash_table.hpp>
#include <kernel/packet_queue.hpp>
#include <kernel/published.hpp>
#include <kernel/work.hpp>
#include <shim/sa.h>

namespace ipoib {

class Interface;
class GroupSet;
// Tag of the list of groups that may have to join.
class Candidates;

class Group : public kernel::Hashed<Gid>,
              public Retirable,
              public kernel::ListNode<Group>,
              public kernel::ListNode<Candidates> {
public:
    // broadcast: the group whose parameters are the link's (RFC 4391 section 4); full_member: another group that the
    // stack listens to; send_only: a group that packets are sent to.
    enum class Kind { broadcast, full_member, send_only };
    using Membership = kernel::Handle<ib_sa_multicast, shim_helper_sa_leave>;

    Group(GroupSet& set, const Gid& mgid, Kind kind)
        : Hashed(mgid), Retirable(free_retired<Group>), set(set), kind(kind), join(kind == Kind::send_only)
    {
    }
    GroupSet& set;
    const Kind kind;
    // Under the set's lock.
    GroupJoin join;
    kernel::PacketQueue waiting;
    // Time of the next join in back-off, and of creation, in jiffies.
    unsigned long retry_at = 0;
    const unsigned long created = shim_jiffies();
    // The SA may have lost the membership: to be joined again, once no join is pending.
    bool membership_lost = false;
    // In the stack's list, during sync_with_stack().
    bool listed = false;
    // Under the set's mutex.
    Membership membership;
    kernel::Owned<AddressHandle> handle;
    bool attached = false;
    std::uint16_t mlid = 0; // host byte order
    // Failed joins that were logged since the last successful one.
    unsigned int logged_failures = 0;
    // Read by the transmit path; last_used, in jiffies, is also written by it.
    kernel::Published<ib_ah*> ah;
    kernel::Published<unsigned long> last_used;
};

class GroupSet {
public:
    // Failures of one group that are logged, as the join of a group that no partition defines is repeated for ever.
    static constexpr unsigned int max_logged_failures = 20;
    // Packets that wait for one group.
    static constexpr unsigned int max_waiting = 64;
    // Send-only groups: the number of multicast LIDs of a subnet (IBA 4.1.3). Remote hosts choose the IPv6 addresses
    // that the stack solicits, each in a group of its own.
    static constexpr unsigned int max_send_only = 0x3fff;

    explicit GroupSet(Interface& interface) : interface_(interface), joins_(*this), sync_(*this) {}

    // CONTEXT: process.
    kernel::Status create();
    void destroy();

    // Sends the packet, which begins with its hard header, to a group of this link; consumes it.
    void send(sk_buff* skb, const HwAddr& to) TA_REQUIRES(kernel::transmit_lock) TA_EXCLUDES(lock_);

    // Groups are joined between start() and leave_all(). CONTEXT: process.
    void start() TA_EXCLUDES(lock_);
    // Waits for pending joins.
    void leave_all() TA_REQUIRES(kernel::rtnl) TA_EXCLUDES(mutex_, lock_);
    // The SA may have lost our memberships: joins all groups again, and continues to send meanwhile.
    void rejoin_all() TA_EXCLUDES(lock_);
    // The stack's list of groups changed: queues sync_with_stack(). CONTEXT: any.
    void schedule_sync() TA_EXCLUDES(lock_);
    // Drops packets that wait for too long, and leaves send-only groups that were not used for more than idle jiffies.
    // CONTEXT: the interface's work queue.
    void collect_garbage(unsigned long idle) TA_EXCLUDES(mutex_, lock_);
    // Calls visit(Group&) for each group, under the lock.
    template <class Visit>
    void for_each(Visit visit) TA_EXCLUDES(lock_)
    {
        kernel::Guard guard(lock_);
        for (Group& group : all_)
            visit(group);
    }

    kernel::SharedCounter dropped;
    kernel::SharedCounter joins, failures;

private:
    static int join_completed(int status, const shim_mcmember* member, void* context);
    int complete_join(Group& group, int status, const shim_mcmember& member) TA_EXCLUDES(mutex_, lock_);

    void run_joins() TA_EXCLUDES(mutex_, lock_);
    void sync_with_stack() TA_EXCLUDES(mutex_, lock_);
    static void visit_listed(void* context, const std::uint8_t* address);
    void list(const HwAddr& address) TA_EXCLUDES(lock_);

    // The kind of a group that the stack listens to: it may list the broadcast group, too.
    Group::Kind kind_of(const Gid& mgid) const;
    // Returns nullptr if there is no memory, or max_send_only is reached.
    Group* add(const Gid& mgid, Group::Kind kind) TA_REQUIRES(lock_);
    // The group's state changed: run_joins() checks whether it should join.
    void schedule_join(Group& group) TA_REQUIRES(lock_);
    // Returns the next group to join now, moved to state joining; nullptr: none.
    Group* next_to_join() TA_EXCLUDES(lock_);
    GroupJoin::Step step(Group& group, GroupJoin::Event event) TA_REQUIRES(lock_);
    // Removes the group from candidates_, or moves it to backing_off_. Returns true if it is to join now; it was moved
    // to state joining.
    bool should_join(Group& group, unsigned long now) TA_REQUIRES(lock_);
    void send_join(Group& group) TA_REQUIRES(mutex_);
    void log_failure(Group& group, int status) TA_REQUIRES(mutex_);
    kernel::Status apply_member_record(Group& group, const shim_mcmember& member) TA_REQUIRES(mutex_);
    // Moves the state machine after a response. Returns the packets that can be sent.
    kernel::PacketQueue finish_join(Group& group, GroupJoin::Event event) TA_REQUIRES(mutex_);
    // Returns false if the group has no address handle yet. CONTEXT: under an RcuGuard.
    bool send_now(Group& group, sk_buff* skb) TA_REQUIRES(kernel::transmit_lock);
    void unlink(Group& group) TA_REQUIRES(lock_);
    // Leaves and frees an unlinked group.
    void leave(Group& group) TA_EXCLUDES(mutex_, lock_);
    void drop(sk_buff* skb, shim_drop why);

    Interface& interface_;
    static kernel::LockClass lock_class_;
    static kernel::LockClass mutex_class_;
    // Serialises joins with their responses. Not held while leaving, which waits for responses.
    kernel::Mutex mutex_ TA_ACQUIRED_AFTER(kernel::rtnl) TA_ACQUIRED_BEFORE(lock_){mutex_class_, "ipoib_joins"};
    kernel::SpinLock lock_ TA_ACQUIRED_AFTER(kernel::transmit_lock){lock_class_, "ipoib_groups"};
    kernel::HashTable<Gid, Group> groups_;
    kernel::List<Group> all_ TA_GUARDED(lock_);
    Group* broadcast_ TA_GUARDED(lock_) = nullptr;
    unsigned int send_only_count_ TA_GUARDED(lock_) = 0;
    bool accepting_ TA_GUARDED(lock_) = false;
    // Groups whose state changed; and groups in back-off, which ends at next_retry_ or later.
    kernel::List<Group, Candidates> candidates_ TA_GUARDED(lock_);
    kernel::List<Group, Candidates> backing_off_ TA_GUARDED(lock_);
    unsigned long next_retry_ TA_GUARDED(lock_) = 0;
    kernel::Work<&GroupSet::run_joins> joins_;
    kernel::Work<&GroupSet::sync_with_stack> sync_;
};

} // namespace ipoib
