// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// include/shim/device.h and ah.h: attributes of HCA and port, protection domains, address handles, events.
#include <algorithm>
#include <cstring>

#include "world.hpp"

using namespace sim;

struct shim_event_handler {
    std::uint64_t unused;
};

namespace {

constexpr std::uint32_t ah_magic = 0xadd7e55, dead = 0xdeadbeef;

ib_ah* create_ah(ib_pd* pd, std::uint16_t dlid, bool multicast, const shim_gid& dgid)
{
    may_sleep("rdma_create_ah");
    if (world->memory.fails())
        return error_pointer<ib_ah>(-12);
    ++pd->ca->ahs;
    ++pd->users;
    return new ib_ah{ah_magic, pd, dlid, multicast, dgid};
}

} // namespace

namespace sim {

void dispatch(ib_device& ca, unsigned int event)
{
    SIM_NOTE("%s: event %d", ca.name.c_str(), event);
    world->scheduler.spawn("event of " + ca.name, Fiber::Kind::process, [&ca, event] {
        ++ca.dispatches;
        world->lockdep.acquire(Lockdep::events, &ca.handlers);
        // ib_core's own handler, which ends memberships, is called among the others.
        const bool memberships_first = world->scheduler.random().one_in(2);
        if (memberships_first)
            world->sm.on_event(ca, event);
        for (const auto& handler : std::vector(ca.handlers)) {
            handler.on_event(handler.context, event, 1);
            world->scheduler.point();
        }
        if (!memberships_first)
            world->sm.on_event(ca, event);
        world->lockdep.release(&ca.handlers);
        --ca.dispatches;
        world->scheduler.wake(&ca.dispatches);
    });
}

void check_nothing_left(const ib_device& ca)
{
    SIM_CHECK(ca.qps.empty(), "%s: %zu queue pairs are left", ca.name.c_str(), ca.qps.size());
    SIM_CHECK(!ca.pds && !ca.cqs && !ca.srqs, "%s: %ld protection domains, %ld completion queues, %ld SRQs are left",
              ca.name.c_str(), ca.pds, ca.cqs, ca.srqs);
    SIM_CHECK(!ca.ahs, "%s: %ld address handles are left", ca.name.c_str(), ca.ahs);
    SIM_CHECK(!ca.cm_ids, "%s: %ld connections are left", ca.name.c_str(), ca.cm_ids);
    SIM_CHECK(!ca.memberships, "%s: %ld memberships are left", ca.name.c_str(), ca.memberships);
    SIM_CHECK(!ca.queries, "%s: %ld path record queries are pending", ca.name.c_str(), ca.queries);
    SIM_CHECK(ca.handlers.empty(), "%s: event handlers are left", ca.name.c_str());
}

} // namespace sim

const char* shim_ib_device_name(const ib_device* ca) { return ca->name.c_str(); }
unsigned int shim_ib_max_send_sge(const ib_device* ca) { return ca->max_sges; }
std::uint64_t shim_ib_device_cap_flags(const ib_device* ca)
{
    return ca->features & SHIM_FEATURE_IP_CSUM ? SHIM_IB_DEVICE_UD_IP_CSUM : 0;
}
std::uint64_t shim_ib_kernel_cap_flags(const ib_device* ca)
{
    return (ca->features & SHIM_FEATURE_TSO ? SHIM_IBK_UD_TSO : 0) |
           (ca->features & SHIM_FEATURE_VF ? SHIM_IBK_VIRTUAL_FUNCTION : 0);
}
unsigned int shim_ib_num_comp_vectors(const ib_device*) { return 3; }
std::uint32_t shim_rdma_end_port(const ib_device*) { return 1; }
bool shim_rdma_protocol_ib(const ib_device*, std::uint32_t) { return true; }

int shim_helper_ib_query_port(ib_device* ca, std::uint32_t, shim_port* port)
{
    may_sleep("ib_query_port");
    *port = {ca->active, ca->lid, 4096, ca->mtu, 4, 2, false};
    return 0;
}
int shim_rdma_query_gid(ib_device* ca, std::uint32_t, int index, shim_gid* gid)
{
    world->scheduler.point();
    if (index)
        return -22;
    *gid = ca->gid;
    return 0;
}
int shim_ib_ops_query_gid(ib_device* ca, std::uint32_t port, int index, shim_gid* gid)
{
    return shim_rdma_query_gid(ca, port, index, gid);
}
// These HCAs report all changes.
void shim_ib_dispatch_gid_change(ib_device*, std::uint32_t) {}
int shim_helper_rdma_find_gid(ib_device* ca, std::uint32_t, const shim_gid* gid, std::uint16_t* index)
{
    world->scheduler.point();
    *index = 0;
    return std::memcmp(ca->gid.raw, gid->raw, sizeof(gid->raw)) == 0 ? 0 : -2;
}
int shim_ib_query_pkey(ib_device* ca, std::uint32_t, std::uint16_t index, std::uint16_t* pkey)
{
    world->scheduler.point();
    *pkey = ca->pkeys.at(index);
    return 0;
}
int shim_ib_find_pkey(ib_device* ca, std::uint32_t, std::uint16_t pkey, std::uint16_t* index)
{
    world->scheduler.point();
    for (std::size_t i = 0; i < ca->pkeys.size(); ++i)
        if (ca->pkeys[i] && (ca->pkeys[i] & 0x7fff) == (pkey & 0x7fff)) {
            *index = static_cast<std::uint16_t>(i);
            return 0;
        }
    return -2;
}
int shim_ib_find_cached_pkey(ib_device* ca, std::uint32_t port, std::uint16_t pkey, std::uint16_t* index)
{
    return shim_ib_find_pkey(ca, port, pkey, index);
}
int shim_ptr_err_or_zero(const void* pointer)
{
    const auto value = reinterpret_cast<std::intptr_t>(pointer);
    return value < 0 && value >= -4095 ? static_cast<int>(value) : 0;
}

ib_pd* shim_ib_alloc_pd(ib_device* ca)
{
    may_sleep("ib_alloc_pd");
    if (world->memory.fails())
        return error_pointer<ib_pd>(-12);
    ++ca->pds;
    return new ib_pd{ca};
}
void shim_ib_dealloc_pd(ib_pd* pd)
{
    may_sleep("ib_dealloc_pd");
    SIM_CHECK(pd->users == 0, "a protection domain is destroyed that %ld use", pd->users);
    --pd->ca->pds;
    delete pd;
}
std::uint32_t shim_ib_pd_lkey(const ib_pd*) { return 7; }

ib_ah* shim_helper_create_ah(ib_pd* pd, const shim_ah_attributes* attributes)
{
    return create_ah(pd, attributes->dlid, attributes->dgid.raw[0] == 0xff, attributes->dgid);
}
ib_ah* shim_helper_create_ah_from_path(ib_pd* pd, std::uint32_t, sa_path_rec* record)
{
    // Some HCAs create a handle for an invalid address too.
    const bool unicast = record->dlid != 0 && record->dlid < 0xc000;
    if (!unicast && world->scheduler.random().one_in(2))
        return error_pointer<ib_ah>(-22);
    return create_ah(pd, record->dlid, false, record->dgid);
}
void shim_rdma_destroy_ah(ib_ah* ah)
{
    may_sleep("rdma_destroy_ah");
    SIM_CHECK(ah->magic == ah_magic, "an address handle is destroyed twice");
    ib_device* ca = ah->pd->ca;
    for (const auto& [_, qp] : ca->qps)
        for (const Send& send : qp->sends)
            SIM_CHECK(send.ah != ah, "an address handle is destroyed while the HCA uses it");
    ah->magic = dead;
    --ca->ahs;
    --ah->pd->users;
    delete ah;
}

void shim_helper_register_event_handler(ib_device* ca, shim_event_handler* handler,
                                        void (*on_event)(void*, unsigned int, std::uint32_t), void* context)
{
    may_sleep("ib_register_event_handler");
    ca->handlers.push_back({handler, on_event, context});
}
void shim_ib_unregister_event_handler(shim_event_handler* handler)
{
    may_sleep("ib_unregister_event_handler");
    for (auto& ca : world->devices) {
        const auto it = std::find_if(ca->handlers.begin(), ca->handlers.end(),
                                     [handler](const auto& one) { return one.handler == handler; });
        if (it == ca->handlers.end())
            continue;
        world->lockdep.wait_for(Lockdep::events, &ca->handlers);
        world->scheduler.wait(&ca->dispatches, "event handlers", [&ca] { return ca->dispatches == 0; });
        std::erase_if(ca->handlers, [handler](const auto& one) { return one.handler == handler; });
        return;
    }
    fail("an event handler is unregistered that is not registered");
}

// Arrival and removal of HCAs

int shim_ib_register_client()
{
    may_sleep("ib_register_client");
    world->driver_loaded = true;
    for (auto& ca : world->devices)
        if (ca->present)
            world->add_device(*ca);
    return 0;
}
void shim_ib_unregister_client()
{
    may_sleep("ib_unregister_client");
    world->driver_loaded = false;
    for (auto& ca : world->devices)
        world->remove_device(*ca);
}

namespace sim {

void World::add_device(ib_device& ca)
{
    scheduler.wait(&ca.users, "client data", [&ca] { return ca.users == 0 && !ca.changing; });
    if (ca.added || !driver_loaded)
        return;
    ca.changing = true;
    if (ipoib_add_device(&ca, &ca.state) != 0)
        ca.state = nullptr;
    ca.added = true;
    ca.changing = false;
    scheduler.wake(&ca.users);
}

void World::remove_device(ib_device& ca)
{
    scheduler.wait(&ca.users, "client data", [&ca] { return !ca.changing; });
    if (!ca.added)
        return;
    ca.changing = true;
    ca.added = false;
    lockdep.wait_for(Lockdep::client_data, &ca);
    scheduler.wait(&ca.users, "client data", [&ca] { return ca.users == 0; });
    if (void* state = std::exchange(ca.state, nullptr))
        ipoib_remove_device(&ca, state);
    scheduler.wait(&ca.dispatches, "event handlers", [&ca] { return ca.dispatches == 0; });
    check_nothing_left(ca);
    ca.changing = false;
    scheduler.wake(&ca.users);
}

} // namespace sim
