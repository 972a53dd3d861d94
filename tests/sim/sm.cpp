// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// include/shim/sa.h.
#include "sm.hpp"

#include <algorithm>
#include <cstring>

#include <ipoib/mgid.hpp>

#include "world.hpp"

struct ib_sa_multicast {
    std::uint64_t serial;
    ib_device* ca;
    shim_mcmember asked;
    bool with_parameters;
    int (*answered)(int, const shim_mcmember*, void*);
    void* context;
    enum class State { asked, joined, over } state = State::asked;
    int calls = 0;
    bool leaving = false;
};

namespace sim {

namespace {

constexpr std::uint8_t full_member_join = 1;
// The first two MLIDs are the broadcast groups'.
constexpr std::uint16_t first_mlid = 0xc000;

bool created_by_join(const shim_mcmember& terms) { return terms.mlid >= first_mlid + 2; }

std::string name_of(const shim_gid& gid) { return {reinterpret_cast<const char*>(gid.raw), sizeof(gid.raw)}; }

} // namespace

void Sm::begin()
{
    link_mtu_ = world->mtu_code;
    for (const std::uint16_t pkey : {0xffff, 0x8001}) {
        shim_mcmember terms{};
        terms.mgid = ipoib::broadcast_gid(ipoib::PKey(pkey)).native();
        terms.qkey = 0xb1b;
        terms.mlid = next_mlid_++;
        terms.pkey = pkey;
        terms.mtu = world->mtu_code;
        terms.rate = 3;
        terms.hop_limit = 0xff;
        groups_[name_of(terms.mgid)] = {terms, {}, {}};
    }
}

void Sm::forget(ib_device* only)
{
    for (auto& [_, group] : groups_) {
        if (only) {
            group.nodes.erase(only->node);
            group.senders.erase(only->node);
        } else {
            group.nodes.clear();
            group.senders.clear();
        }
    }
    if (only) {
        delete_unused_groups();
        return;
    }
    for (auto& [_, group] : groups_)
        group.terms.mtu = link_mtu_;
    // Groups created by joins are gone.
    std::erase_if(groups_, [](const auto& entry) { return created_by_join(entry.second.terms); });
}

// A group that a join created, perhaps with wrong parameters, exists as long as it has members (IBA 15.2.5.17).
void Sm::delete_unused_groups()
{
    std::erase_if(groups_, [](const auto& entry) {
        const Group& group = entry.second;
        return created_by_join(group.terms) && group.nodes.empty() && group.senders.empty();
    });
}

std::vector<ib_device*> Sm::listeners(std::uint16_t mlid, const ib_device& from) const
{
    std::vector<ib_device*> to;
    for (const auto& [_, group] : groups_) {
        if (group.terms.mlid != mlid || !(group.nodes.contains(from.node) || group.senders.contains(from.node)))
            continue;
        for (const unsigned int node : group.nodes)
            to.push_back(world->devices[node].get());
    }
    return to;
}

bool Sm::silent() { return silent_until > world->scheduler.now(); }

Time Sm::delay()
{
    ++requests;
    if (service) {
        busy_until_ = std::max(busy_until_, world->scheduler.now()) + service;
        return busy_until_ - world->scheduler.now() + 2 * world->fabric.flight_time();
    }
    Random& random = world->scheduler.random();
    if (slow_until > world->scheduler.now())
        return random.between(200 * millisecond, 2500 * millisecond);
    return random.one_in(8) ? random.log_between(10 * microsecond, 300 * millisecond) : random.below(2 * millisecond);
}

void Sm::repeat(Time limit, const std::function<bool()>& open)
{
    for (unsigned int i = 1; service && i < repetitions; ++i)
        world->scheduler.after(limit / repetitions * i, [this, open] {
            if (open())
                (void)delay();
        });
}

// Paths

int Sm::query_path(ib_device* ca, const shim_path_query& wanted, unsigned int timeout_ms,
                   void (*answered)(int, sa_path_rec*, void*), void* context, ib_sa_query** query)
{
    world->scheduler.point();
    if (world->memory.fails())
        return -12;
    // Without an address of the subnet manager a query fails at once.
    if (!ca->active && world->scheduler.random().one_in(2))
        return -11;
    const int id = next_id_++;
    ++queries;
    auto& entry = queries_[id];
    entry = std::make_unique<ib_sa_query>(ib_sa_query{ca, wanted, answered, context});
    *query = entry.get();
    ++ca->queries;
    ++outstanding_;
    send(id, timeout_ms * millisecond / repetitions, repetitions);
    world->scheduler.point();
    return id;
}

void Sm::send(int id, Time pause, unsigned int more)
{
    const auto it = queries_.find(id);
    if (it == queries_.end() || it->second->answering)
        return;
    if (more == 0) {
        ++unanswered;
        answer(id, -110);
        return;
    }
    if (it->second->ca->active && !silent())
        world->scheduler.after(delay(), [this, id] { answer(id, 0); });
    world->scheduler.after(pause, [this, id, pause, more] { send(id, pause, more - 1); });
}

void Sm::answer(int id, int status)
{
    const auto it = queries_.find(id);
    if (it == queries_.end() || it->second->answering)
        return;
    ib_sa_query* query = it->second.get();
    query->answering = true;
    // The waiter may continue, and check for pending queries, before the call returns.
    --query->ca->queries;
    sa_path_rec record{query->asked.dgid, 0};
    if (status == 0) {
        status = -22;
        const ib_device* ca = world->port_of(query->asked.dgid);
        if (ca && ca->present && ca->active && refuses_until <= world->scheduler.now()) {
            record.dlid = ca->lid;
            status = 0;
            // The destination is that of the query, not of the response.
            record.dgid.raw[15] ^= world->scheduler.random().one_in(64);
        }
        if (lies()) {
            spoil(record);
            status = world->scheduler.random().one_in(4) ? -71 : 0;
        }
    }
    world->scheduler.spawn("path answer", Fiber::Kind::process, [this, id, query, status, record]() mutable {
        world->scheduler.point();
        query->answered(status, status ? nullptr : &record, query->context);
        queries_.erase(id);
        --outstanding_;
        world->scheduler.wake(&outstanding_);
    });
}

void Sm::cancel(int id, const ib_sa_query* query)
{
    world->scheduler.point();
    const auto it = queries_.find(id);
    if (it != queries_.end() && it->second.get() == query)
        world->scheduler.after(world->scheduler.random().below(millisecond), [this, id] { answer(id, -4); });
}

void Sm::wait_for_all()
{
    may_sleep("ib_sa_unregister_client");
    world->scheduler.wait(&outstanding_, "answers of the SA", [this] { return outstanding_ == 0; });
}

// Memberships

std::vector<ib_sa_multicast*> Sm::memberships_of(const ib_device& ca) const
{
    std::vector<ib_sa_multicast*> all;
    for (auto it = memberships_.lower_bound({ca.node, 0}); it != memberships_.end() && it->first.first == ca.node; ++it)
        all.push_back(it->second);
    return all;
}

ib_sa_multicast* Sm::join(ib_device* ca, const shim_mcmember& member, bool with_parameters,
                          int (*answered)(int, const shim_mcmember*, void*), void* context)
{
    may_sleep("ib_sa_join_multicast");
    const std::uint8_t* const mgid = member.mgid.raw;
    SIM_CHECK(mgid[0] == 0xff && mgid[1] == 0x12 && mgid[3] == 0x1b,
              "a group %02x%02x:%02x%02x is joined, which is none of IPoIB's", mgid[0], mgid[1], mgid[2], mgid[3]);
    if (world->memory.fails())
        return reinterpret_cast<ib_sa_multicast*>(std::intptr_t(-12));
    auto* membership = new ib_sa_multicast{++world->serials, ca, member, with_parameters, answered, context};
    const std::pair key{ca->node, membership->serial};
    memberships_[key] = membership;
    ++joins;
    ++ca->memberships;
    // Requests of one port for one group stay in order.
    Time& last = last_[{ca->node, name_of(member.mgid)}];
    Random& random = world->scheduler.random();
    constexpr Time limit = 3 * second;
    Time late = !ca->active || silent() ? limit + 1 : delay();
    const bool unanswered_in_time = late > limit;
    if (unanswered_in_time) {
        ++unanswered;
        late = limit + random.below(second);
    }
    repeat(limit, [this, key] {
        const auto it = memberships_.find(key);
        return it != memberships_.end() && it->second->state == ib_sa_multicast::State::asked;
    });
    last = std::max(last + 1, world->scheduler.now() + late);
    world->scheduler.at(last, [this, key, unanswered_in_time] {
        const auto it = memberships_.find(key);
        if (it == memberships_.end() || it->second->leaving)
            return;
        if (unanswered_in_time)
            call(it->second, -110, it->second->asked);
        else
            decide(it->second);
    });
    // The response may come before this returns.
    world->scheduler.point();
    if (random.one_in(8))
        world->scheduler.sleep(random.below(3 * millisecond));
    return membership;
}

int Sm::grant(ib_device& ca, const shim_mcmember& asked, bool with_parameters, shim_mcmember& granted)
{
    if (refuses_until > world->scheduler.now())
        return -22;
    const std::string name = name_of(asked.mgid);
    auto it = groups_.find(name);
    if (it == groups_.end()) {
        if (!with_parameters)
            return -22;
        shim_mcmember terms = asked;
        terms.mlid = next_mlid_++;
        it = groups_.emplace(name, Group{terms, {}, {}}).first;
    }
    Group& group = it->second;
    // The administrator recreates groups whose MTU differs from the link's.
    if (asked.mtu == link_mtu_)
        group.terms.mtu = asked.mtu;
    if (with_parameters && (asked.qkey != group.terms.qkey || asked.mtu != group.terms.mtu))
        return -22;
    (asked.join_state & full_member_join ? group.nodes : group.senders).insert(ca.node);
    granted = group.terms;
    granted.port_gid = asked.port_gid;
    granted.join_state = asked.join_state;
    return 0;
}

void Sm::decide(ib_sa_multicast* membership)
{
    shim_mcmember granted = membership->asked;
    const int status = grant(*membership->ca, membership->asked, membership->with_parameters, granted);
    if (lies())
        spoil(granted);
    call(membership, status, granted);
}

void Sm::call(ib_sa_multicast* membership, int status, const shim_mcmember& member)
{
    membership->state = status == 0 ? ib_sa_multicast::State::joined : ib_sa_multicast::State::over;
    ++membership->calls;
    world->scheduler.spawn("join answer", Fiber::Kind::process, [this, membership, status, member] {
        world->scheduler.point();
        int ret = 0;
        if (!membership->leaving) {
            world->lockdep.acquire(Lockdep::sa_callback, membership);
            ret = membership->answered(status, &member, membership->context);
            world->lockdep.release(membership);
        }
        --membership->calls;
        world->scheduler.wake(membership);
        if (ret == 0)
            return;
        SIM_CHECK(!membership->leaving, "a membership is freed twice");
        SIM_CHECK(memberships_.erase({membership->ca->node, membership->serial}) == 1, "a membership is freed twice");
        --membership->ca->memberships;
        world->scheduler.wait(membership, "answers of a join", [membership] { return membership->calls == 0; });
        delete membership;
    });
}

void Sm::leave(ib_sa_multicast* membership)
{
    may_sleep("ib_sa_free_multicast");
    const std::pair key{membership->ca->node, membership->serial};
    SIM_CHECK(memberships_.contains(key) && !membership->leaving, "a membership is left twice");
    world->lockdep.wait_for(Lockdep::sa_callback, membership);
    membership->leaving = true;
    world->scheduler.wait(membership, "answers of a join", [membership] { return membership->calls == 0; });
    const std::string name = name_of(membership->asked.mgid);
    ib_device& ca = *membership->ca;
    memberships_.erase(key);
    --ca.memberships;
    const auto others = memberships_of(ca);
    const bool last_one =
        std::none_of(others.begin(), others.end(), [&](const auto* one) { return name_of(one->asked.mgid) == name; });
    const bool full = membership->asked.join_state & full_member_join;
    if (membership->state == ib_sa_multicast::State::joined && last_one && ca.active && !silent()) {
        Time& last = last_[{ca.node, name}];
        last = std::max(last + 1, world->scheduler.now() + delay());
        world->scheduler.at(last, [this, name, full, node = ca.node] {
            const auto it = groups_.find(name);
            if (it != groups_.end())
                (full ? it->second.nodes : it->second.senders).erase(node);
            delete_unused_groups();
        });
    }
    delete membership;
}

void Sm::on_event(ib_device& ca, unsigned int event)
{
    if (event != SHIM_IB_EVENT_PORT_ERR && event != SHIM_IB_EVENT_LID_CHANGE &&
        event != SHIM_IB_EVENT_CLIENT_REREGISTER)
        return;
    for (ib_sa_multicast* membership : memberships_of(ca))
        if (membership->state == ib_sa_multicast::State::joined && !membership->leaving)
            call(membership, -102, membership->asked);
}

std::size_t Sm::joined() const
{
    return static_cast<std::size_t>(std::count_if(memberships_.begin(), memberships_.end(), [](const auto& entry) {
        return entry.second->state == ib_sa_multicast::State::joined;
    }));
}

std::size_t Sm::members(const shim_gid& mgid) const
{
    const auto it = groups_.find(name_of(mgid));
    return it == groups_.end() ? 0 : it->second.nodes.size();
}

bool Sm::knows(const ib_device& ca, const shim_gid& mgid) const
{
    const auto all = memberships_of(ca);
    return std::any_of(all.begin(), all.end(), [&](const auto* one) {
        return one->state == ib_sa_multicast::State::joined &&
               std::memcmp(one->asked.mgid.raw, mgid.raw, sizeof(mgid.raw)) == 0;
    });
}

} // namespace sim

using sim::world;

void shim_ib_sa_register_client() {}
void shim_ib_sa_unregister_client() { world->sm.wait_for_all(); }
int shim_helper_sa_path_query(ib_device* ca, std::uint32_t, const shim_path_query* wanted, unsigned int timeout_ms,
                              void (*answered)(int, sa_path_rec*, void*), void* context, ib_sa_query** query)
{
    return world->sm.query_path(ca, *wanted, timeout_ms, answered, context, query);
}
void shim_ib_sa_cancel_query(int id, ib_sa_query* query) { world->sm.cancel(id, query); }
std::uint32_t shim_path_dlid(sa_path_rec* record) { return record->dlid; }
std::uint8_t shim_path_sl(const sa_path_rec*) { return 0; }
unsigned int shim_ib_rate_to_mbps(const sa_path_rec*) { return 40000; }
ib_sa_multicast* shim_helper_sa_join(ib_device* ca, std::uint32_t, const shim_mcmember* member, bool with_parameters,
                                     int (*answered)(int, const shim_mcmember*, void*), void* context)
{
    return world->sm.join(ca, *member, with_parameters, answered, context);
}
void shim_helper_sa_leave(ib_sa_multicast* membership) { world->sm.leave(membership); }
bool shim_ib_sa_get_mcmember_rec(ib_device* ca, std::uint32_t, const shim_gid* mgid)
{
    return world->sm.knows(*ca, *mgid);
}
int shim_rdma_mtu_enum_to_int(ib_device*, std::uint32_t, int code) { return code >= 1 && code <= 5 ? 128 << code : -1; }
