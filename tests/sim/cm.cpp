// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// include/shim/cm.h, the messages: sent, lost, repeated and received, and the changes of state that they cause.
#include "cm.hpp"

#include <functional>
#include <memory>
#include <utility>

#include "world.hpp"

namespace sim {

namespace {

using State = ib_cm_id::State;

// 4.096 us * 2^20, repeated 15 times.
constexpr Time answer_timeout = 4300 * millisecond;
constexpr unsigned int max_tries = 16;
constexpr unsigned int rej_invalid_service = 8, rej_stale = 10;
// Back-off of a host after a stale rejection for no reason.
constexpr Time max_stale = second;

} // namespace

ib_cm_id* Cm::find(std::uint64_t serial) const
{
    const auto it = ids_.find(serial);
    return it == ids_.end() || it->second->destroyed ? nullptr : it->second;
}

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
            message.packet_life_time = world->scheduler.random().one_in(8) ? 31 : 18;
        }
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
        ret = id->endpoint->handle(id->endpoint, id, &message);
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
    id->endpoint = listener->endpoint;
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
        return arrive_rep(id, mad);
    case Kind::rtu:
        if (id->state != State::rep_sent)
            return;
        enter(id, State::established);
        tell(id, SHIM_IB_CM_RTU_RECEIVED, nullptr);
        break;
    case Kind::rej:
        return arrive_rej(id, mad);
    case Kind::dreq:
        return arrive_dreq(id, mad);
    case Kind::drep:
        if (id->state != State::dreq_sent)
            return;
        enter_time_wait(id);
        tell(id, SHIM_IB_CM_DREP_RECEIVED, nullptr);
        break;
    }
}

void Cm::arrive_rep(ib_cm_id* id, const Mad& mad)
{
    if (id->state == State::established)
        return send({Kind::rtu, mad.to, mad.from, id->serial, mad.from_id});
    if (id->state != State::req_sent)
        return;
    id->remote_id = mad.from_id;
    id->remote_qpn = mad.qpn;
    enter(id, State::rep_received);
    tell(id, SHIM_IB_CM_REP_RECEIVED, &mad);
}

void Cm::arrive_rej(ib_cm_id* id, const Mad& mad)
{
    if (id->state != State::req_sent && id->state != State::rep_sent && id->state != State::req_received &&
        id->state != State::established && id->state != State::rep_received)
        return;
    if (mad.reason == rej_stale)
        enter_time_wait(id);
    else
        enter(id, State::idle);
    tell(id, SHIM_IB_CM_REJ_RECEIVED, &mad);
}

void Cm::arrive_dreq(ib_cm_id* id, const Mad& mad)
{
    if (id->state == State::time_wait || id->state == State::dreq_received)
        return send({Kind::drep, mad.to, mad.from, id->serial, mad.from_id});
    if (id->state != State::established && id->state != State::rep_sent && id->state != State::dreq_sent)
        return;
    enter(id, State::dreq_received);
    tell(id, SHIM_IB_CM_DREQ_RECEIVED, nullptr);
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

void Cm::watch() const
{
    for (const auto& [pair, since] : stale_since_)
        SIM_CHECK(world->over || world->scheduler.now() - since < max_stale,
                  "node %u does not ask node %u again, which took its REQ for a stale connection's", pair.first,
                  pair.second);
}

} // namespace sim
