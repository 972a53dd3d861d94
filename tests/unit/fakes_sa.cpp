// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The subnet administrator.
#include "fakes_inside.hpp"

#include <algorithm>

#include <ipoib/mgid.hpp>

// State of the fake

void World::answer_cancelled_paths()
{
    // A response may cause another query.
    for (std::size_t i = 0; i < paths.size(); ++i) {
        if (!paths[i].open || !paths[i].cancelled)
            continue;
        paths[i].open = false;
        sa_path_rec record{5};
        paths[i].answered(status_of_cancelled, status_of_cancelled ? nullptr : &record, paths[i].context);
    }
}

std::size_t World::open_paths() const
{
    return static_cast<std::size_t>(std::count_if(paths.begin(), paths.end(), [](const auto& p) { return p.open; }));
}

void World::answer_path(int status, std::uint16_t dlid)
{
    while (answered_paths < paths.size() && !paths[answered_paths].open)
        ++answered_paths;
    ASSERT_LT(answered_paths, paths.size()) << "no path was asked for";
    PathQuery& query = paths[answered_paths];
    query.open = false;
    sa_path_rec record{dlid};
    query.answered(status, status ? nullptr : &record, query.context);
}

ib_sa_multicast* World::join_of(const ipoib::Gid& mgid)
{
    for (ib_sa_multicast* join : open_joins)
        if (ipoib::Gid::from(join->asked.mgid) == mgid)
            return join;
    return nullptr;
}

void World::answer_join(ib_sa_multicast* join, int status, std::uint16_t mlid)
{
    ASSERT_NE(join, nullptr);
    std::erase(open_joins, join);
    shim_mcmember member = join->asked;
    member.mlid = mlid;
    if (!join->with_parameters) {
        member.qkey = group_qkey;
        member.mtu = group_mtu;
        member.rate = 3;
        member.sl = 1;
        member.traffic_class = 2;
        member.hop_limit = 3;
        member.flow_label = 4;
    }
    if (join->answered(status, &member, join->context)) {
        std::erase(memberships, join);
        delete join;
    }
}

void World::answer_broadcast(int status, std::uint8_t mtu)
{
    group_mtu = mtu;
    answer_join(join_of(ipoib::broadcast_gid(ipoib::PKey(ca.pkey))), status, 0xc000);
}

// sa.h

void shim_ib_sa_register_client() { world->registered.push_back("sa"); }
void shim_ib_sa_unregister_client()
{
    EXPECT_EQ(world->open_paths(), 0U) << "a path record query is pending at the end";
    unregister("sa");
}
int shim_helper_sa_path_query(ib_device*, std::uint32_t, const shim_path_query* wanted, unsigned int limit_ms,
                              void (*answered)(int, sa_path_rec*, void*), void* context, ib_sa_query** query)
{
    if (out_of_memory())
        return -12;
    if (world->sa_unknown)
        return -11;
    const int id = static_cast<int>(++world->path_queries);
    world->paths.push_back({id, *wanted, limit_ms, answered, context});
    *query = reinterpret_cast<ib_sa_query*>(std::intptr_t(id));
    return id;
}
void shim_ib_sa_cancel_query(int id, ib_sa_query*)
{
    for (PathQuery& query : world->paths) {
        if (query.id == id && query.open)
            query.cancelled = true;
    }
}
ib_sa_multicast* shim_helper_sa_join(ib_device*, std::uint32_t, const shim_mcmember* member, bool with_parameters,
                                     int (*answered)(int, const shim_mcmember*, void*), void* context)
{
    may_sleep();
    ++world->join_requests;
    if (out_of_memory())
        return error_pointer<ib_sa_multicast>(-12);
    auto* join = new ib_sa_multicast{*member, with_parameters, answered, context};
    world->open_joins.push_back(join);
    world->memberships.push_back(join);
    return join;
}
void shim_helper_sa_leave(ib_sa_multicast* membership)
{
    may_sleep();
    ++world->leaves;
    if (world->answer_while_leaving) {
        EXPECT_EQ(membership->answered(-110, &membership->asked, membership->context), 0) << "would be freed twice";
    }
    EXPECT_EQ(std::erase(world->memberships, membership), 1U) << "left twice";
    std::erase(world->open_joins, membership);
    delete membership;
}
void shim_path_copy(sa_path_rec* to, const sa_path_rec* from) { *to = *from; }
bool shim_ib_sa_get_mcmember_rec(ib_device*, std::uint32_t, const shim_gid* mgid)
{
    return world->known_groups.contains(text(mgid, 16));
}
std::uint32_t shim_path_dlid(sa_path_rec* record) { return record->dlid; }
std::uint8_t shim_path_sl(const sa_path_rec*) { return 1; }
unsigned int shim_ib_rate_to_mbps(const sa_path_rec*) { return 40000; }
