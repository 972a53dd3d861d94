// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Joins of multicast groups (RFC 4391 sections 4 and 5), and what the join of the broadcast group gives an interface:
// its parameters, and carrier.
#include <utility>

#include <ipoib/interface.hpp>
#include <ipoib/trace.hpp>
#include <kernel/error_pointer.hpp>
#include <kernel/log.hpp>
#include <kernel/time.hpp>

namespace ipoib {

namespace {

// Join states of an MCMemberRecord (IBA 15.2.5.17).
constexpr std::uint8_t full_member = 1 << 0;
constexpr std::uint8_t send_only_full_member = 1 << 3;

} // namespace

// The joins of a set of groups

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
        // An event of the port, or of the P_Key, made ib_sa end the membership. The flush of that event joins again.
        if (status == kernel::net_reset)
            return 0;
        if (status == 0)
            status = apply_member_record(group, member).code();
        if (status) {
            // ib_sa frees the membership, as this returns nonzero. SAFETY: leave() does not wait for this callback
            // then; the interface outlives it, since it is freed several grace periods after leave_all().
            (void)group.membership.release();
            failures.add();
            log_failure(group, status);
        } else {
            group.logged_failures = 0;
        }
        ready = finish_join(group, status == 0                   ? GroupJoin::Event::granted
                                   : status == kernel::timed_out ? GroupJoin::Event::unanswered
                                                                 : GroupJoin::Event::refused);
    }
    interface_.resubmit(ready);
    return status;
}

void GroupSet::log_failure(Group& group, int status)
{
    const char* const kind = group.join.send_only() ? "sendonly " : "";
    const bool expected = status == kernel::timed_out || status == kernel::try_again ||
                          (status == kernel::invalid && group.join.send_only());
    if (expected || group.logged_failures == max_logged_failures) {
        log_multicast(interface_.dev(), "%smulticast join failed for %pI6, status %d", kind, group.key().bytes, status);
    } else {
        ++group.logged_failures;
        log_warning(interface_.dev(), "%smulticast join failed for %pI6, status %d", kind, group.key().bytes, status);
    }
}

kernel::Status GroupSet::apply_member_record(Group& group, const shim_mcmember& member)
{
    const int gid_index = interface_.identity.gid_index();
    // ib_core is changing its table.
    if (gid_index < 0)
        return kernel::try_again;
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
        .sgid_index = static_cast<std::uint8_t>(gid_index),
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

// The link of an interface

kernel::Status Link::apply(const shim_mcmember& broadcast)
{
    const int frame = shim_rdma_mtu_enum_to_int(interface_.ca(), interface_.identity.port(), broadcast.mtu);
    if (frame <= 0) {
        log_warning(interface_.dev(), "the broadcast group's MTU code %u is invalid", broadcast.mtu);
        return kernel::invalid;
    }
    parameters_ = broadcast;
    // An rdma_netdev is given the Q_Key with the group.
    if (interface_.has_queues()) {
        if (const kernel::Status status = interface_.queues.set_qkey(parameters_.qkey); !status.ok()) {
            log_warning(interface_.dev(), "failed to set the Q_Key, error %d", status.code());
            return status;
        }
    }
    qkey_.store(parameters_.qkey);
    traffic_class_.store(parameters_.traffic_class);
    interface_.mtu.set_link(static_cast<unsigned int>(frame));
    return {};
}

void Link::broadcast_joined()
{
    joined_.store(true);
    bring_carrier_.queue();
}

void Link::run_bring_carrier()
{
    kernel::Guard guard(interface_.ops_lock);
    if (!joined_.load_relaxed() || interface_.identity.port_down())
        return;
    interface_.mtu.apply();
    (void)interface_.state.perform(InterfaceLife::Event::joined).ok();
}

} // namespace ipoib
