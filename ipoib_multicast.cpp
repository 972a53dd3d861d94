// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Multicast: the join state machine's executor, the set of groups and send-only groups (RFC 4391 sections 4 to 6).
// Joins are sent and groups are removed on the interface's ordered work queue, or under RTNL with that work
// cancelled, so the two never run at once.
#include <algorithm>

#include <ipoib/encapsulation.hpp>
#include <ipoib/interface.hpp>
#include <ipoib/mgid.hpp>
#include <ipoib/trace.hpp>
#include <kernel/error_pointer.hpp>
#include <kernel/log.hpp>
#include <kernel/rcu.hpp>
#include <kernel/time.hpp>
#include <shim/ndo.h>

namespace ipoib {

constinit kernel::LockClass GroupSet::lock_class_;
constinit kernel::LockClass GroupSet::mutex_class_;

namespace {

// Join states of an MCMemberRecord (IBA 15.2.5.17).
constexpr std::uint8_t full_member = 1 << 0;
constexpr std::uint8_t send_only_full_member = 1 << 3;

} // namespace

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
        drop(skb, group ? SHIM_DROP_NEIGH_QUEUEFULL : SHIM_DROP_NOMEM);
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

// Joining

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

GroupJoin::Step GroupSet::step(Group& group, GroupJoin::Event event)
{
    return traced_step(interface_.dev(), SHIM_TRACE_GROUP, group.key(), group.join, event);
}

void GroupSet::schedule_join(Group& group)
{
    static_cast<kernel::ListNode<Candidates>&>(group).unlink();
    candidates_.push_back(group);
}

bool GroupSet::should_join(Group& group, unsigned long now)
{
    using Event = GroupJoin::Event;
    static_cast<kernel::ListNode<Candidates>&>(group).unlink();
    // A pending join may predate the loss: it is awaited, and then repeated.
    if (group.join.state() != GroupJoin::State::joining && std::exchange(group.membership_lost, false) &&
        step(group, Event::membership_lost).action == GroupJoin::Action::join)
        return true;
    switch (group.join.state()) {
    case GroupJoin::State::idle:
        return (!group.join.send_only() || !group.waiting.empty()) &&
               step(group, Event::wanted).action == GroupJoin::Action::join;
    case GroupJoin::State::backoff:
        if (kernel::reached(group.retry_at, now))
            return step(group, Event::retry_due).action == GroupJoin::Action::join;
        if (backing_off_.empty() || kernel::reached(group.retry_at, next_retry_))
            next_retry_ = group.retry_at;
        backing_off_.push_back(group);
        return false;
    case GroupJoin::State::joining:
    case GroupJoin::State::joined:
        return false;
    }
    return false;
}

Group* GroupSet::next_to_join()
{
    const unsigned long now = shim_jiffies();
    kernel::Guard guard(lock_);
    if (!accepting_)
        return nullptr;
    if (!broadcast_ && !add(interface_.identity.broadcast().gid(), Group::Kind::broadcast)) {
        joins_.queue(interface_.work_queue, kernel::seconds(1));
        return nullptr;
    }
    if (!backing_off_.empty() && kernel::reached(next_retry_, now))
        candidates_.take(backing_off_);
    if (should_join(*broadcast_, now))
        return broadcast_;
    // Other groups must have the broadcast group's parameters (RFC 4391 section 4), so that is joined first.
    if (broadcast_->join.state() != GroupJoin::State::joined)
        return nullptr;
    while (Group* group = candidates_.front())
        if (should_join(*group, now))
            return group;
    return nullptr;
}

void GroupSet::run_joins()
{
    // When the port becomes active, an event queues this again.
    if (interface_.identity.port_down())
        return;
    // A GUID that the administrator chose gets into the port's table by the subnet manager, without an event.
    if (interface_.identity.gid_index() < 0) {
        joins_.queue(interface_.work_queue, kernel::seconds(1));
        return;
    }
    while (Group* group = next_to_join()) {
        Group::Membership former;
        {
            kernel::Guard guard(mutex_);
            former = std::move(group->membership);
        }
        // SAFETY: only this work queue, and RTNL with this work cancelled, removes groups.
        former.reset();
        kernel::Guard guard(mutex_);
        send_join(*group);
    }
    kernel::Guard guard(lock_);
    if (accepting_ && !backing_off_.empty()) {
        const unsigned long now = shim_jiffies();
        joins_.queue(interface_.work_queue, kernel::reached(next_retry_, now) ? 0 : next_retry_ - now);
    }
}

void GroupSet::send_join(Group& group)
{
    const bool broadcast = group.kind == Group::Kind::broadcast;
    // The broadcast group must exist (RFC 4391 section 5): the subnet's administrator chose its parameters. Other
    // groups are created with the same ones.
    shim_mcmember member = broadcast ? shim_mcmember{} : interface_.link.parameters();
    member.mgid = group.key().native();
    member.port_gid = interface_.identity.gid().native();
    member.pkey = interface_.identity.pkey().value();
    member.mlid = 0;
    member.join_state = group.join.send_only() ? send_only_full_member : full_member;
    log_multicast(interface_.dev(), "joining %pI6", group.key().bytes);
    joins.add();
    auto membership = kernel::check(
        shim_helper_sa_join(interface_.ca(), interface_.identity.port(), &member, !broadcast, join_completed, &group));
    if (!membership.ok()) {
        log_warning(interface_.dev(), "ib_sa_join_multicast failed, status %d", membership.status().code());
        failures.add();
        finish_join(group, GroupJoin::Event::refused);
        return;
    }
    // complete_join() takes the mutex first, so it sees the membership even if the response is early.
    group.membership.reset(membership.take());
}

int GroupSet::join_completed(int status, const shim_mcmember* member, void* context)
{
    auto& group = *static_cast<Group*>(context);
    return group.set.complete_join(group, status, *member);
}

int GroupSet::complete_join(Group& group, int status, const shim_mcmember& member)
{
    kernel::PacketQueue ready;
    {
        kernel::Guard guard(mutex_);
        // The group is being left: leave() frees the membership after this callback.
        if (!group.membership)
            return 0;
        // The SM lost the group. A CLIENT_REREGISTER event follows, upon which it is joined again.
        if (status == kernel::net_reset)
            return 0;
        if (status == 0)
            status = apply_member_record(group, member).code();
        if (status) {
            // ib_sa frees the membership, as this returns nonzero.
            (void)group.membership.release();
            failures.add();
            const char* const kind = group.join.send_only() ? "sendonly " : "";
            const bool expected = status == kernel::timed_out || status == kernel::try_again ||
                                  (status == kernel::invalid && group.join.send_only());
            if (expected)
                log_multicast(interface_.dev(), "%smulticast join failed for %pI6, status %d", kind, group.key().bytes,
                              status);
            else
                log_warning(interface_.dev(), "%smulticast join failed for %pI6, status %d", kind, group.key().bytes,
                            status);
        }
        ready = finish_join(group, status == 0                   ? GroupJoin::Event::granted
                                   : status == kernel::timed_out ? GroupJoin::Event::unanswered
                                                                 : GroupJoin::Event::refused);
    }
    interface_.requeue(ready);
    return status;
}

kernel::Status GroupSet::apply_member_record(Group& group, const shim_mcmember& member)
{
    const bool broadcast = group.kind == Group::Kind::broadcast;
    if (broadcast)
        TRY(interface_.link.apply(member));
    if (!group.join.send_only() && (!group.attached || group.mlid != member.mlid)) {
        if (group.attached)
            interface_.detach_group(group.key(), group.mlid);
        group.attached = false;
        if (const kernel::Status status = interface_.attach_group(group.key(), member.mlid, broadcast); !status.ok()) {
            log_warning(interface_.dev(), "couldn't attach QP to multicast group %pI6", group.key().bytes);
            return status;
        }
        group.attached = true;
    }
    group.mlid = member.mlid;
    const shim_ah_attributes attributes{
        .port = interface_.identity.port(),
        .dlid = member.mlid,
        .sl = member.sl,
        .rate = member.rate,
        .traffic_class = member.traffic_class,
        .hop_limit = member.hop_limit,
        .flow_label = member.flow_label,
        .sgid_index = static_cast<std::uint8_t>(std::max(interface_.identity.gid_index(), 0)),
        .dgid = group.key().native(),
    };
    auto made = AddressHandle::own(shim_helper_create_ah(interface_.queues.pd(), &attributes));
    if (!made.ok()) {
        log_warning(interface_.dev(), "ib_address_create failed, status %d", made.status().code());
        return made.status();
    }
    kernel::Owned<AddressHandle> former = std::exchange(group.handle, made.take());
    group.ah.store(group.handle->get());
    interface_.reaper.retire(std::move(former));
    if (broadcast)
        interface_.link.broadcast_joined();
    return {};
}

kernel::PacketQueue GroupSet::finish_join(Group& group, GroupJoin::Event event)
{
    kernel::PacketQueue ready;
    kernel::Guard guard(lock_);
    const auto next = step(group, event);
    switch (next.action) {
    case GroupJoin::Action::send_waiting:
        ready.take(group.waiting);
        break;
    case GroupJoin::Action::drop_waiting:
        dropped.add(group.waiting.drop_all(SHIM_DROP_NEIGH_FAILED));
        // The subnet manager may have assigned the multicast LID to another group.
        group.ah.store(nullptr);
        interface_.reaper.retire(std::move(group.handle));
        break;
    case GroupJoin::Action::arm_retry:
        group.retry_at = shim_jiffies() + kernel::with_jitter(kernel::seconds(next.delay_s));
        break;
    case GroupJoin::Action::join:
    case GroupJoin::Action::none:
        break;
    }
    // Continue with the next join, or this group's next retry.
    schedule_join(group);
    if (accepting_)
        joins_.queue_now(interface_.work_queue);
    return ready;
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
