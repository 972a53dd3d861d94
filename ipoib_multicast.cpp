// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The set of multicast groups, which the stack lists or sends to (RFC 4391 sections 4 to 6).
// Joins are sent and groups are removed on the interface's ordered work queue, or under RTNL with that work
// cancelled, so the two never run at once.
#include <utility>

#include <ipoib/interface.hpp>
#include <ipoib/mgid.hpp>
#include <kernel/log.hpp>
#include <kernel/rcu.hpp>
#include <kernel/time.hpp>
#include <shim/ndo.h>

namespace ipoib {

constinit kernel::LockClass GroupSet::lock_class_;
constinit kernel::LockClass GroupSet::mutex_class_;

kernel::Status GroupSet::create() { return groups_.create(); }
void GroupSet::destroy() { groups_.destroy(); }

void GroupSet::drop(sk_buff* skb, shim_drop why)
{
    dropped.add();
    shim_kfree_skb_reason(skb, why);
}

bool GroupSet::send_now(Group& group, sk_buff* skb)
{
    ib_ah* ah = group.ah.load();
    if (!ah)
        return false;
    kernel::touch(group.last_used, shim_jiffies());
    shim_skb_pull(skb, sizeof(HwAddr));
    interface_.tx[0].ring.send(skb, ah, HwAddr::multicast_qpn);
    return true;
}

void GroupSet::send(sk_buff* skb, const HwAddr& to)
{
    Gid mgid = to.gid();
    // Packets from before a change of the P_Key, or from raw sockets, have another P_Key in their address.
    set_pkey(mgid, interface_.identity.pkey());
    kernel::RcuGuard rcu;
    Group* group = groups_.find(rcu, mgid);
    if (group && send_now(*group, skb))
        return;
    kernel::Guard guard(lock_);
    if (!accepting_ || !broadcast_ || broadcast_->ah.load() == nullptr) {
        drop(skb, accepting_ ? SHIM_DROP_NEIGH_FAILED : SHIM_DROP_DEV_READY);
        return;
    }
    group = groups_.find(mgid);
    if (!group)
        group = add(mgid, Group::Kind::send_only);
    // Checked again under the lock: if the group was joined since the lookup, finish_join() has taken the packets that
    // waited.
    if (group && send_now(*group, skb))
        return;
    if (group)
        dropped.add(group->waiting.drop_overdue(SHIM_DROP_NEIGH_FAILED));
    if (!group || !group->waiting.push(skb, max_waiting)) {
        drop(skb, group ? SHIM_DROP_NEIGH_QUEUEFULL : SHIM_DROP_NEIGH_CREATEFAIL);
        return;
    }
    group->last_used.store(shim_jiffies());
    schedule_join(*group);
    joins_.queue_now(interface_.work_queue);
}

Group::Kind GroupSet::kind_of(const Gid& mgid) const
{
    return mgid == interface_.identity.broadcast().gid() ? Group::Kind::broadcast : Group::Kind::full_member;
}

Group* GroupSet::add(const Gid& mgid, Group::Kind kind)
{
    const bool send_only = kind == Group::Kind::send_only;
    if (send_only && send_only_count_ == max_send_only) {
        log_warning(interface_.dev(), "limit of %u send-only groups reached", send_only_count_);
        return nullptr;
    }
    auto group = kernel::make_owned_atomic<Group>(*this, mgid, kind);
    if (!group || !groups_.insert(*group).ok())
        return nullptr;
    group->last_used.store(shim_jiffies());
    all_.push_back(*group);
    send_only_count_ += send_only;
    if (kind == Group::Kind::broadcast)
        broadcast_ = group.get();
    schedule_join(*group);
    return group.release();
}

// Groups that the stack listens to

void GroupSet::start()
{
    kernel::Guard guard(lock_);
    accepting_ = true;
    sync_.queue(interface_.work_queue);
}

void GroupSet::schedule_sync()
{
    kernel::Guard guard(lock_);
    if (accepting_)
        sync_.queue(interface_.work_queue);
}

void GroupSet::visit_listed(void* context, const std::uint8_t* address)
{
    static_cast<GroupSet*>(context)->list(HwAddr::from(address));
}

void GroupSet::list(const HwAddr& address)
{
    if (!belongs_to_link(address, interface_.identity.broadcast()))
        return;
    Gid mgid = address.gid();
    set_pkey(mgid, interface_.identity.pkey());
    kernel::Guard guard(lock_);
    Group* group = groups_.find(mgid);
    const shim_gid native = mgid.native();
    if (!group && interface_.settings.umcast() &&
        shim_ib_sa_get_mcmember_rec(interface_.ca(), interface_.identity.port(), &native)) {
        log_multicast(interface_.dev(), "%pI6 is joined by userspace already", mgid.bytes);
        return;
    }
    if (!group)
        group = add(mgid, kind_of(mgid));
    if (group)
        group->listed = true;
}

void GroupSet::sync_with_stack()
{
    {
        kernel::Guard guard(lock_);
        for (Group& group : all_)
            group.listed = false;
    }
    shim_helper_netdev_for_each_mc_addr(interface_.dev(), visit_listed, this);
    kernel::List<Group> gone;
    {
        kernel::Guard guard(lock_);
        for (Group& group : all_) {
            const bool full_member = !group.join.send_only();
            if (&group == broadcast_ || full_member == group.listed)
                continue;
            unlink(group);
            gone.push_back(group);
            // The stack now listens to a send-only group: a full member replaces it.
            if (group.listed)
                if (Group* successor = add(group.key(), kind_of(group.key())))
                    successor->listed = true;
        }
        if (accepting_)
            joins_.queue_now(interface_.work_queue);
    }
    while (Group* group = gone.pop_front())
        leave(*group);
}

void GroupSet::rejoin_all()
{
    kernel::Guard guard(lock_);
    if (!accepting_)
        return;
    for (Group& group : all_) {
        group.membership_lost = true;
        schedule_join(group);
    }
    joins_.queue_now(interface_.work_queue);
}

// Leaving

void GroupSet::unlink(Group& group)
{
    groups_.remove(group);
    static_cast<kernel::ListNode<Group>&>(group).unlink();
    send_only_count_ -= group.join.send_only();
    if (&group == broadcast_)
        broadcast_ = nullptr;
}

void GroupSet::leave(Group& group)
{
    Group::Membership membership;
    {
        kernel::Guard guard(mutex_);
        membership = std::move(group.membership);
        // A response could call schedule_join() until membership was cleared.
        kernel::Guard candidates_guard(lock_);
        static_cast<kernel::ListNode<Candidates>&>(group).unlink();
    }
    membership.reset();
    if (group.attached)
        interface_.detach_group(group.key(), group.mlid);
    dropped.add(group.waiting.drop_all(SHIM_DROP_NEIGH_DEAD));
    interface_.reaper.retire(std::move(group.handle));
    interface_.reaper.retire(kernel::Owned<Group>(&group));
}

void GroupSet::leave_all()
{
    {
        kernel::Guard guard(lock_);
        // No work is queued from here on.
        accepting_ = false;
    }
    sync_.cancel();
    joins_.cancel();
    kernel::List<Group> gone;
    {
        kernel::Guard guard(lock_);
        for (Group& group : all_) {
            unlink(group);
            gone.push_back(group);
        }
    }
    while (Group* group = gone.pop_front())
        leave(*group);
}

void GroupSet::collect_garbage(unsigned long idle)
{
    const unsigned long now = shim_jiffies();
    kernel::List<Group> gone;
    {
        kernel::Guard guard(lock_);
        for (Group& group : all_) {
            dropped.add(group.waiting.drop_overdue(SHIM_DROP_NEIGH_FAILED));
            if (group.join.send_only() && kernel::elapsed(group.last_used.load_relaxed(), now) > idle) {
                unlink(group);
                gone.push_back(group);
            }
        }
    }
    while (Group* group = gone.pop_front())
        leave(*group);
}

} // namespace ipoib

void ipoib_ndo_set_rx_mode(net_device* dev) { ipoib::Interface::of(dev).groups.schedule_sync(); }
