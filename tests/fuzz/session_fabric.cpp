// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Events of the fabric: responses of the subnet administrator, messages of the communication manager, port events.
#include "session.hpp"

#include <algorithm>

#include <shim/cm.h>
#include <shim/device.h>
#include <shim/sa.h>

namespace ipoib::fuzz {

namespace {

constexpr int net_reset = -102, timed_out = -110, invalid = -22, interrupted = -4;

} // namespace

int Session::status()
{
    const std::uint8_t which = input_.byte();
    switch (which) {
    case 0:
        return invalid;
    case 1:
        return timed_out;
    case 2:
        return interrupted;
    default:
        return which < 128 ? -static_cast<int>(which) : 0;
    }
}

// Subnet administrator

void Session::answer_path()
{
    std::vector<PathQuery*> open;
    for (PathQuery& query : world_.paths)
        if (query.open)
            open.push_back(&query);
    if (open.empty())
        return;
    PathQuery& query = *open[input_.below(open.size())];
    query.open = false;
    const int error = status();
    sa_path_rec record{input_.u16()};
    query.answered(error, error ? nullptr : &record, query.context);
}

void Session::answer_join()
{
    if (world_.open_joins.empty())
        return;
    ib_sa_multicast* const join = world_.open_joins[input_.below(world_.open_joins.size())];
    const std::uint8_t kind = input_.byte();
    if (kind & 1) {
        world_.group_mtu = kind & 2 ? 4 : 5;
        world_.answer_join(join, 0, static_cast<std::uint16_t>(0xc000 + (kind >> 2)));
        return;
    }
    int error = status();
    // Delivered to members only.
    if (error == net_reset)
        error = timed_out;
    shim_mcmember member = join->asked;
    const auto fields = input_.some_bytes();
    std::copy_n(fields.begin(), std::min(fields.size(), sizeof(member) - 2 * sizeof(shim_gid)),
                reinterpret_cast<std::uint8_t*>(&member) + 2 * sizeof(shim_gid));
    std::erase(world_.open_joins, join);
    if (join->answered(error, &member, join->context)) {
        std::erase(world_.memberships, join);
        delete join;
    } else {
        require(error == 0, "a join that failed keeps its membership");
    }
}

// The subnet manager restarted: members get an error.
void Session::forget_membership()
{
    std::vector<ib_sa_multicast*> members;
    for (ib_sa_multicast* membership : world_.memberships)
        if (!std::count(world_.open_joins.begin(), world_.open_joins.end(), membership))
            members.push_back(membership);
    if (members.empty())
        return;
    ib_sa_multicast* const one = members[input_.below(members.size())];
    require(one->answered(net_reset, &one->asked, one->context) == 0, "a membership that was forgotten would be freed");
}

void Session::answer_when_cancelled()
{
    const std::uint8_t kind = input_.byte();
    world_.status_of_cancelled = kind & 1 ? 0 : kind & 2 ? timed_out : interrupted;
    world_.answer_while_leaving = kind & 4;
}

// Port

void Session::raise_event()
{
    constexpr unsigned int events[] = {
        SHIM_IB_EVENT_SM_CHANGE,  SHIM_IB_EVENT_CLIENT_REREGISTER, SHIM_IB_EVENT_PORT_ERR,   SHIM_IB_EVENT_PORT_ACTIVE,
        SHIM_IB_EVENT_LID_CHANGE, SHIM_IB_EVENT_PKEY_CHANGE,       SHIM_IB_EVENT_GID_CHANGE,
    };
    world_.event(events[input_.below(std::size(events))], 1);
}

void Session::change_port()
{
    const std::uint8_t what = input_.byte();
    ib_device& ca = world_.ca;
    switch (what & 7) {
    case 0:
        ca.port.active = what & 8;
        break;
    case 1:
        ca.port.lid = input_.u16();
        break;
    case 2:
        ca.port.active_mtu = std::min(256U << (what >> 3) % 5, ca.port.max_mtu);
        break;
    case 3:
        ca.pkey = input_.u16();
        break;
    case 4:
        world_.pkeys_found.assign(what >> 6, input_.u16());
        world_.pkeys_found.insert(what & 8 ? world_.pkeys_found.begin() : world_.pkeys_found.end(), 0xffff);
        break;
    case 5:
        world_.pkeys_found.clear();
        break;
    case 6:
        ca.gid.raw[8 + (what >> 3) % 8] = input_.byte();
        break;
    default:
        ca.gids.resize(what >> 3 & 3);
        for (shim_gid& gid : ca.gids)
            std::copy_n(input_.bytes(Gid::size).begin(), Gid::size, gid.raw);
        break;
    }
}

// Communication manager

// As in the kernel: a non-zero result of the driver destroys the identifier.
int Session::deliver(ib_cm_id* id, shim_cm_message& message)
{
    const int answer = id->endpoint->handle(id->endpoint, id, &message);
    require(world_.cm_ids.contains(id), "an identifier is destroyed from within its event");
    if (answer) {
        world_.cm_ids.erase(id);
        std::erase(world_.asked, id);
        delete id;
    }
    return answer;
}

// CM identifiers in an order that does not change between runs.
ib_cm_id* Session::identifier()
{
    if (world_.cm_ids.empty())
        return nullptr;
    std::vector<ib_cm_id*> ids(world_.cm_ids.begin(), world_.cm_ids.end());
    std::sort(ids.begin(), ids.end(), [](auto* a, auto* b) { return a->number < b->number; });
    return ids[input_.below(ids.size())];
}

void Session::request()
{
    ib_cm_id* listener = nullptr;
    const std::uint64_t wanted = input_.below(4);
    for (ib_cm_id* id : world_.cm_ids)
        if (id->listens && (!listener || id->number % 4 == wanted))
            listener = id;
    if (!listener)
        return;
    const std::uint8_t kind = input_.byte();
    auto data = input_.some_bytes();
    data.resize(SHIM_CM_REQ_PRIVATE_BYTES);
    shim_cm_message message{};
    message.event = SHIM_IB_CM_REQ_RECEIVED;
    message.private_data = data.data();
    message.peer.raw[15] = kind & 3;
    message.peer_lid = kind >> 3 & 1;
    message.reliable = !(kind & 4);
    message.packet_life_time = kind == 0xff ? 31 : 18;
    ib_cm_id* const id = world_.new_cm_id(listener->endpoint);
    deliver(id, message);
}

void Session::reply()
{
    if (world_.asked.empty())
        return;
    ib_cm_id* const id = world_.asked[input_.below(world_.asked.size())];
    auto data = input_.some_bytes();
    data.resize(SHIM_CM_REP_PRIVATE_BYTES);
    shim_cm_message message{};
    message.event = SHIM_IB_CM_REP_RECEIVED;
    message.private_data = data.data();
    deliver(id, message);
}

// Any message to any identifier, whether or not it fits the earlier ones.
void Session::say()
{
    ib_cm_id* const id = identifier();
    if (!id)
        return;
    std::vector<std::uint8_t> data(SHIM_CM_REP_PRIVATE_BYTES);
    shim_cm_message message{};
    constexpr unsigned int events[] = {
        SHIM_IB_CM_MRA_RECEIVED, SHIM_IB_CM_REQ_RECEIVED,  SHIM_IB_CM_REP_RECEIVED,  SHIM_IB_CM_RTU_RECEIVED,
        SHIM_IB_CM_REJ_RECEIVED, SHIM_IB_CM_DREQ_RECEIVED, SHIM_IB_CM_DREP_RECEIVED, SHIM_IB_CM_REQ_ERROR,
        SHIM_IB_CM_REP_ERROR,    SHIM_IB_CM_DREQ_ERROR,    SHIM_IB_CM_TIMEWAIT_EXIT,
    };
    message.event = events[input_.below(std::size(events))];
    // A REQ does not arrive on an identifier that sent or received one.
    if (message.event == SHIM_IB_CM_REQ_RECEIVED && !id->listens)
        return;
    if (message.event == SHIM_IB_CM_REQ_RECEIVED || message.event == SHIM_IB_CM_REP_RECEIVED)
        message.private_data = data.data();
    // A listener gets REQs only.
    if (id->listens)
        return;
    if (message.event == SHIM_IB_CM_REJ_RECEIVED)
        message.reason = input_.byte();
    deliver(id, message);
}

void Session::change_cm()
{
    const std::uint8_t kind = input_.byte();
    world_.fail_cm = kind & 7;
    world_.mute = kind & 8;
    world_.refuse_srq = kind & 16;
}

} // namespace ipoib::fuzz
