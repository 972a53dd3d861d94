// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// include/shim/cm.h, the messages.
#include "cm.hpp"

#include <algorithm>
#include <cstring>

#include "world.hpp"

namespace sim {

namespace {

using State = ib_cm_id::State;

// 4.096 us * 2^20, repeated 15 times.
constexpr Time answer_timeout = 4300 * millisecond;
constexpr unsigned int max_tries = 16;
constexpr unsigned int rej_invalid_service = 8, rej_stale = 10, rej_timeout = 4, rej_consumer = 28;
constexpr Time time_wait = 2 * second;
// Destination of LIDs without an owner.
constexpr unsigned int nowhere = Cm::nobody;
// Back-off of a host after a stale rejection for no reason.
constexpr Time max_stale = second;
// Limits of an interface on REQs (security.md).
constexpr unsigned int requests_at_once = 1024, requests_per_second = 256;

void enter(ib_cm_id* id, State state)
{
    id->state = state;
    ++id->epoch;
}

} // namespace

ib_cm_id* Cm::find(std::uint64_t serial) const
{
    const auto it = ids_.find(serial);
    return it == ids_.end() || it->second->destroyed ? nullptr : it->second;
}

ib_cm_id* Cm::create(ib_device* ca, void* context)
{
    may_sleep("ib_create_cm_id");
    if (world->memory.fails())
        return reinterpret_cast<ib_cm_id*>(std::intptr_t(-12));
    auto* id = new ib_cm_id;
    id->serial = ++world->serials;
    id->ca = ca;
    id->context = context;
    ids_[id->serial] = id;
    ++ca->cm_ids;
    return id;
}

// Messages

void Cm::send(const Mad& sent)
{
    const ib_device& from = *world->devices[sent.from];
    Random& random = world->scheduler.random();
    Mad mad = sent;
    if (hostile()) {
        change(mad);
        // Delivers a duplicate, later.
        if (mad.to != nowhere && random.one_in(4))
            world->scheduler.after(random.log_between(microsecond, 10 * second), [this, mad] {
                if (world->devices[mad.to]->active && world->devices[mad.to]->present)
                    arrive(mad);
            });
        // Loses the message, for one the RTU.
        if (random.one_in(8) || (mad.kind == Kind::rtu && random.one_in(2)))
            return;
    }
    if (mad.to == nowhere || !from.active || random.one_in(loss_one_in) || random.one_in(from.loss_one_in))
        return;
    const Time flight = 20 * microsecond + (random.one_in(16) ? random.log_between(microsecond, 100 * millisecond)
                                                              : random.below(300 * microsecond));
    world->scheduler.after(flight, [this, mad] {
        const ib_device& to = *world->devices[mad.to];
        if (to.active && to.present && !world->scheduler.random().one_in(to.loss_one_in))
            arrive(mad);
    });
}

void Cm::keep_sending(ib_cm_id* id, const Mad& mad, unsigned int given_up)
{
    send(mad);
    auto again = std::make_shared<std::function<void(unsigned int)>>();
    *again = [this, serial = id->serial, epoch = id->epoch, mad, given_up,
              weak = std::weak_ptr(again)](unsigned int tries) {
        ib_cm_id* one = find(serial);
        if (!one || one->epoch != epoch)
            return;
        if (tries >= max_tries) {
            if (given_up == SHIM_IB_CM_DREQ_ERROR)
                enter_time_wait(one);
            else
                enter(one, State::idle);
            tell(one, given_up, nullptr);
            return;
        }
        send(mad);
        world->scheduler.after(answer_timeout, [self = weak.lock(), tries] { (*self)(tries + 1); });
    };
    world->scheduler.after(answer_timeout, [again] { (*again)(1); });
}

void Cm::tell(ib_cm_id* id, unsigned int event, const Mad* mad)
{
    shim_cm_message message{};
    message.event = event;
    std::vector<std::uint8_t> data;
    if (mad) {
        message.peer = world->devices[mad->from]->gid;
        message.peer_lid = world->devices[mad->from]->lid;
        message.reliable = true;
        if (mad->stranger) {
            message.peer = mad->seems;
            message.peer_lid = static_cast<std::uint32_t>(world->scheduler.random().next());
            message.reliable = !world->scheduler.random().one_in(4);
        }
        message.remote_qpn = mad->qpn;
        message.reason = mad->reason;
        data = mad->data;
        data.resize(event == SHIM_IB_CM_REQ_RECEIVED ? 92 : 196);
    }
    id->messages.emplace_back(message, std::move(data));
    if (std::exchange(id->scheduled, true))
        return;
    if (id->listener && event == SHIM_IB_CM_REQ_RECEIVED)
        ++id->listener->requests;
    world->scheduler.spawn("CM of " + id->ca->name, Fiber::Kind::process, [this, serial = id->serial] { run(serial); });
}

void Cm::run(std::uint64_t serial)
{
    world->scheduler.point();
    ib_cm_id* id = ids_.at(serial);
    ib_cm_id* listener = std::exchange(id->listener, nullptr);
    int ret = 0;
    while (!id->messages.empty() && !id->destroyed && !ret) {
        auto [message, data] = std::move(id->messages.front());
        id->messages.pop_front();
        const bool has_data = message.event == SHIM_IB_CM_REQ_RECEIVED || message.event == SHIM_IB_CM_REP_RECEIVED;
        message.private_data = has_data ? data.data() : nullptr;
        id->handler = world->scheduler.current();
        world->lockdep.acquire(Lockdep::cm_handler, id);
        SIM_NOTE("CM of %s: event %d", id->ca->name.c_str(), message.event);
        ret = ipoib_cm_event(id, &message, id->context);
        world->lockdep.release(id);
        id->handler = nullptr;
        if (listener) {
            --listener->requests;
            world->scheduler.wake(listener);
            listener = nullptr;
        }
        world->scheduler.point();
    }
    if (listener) {
        --listener->requests;
        world->scheduler.wake(listener);
    }
    id->scheduled = false;
    world->scheduler.wake(id);
    if (ret) {
        SIM_CHECK(!id->destroyed, "an identifier is destroyed twice: by hand, and by what its handler returned");
        end(id);
    }
}

void Cm::arrive_req(const Mad& mad)
{
    ib_device& ca = *world->devices[mad.to];
    // A repeated REQ.
    for (const auto& [_, id] : ids_)
        if (id->ca == &ca && id->passive && id->remote_node == mad.from && id->remote_id == mad.from_id)
            return;
    ib_cm_id* listener = nullptr;
    for (const auto& [_, id] : ids_)
        if (id->ca == &ca && id->state == State::listens && id->service == mad.service && !id->destroyed)
            listener = id;
    Mad refusal{Kind::rej, mad.to, mad.from, 0, mad.from_id};
    refusal.answers_req = true;
    const auto key = std::pair(mad.to, std::pair(mad.from, mad.qpn));
    if (mad.from == stale_next) {
        stale_next = nobody;
        stale_since_[{mad.from, mad.to}] = world->scheduler.now();
        refusal.reason = rej_stale;
        return send(refusal);
    }
    if (const auto it = remote_qps_.find(key); it != remote_qps_.end()) {
        refusal.reason = rej_stale;
        send(refusal);
        if (ib_cm_id* old = find(it->second); old && old->state == State::established)
            disconnect(old, true);
        return;
    }
    if (!listener) {
        refusal.reason = rej_invalid_service;
        return send(refusal);
    }
    auto* id = new ib_cm_id;
    id->serial = ++world->serials;
    id->ca = &ca;
    id->context = listener->context;
    id->listener = listener;
    id->service = mad.service;
    id->passive = true;
    id->remote_node = mad.from;
    id->remote_id = mad.from_id;
    id->remote_qpn = mad.qpn;
    ids_[id->serial] = id;
    remote_qps_[key] = id->serial;
    id->remembered = true;
    ++ca.cm_ids;
    enter(id, State::req_received);
    tell(id, SHIM_IB_CM_REQ_RECEIVED, &mad);
}

void Cm::arrive(const Mad& mad)
{
    if (mad.kind == Kind::req)
        return arrive_req(mad);
    ib_cm_id* id = find(mad.to_id);
    const bool mine = id && id->ca->node == mad.to;
    if (!mine) {
        // A DREQ for an unknown connection is answered with a DREP.
        if (mad.kind == Kind::dreq)
            send({Kind::drep, mad.to, mad.from, mad.to_id, mad.from_id});
        return;
    }
    switch (mad.kind) {
    case Kind::req:
        break;
    case Kind::rep:
        if (id->state == State::established)
            return send({Kind::rtu, mad.to, mad.from, id->serial, mad.from_id});
        if (id->state != State::req_sent)
            return;
        id->remote_id = mad.from_id;
        id->remote_qpn = mad.qpn;
        enter(id, State::rep_received);
        tell(id, SHIM_IB_CM_REP_RECEIVED, &mad);
        break;
    case Kind::rtu:
        if (id->state != State::rep_sent)
            return;
        enter(id, State::established);
        tell(id, SHIM_IB_CM_RTU_RECEIVED, nullptr);
        break;
    case Kind::rej:
        if (id->state != State::req_sent && id->state != State::rep_sent && id->state != State::req_received &&
            id->state != State::established && id->state != State::rep_received)
            return;
        if (mad.reason == rej_stale)
            enter_time_wait(id);
        else
            enter(id, State::idle);
        tell(id, SHIM_IB_CM_REJ_RECEIVED, &mad);
        break;
    case Kind::dreq:
        if (id->state == State::time_wait || id->state == State::dreq_received)
            return send({Kind::drep, mad.to, mad.from, id->serial, mad.from_id});
        if (id->state != State::established && id->state != State::rep_sent && id->state != State::dreq_sent)
            return;
        enter(id, State::dreq_received);
        tell(id, SHIM_IB_CM_DREQ_RECEIVED, nullptr);
        break;
    case Kind::drep:
        if (id->state != State::dreq_sent)
            return;
        enter_time_wait(id);
        tell(id, SHIM_IB_CM_DREP_RECEIVED, nullptr);
        break;
    }
}

void Cm::enter_time_wait(ib_cm_id* id)
{
    enter(id, State::time_wait);
    world->scheduler.after(time_wait, [this, serial = id->serial, epoch = id->epoch] {
        ib_cm_id* one = find(serial);
        if (!one || one->epoch != epoch)
            return;
        enter(one, State::idle);
        if (std::exchange(one->remembered, false))
            remote_qps_.erase({one->ca->node, {one->remote_node, one->remote_qpn}});
        tell(one, SHIM_IB_CM_TIMEWAIT_EXIT, nullptr);
    });
}

void Cm::disconnect(ib_cm_id* id, bool again)
{
    const Mad mad{Kind::dreq, id->ca->node, id->remote_node, id->serial, id->remote_id};
    enter(id, State::dreq_sent);
    if (again)
        keep_sending(id, mad, SHIM_IB_CM_DREQ_ERROR);
    else
        send(mad);
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

void Cm::watch() const
{
    for (const auto& [pair, since] : stale_since_)
        SIM_CHECK(world->over || world->scheduler.now() - since < max_stale,
                  "node %u does not ask node %u again, which took its REQ for a stale connection's", pair.first,
                  pair.second);
}

// The driver's side

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
    ++requests;
    stale_since_.erase({id->ca->node, id->remote_node});
    Mad mad{Kind::req, id->ca->node, id->remote_node, id->serial, 0};
    mad.service = request.service_id;
    mad.qpn = request.qpn;
    const auto* data = static_cast<const std::uint8_t*>(request.private_data);
    mad.data.assign(data, data + request.private_bytes);
    mad.data.resize(SHIM_CM_REQ_PRIVATE_BYTES);
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
    const auto* data = static_cast<const std::uint8_t*>(reply.private_data);
    mad.data.assign(data, data + reply.private_bytes);
    mad.data.resize(SHIM_CM_REP_PRIVATE_BYTES);
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

ib_cm_id* shim_ib_create_cm_id(ib_device* ca, void* context) { return world->cm.create(ca, context); }
void shim_cm_set_context(ib_cm_id* id, void* context) { id->context = context; }
void shim_ib_destroy_cm_id(ib_cm_id* id) { world->cm.destroy(id); }
int shim_ib_cm_listen(ib_cm_id* id, std::uint64_t service) { return world->cm.listen(id, service); }
int shim_ib_send_cm_req(ib_cm_id* id, const shim_cm_request* request) { return world->cm.send_req(id, *request); }
int shim_ib_send_cm_rep(ib_cm_id* id, const shim_cm_reply* reply) { return world->cm.send_rep(id, *reply); }
int shim_ib_send_cm_rtu(ib_cm_id* id) { return world->cm.send_rtu(id); }
int shim_ib_send_cm_drep(ib_cm_id* id) { return world->cm.send_drep(id); }
void shim_ib_send_cm_rej(ib_cm_id* id, shim_cm_reason reason) { world->cm.send_rej(id, reason); }
void shim_path_copy(sa_path_rec* to, const sa_path_rec* from) { *to = *from; }
std::uint32_t shim_get_random_u32() { return static_cast<std::uint32_t>(world->scheduler.random().next() >> 32); }
