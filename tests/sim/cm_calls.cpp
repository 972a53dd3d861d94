// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// include/shim/cm.h, the calls of the driver: creation and destruction of identifiers, messages that the driver sends.
#include "cm.hpp"

#include <algorithm>

#include "world.hpp"

namespace sim {

namespace {

using State = ib_cm_id::State;

constexpr unsigned int rej_timeout = 4, rej_consumer = 28;
// Limits of an interface on REQs (security.md).
constexpr unsigned int requests_at_once = 1024, requests_per_second = 256;

// Private data as a message carries it: zeros follow (IBA 12.6.5, 12.6.8).
std::vector<std::uint8_t> padded(const void* data, unsigned int bytes, unsigned int size)
{
    const auto* first = static_cast<const std::uint8_t*>(data);
    std::vector<std::uint8_t> all(first, first + bytes);
    all.resize(size);
    return all;
}

} // namespace

ib_cm_id* Cm::create(ib_device* ca, shim_cm_endpoint* endpoint)
{
    may_sleep("ib_create_cm_id");
    if (world->memory.fails())
        return reinterpret_cast<ib_cm_id*>(std::intptr_t(-12));
    auto* id = new ib_cm_id;
    id->serial = ++world->serials;
    id->ca = ca;
    id->endpoint = endpoint;
    ids_[id->serial] = id;
    ++ca->cm_ids;
    return id;
}

void Cm::destroy(ib_cm_id* id)
{
    may_sleep("ib_destroy_cm_id");
    const auto it = ids_.find(id->serial);
    SIM_CHECK(it != ids_.end() && it->second == id && !id->destroyed, "an identifier is destroyed twice");
    SIM_CHECK(id->handler != world->scheduler.current(), "an identifier is destroyed from within its handler");
    world->lockdep.wait_for(Lockdep::cm_handler, id);
    end(id);
}

void Cm::end(ib_cm_id* id)
{
    Mad refusal{Kind::rej, id->ca->node, id->remote_node, id->serial, id->remote_id};
    switch (id->state) {
    case State::req_sent:
        refusal.reason = rej_timeout;
        // The identifier at the other side is unknown: look it up by this one's number.
        for (const auto& [serial, other] : ids_)
            if (other->passive && other->remote_id == id->serial)
                refusal.to_id = serial;
        send(refusal);
        break;
    case State::req_received:
    case State::rep_sent:
    case State::rep_received:
        refusal.reason = rej_consumer;
        send(refusal);
        break;
    case State::established:
        disconnect(id, false);
        break;
    case State::dreq_received:
        send({Kind::drep, id->ca->node, id->remote_node, id->serial, id->remote_id});
        break;
    default:
        break;
    }
    const bool waits =
        id->state == State::dreq_sent || id->state == State::dreq_received || id->state == State::time_wait;
    id->destroyed = true;
    world->scheduler.wait(id, "messages of the CM", [id] { return !id->scheduled && id->requests == 0; });
    if (id->remembered) {
        // Time wait lasts longer than the identifier.
        const auto key = std::pair(id->ca->node, std::pair(id->remote_node, id->remote_qpn));
        const auto forget = [this, key, serial = id->serial] {
            const auto it = remote_qps_.find(key);
            if (it != remote_qps_.end() && it->second == serial)
                remote_qps_.erase(it);
        };
        if (waits)
            world->scheduler.after(time_wait, forget);
        else
            forget();
    }
    ids_.erase(id->serial);
    --id->ca->cm_ids;
    delete id;
}

void Cm::check_allowance(unsigned int node, std::uint64_t service)
{
    Allowance& allowance = allowances_[{node, service}];
    const Time now = world->scheduler.now();
    allowance.left += static_cast<double>(now - allowance.when) / second * requests_per_second;
    allowance.left = std::min<double>(allowance.left, requests_at_once) - 1;
    allowance.when = now;
    // REQs of one tick are counted together.
    SIM_CHECK(allowance.left >= -2, "node %u takes more than %u REQs at once and %u a second", node, requests_at_once,
              requests_per_second);
}

int Cm::listen(ib_cm_id* id, std::uint64_t service)
{
    may_sleep("ib_cm_listen");
    for (const auto& [_, other] : ids_)
        if (other->ca == id->ca && other->state == State::listens && other->service == service && !other->destroyed)
            return -16;
    id->service = service;
    allowances_[{id->ca->node, service}] = {requests_at_once, world->scheduler.now()};
    enter(id, State::listens);
    return 0;
}

int Cm::send_req(ib_cm_id* id, const shim_cm_request& request)
{
    may_sleep("ib_send_cm_req");
    if (world->memory.fails())
        return -12;
    SIM_CHECK(id->state == State::idle, "a REQ is sent in another state than idle");
    const ib_device* to = world->fabric.owner(request.path->dlid);
    id->remote_node = to ? to->node : nowhere;
    id->local_qpn = request.qpn;
    id->wanted_service = request.service_id;
    const auto existing = static_cast<unsigned int>(std::count_if(ids_.begin(), ids_.end(), [id](const auto& entry) {
        const ib_cm_id* const other = entry.second;
        return other->ca == id->ca && !other->passive && other->wanted_service == id->wanted_service &&
               other->remote_node == id->remote_node && other->state == State::established;
    }));
    // The driver keeps a connection that it has left until its sends are complete.
    const unsigned int connections =
        to ? std::min(existing, world->stack.established(id->ca->node, to->gid.raw)) : existing;
    SIM_CHECK(connections < shim_num_online_cpus(), "node %u requests connection %u to node %u", id->ca->node,
              connections + 1, id->remote_node);
    ++(connections ? further_requests : requests);
    stale_since_.erase({id->ca->node, id->remote_node});
    Mad mad{Kind::req, id->ca->node, id->remote_node, id->serial, 0};
    mad.service = request.service_id;
    mad.qpn = request.qpn;
    mad.data = padded(request.private_data, request.private_bytes, SHIM_CM_REQ_PRIVATE_BYTES);
    enter(id, State::req_sent);
    keep_sending(id, mad, SHIM_IB_CM_REQ_ERROR);
    world->scheduler.point();
    return 0;
}

int Cm::send_rep(ib_cm_id* id, const shim_cm_reply& reply)
{
    may_sleep("ib_send_cm_rep");
    if (id->state != State::req_received)
        return -22;
    if (world->memory.fails())
        return -12;
    id->local_qpn = reply.qpn;
    check_allowance(id->ca->node, id->service);
    Mad mad{Kind::rep, id->ca->node, id->remote_node, id->serial, id->remote_id};
    mad.qpn = reply.qpn;
    mad.data = padded(reply.private_data, reply.private_bytes, SHIM_CM_REP_PRIVATE_BYTES);
    enter(id, State::rep_sent);
    keep_sending(id, mad, SHIM_IB_CM_REP_ERROR);
    world->scheduler.point();
    return 0;
}

int Cm::send_rtu(ib_cm_id* id)
{
    may_sleep("ib_send_cm_rtu");
    if (id->state != State::rep_received)
        return -22;
    if (world->memory.fails())
        return -12;
    enter(id, State::established);
    send({Kind::rtu, id->ca->node, id->remote_node, id->serial, id->remote_id});
    return 0;
}

int Cm::send_drep(ib_cm_id* id)
{
    may_sleep("ib_send_cm_drep");
    if (id->state != State::dreq_received)
        return -22;
    send({Kind::drep, id->ca->node, id->remote_node, id->serial, id->remote_id});
    enter_time_wait(id);
    return 0;
}

void Cm::send_rej(ib_cm_id* id, unsigned int reason)
{
    may_sleep("ib_send_cm_rej");
    if (id->state != State::req_received && id->state != State::rep_received && id->state != State::rep_sent)
        return;
    Mad mad{Kind::rej, id->ca->node, id->remote_node, id->serial, id->remote_id};
    mad.reason = reason;
    enter(id, State::idle);
    send(mad);
}

bool Cm::may_get_ready(const ib_cm_id* id) const
{
    return id->state == State::req_received || id->state == State::rep_sent || id->state == State::rep_received ||
           id->state == State::established;
}

void Cm::remote_of(const ib_cm_id* id, unsigned int& node, std::uint32_t& qpn) const
{
    node = id->remote_node;
    qpn = id->remote_qpn;
}

} // namespace sim

using sim::world;

ib_cm_id* shim_ib_create_cm_id(ib_device* ca, shim_cm_endpoint* endpoint) { return world->cm.create(ca, endpoint); }
void shim_cm_set_context(ib_cm_id* id, shim_cm_endpoint* endpoint) { id->endpoint = endpoint; }
void shim_ib_destroy_cm_id(ib_cm_id* id) { world->cm.destroy(id); }
int shim_ib_cm_listen(ib_cm_id* id, std::uint64_t service) { return world->cm.listen(id, service); }
int shim_ib_send_cm_req(ib_cm_id* id, const shim_cm_request* request) { return world->cm.send_req(id, *request); }
int shim_ib_send_cm_rep(ib_cm_id* id, const shim_cm_reply* reply) { return world->cm.send_rep(id, *reply); }
int shim_ib_send_cm_rtu(ib_cm_id* id) { return world->cm.send_rtu(id); }
int shim_ib_send_cm_drep(ib_cm_id* id) { return world->cm.send_drep(id); }
void shim_ib_send_cm_rej(ib_cm_id* id, shim_cm_reason reason) { world->cm.send_rej(id, reason); }
void shim_path_copy(sa_path_rec* to, const sa_path_rec* from) { *to = *from; }
std::uint32_t shim_get_random_u32() { return static_cast<std::uint32_t>(world->scheduler.random().next() >> 32); }
