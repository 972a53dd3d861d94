// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The communication manager, its peers, and the queue pairs of connections.
#include "fakes_inside.hpp"

#include <ipoib/connected.hpp>

// State of the fake

ib_cm_id* World::take_request()
{
    if (asked.empty())
        return nullptr;
    ib_cm_id* id = asked.front();
    asked.erase(asked.begin());
    return id;
}

void World::reply(ib_cm_id* id, std::uint32_t mtu, ipoib::IcrcOffer offer)
{
    ASSERT_NE(id, nullptr);
    const ipoib::PrivateData data{{kernel::Be32(0x99), kernel::Be32(mtu)}, offer};
    shim_cm_message message{};
    message.event = SHIM_IB_CM_REP_RECEIVED;
    message.private_data = reinterpret_cast<const std::uint8_t*>(&data);
    EXPECT_EQ(id->endpoint->handle(id->endpoint, id, &message), 0);
}

void World::message(ib_cm_id* id, unsigned int event, unsigned int reason)
{
    ASSERT_NE(id, nullptr);
    shim_cm_message message{};
    message.event = event;
    message.reason = reason;
    EXPECT_EQ(id->endpoint->handle(id->endpoint, id, &message), 0);
}

ib_cm_id* World::new_cm_id(shim_cm_endpoint* endpoint)
{
    auto* id = new ib_cm_id;
    id->endpoint = endpoint;
    id->number = ++cm_ids_made;
    cm_ids.insert(id);
    return id;
}

ib_cm_id* World::request(const ipoib::Gid& from, std::uint32_t qpn, std::uint32_t mtu, bool reliable,
                         ipoib::IcrcOffer offer)
{
    ib_cm_id* listener = nullptr;
    for (ib_cm_id* id : cm_ids)
        if (id->listens)
            listener = id;
    if (!listener)
        return nullptr;
    ib_cm_id* const id = new_cm_id(listener->endpoint);
    const ipoib::PrivateData data{{kernel::Be32(qpn), kernel::Be32(mtu)}, offer};
    shim_cm_message message{};
    message.event = SHIM_IB_CM_REQ_RECEIVED;
    message.private_data = reinterpret_cast<const std::uint8_t*>(&data);
    message.peer = from.native();
    message.peer_lid = peer_lid;
    message.reliable = reliable;
    message.packet_life_time = static_cast<std::uint8_t>(peer_life_time);
    if (!id->endpoint->handle(id->endpoint, id, &message))
        return id;
    reject_reason = id->reason;
    cm_ids.erase(id);
    delete id;
    return nullptr;
}

// cm.h

ib_cm_id* shim_ib_create_cm_id(ib_device*, shim_cm_endpoint* endpoint)
{
    may_sleep();
    allocates("cm_create");
    if (is_last(world->fail_cm))
        return error_pointer<ib_cm_id>(-12);
    return world->new_cm_id(endpoint);
}
void shim_cm_set_context(ib_cm_id* id, shim_cm_endpoint* endpoint) { id->endpoint = endpoint; }
void shim_ib_destroy_cm_id(ib_cm_id* id)
{
    may_sleep();
    EXPECT_EQ(world->cm_ids.erase(id), 1U) << "an identifier is destroyed twice";
    std::erase(world->asked, id);
    delete id;
}
int shim_ib_cm_listen(ib_cm_id* id, std::uint64_t service_id)
{
    if (is_last(world->fail_cm))
        return -16;
    id->listens = service_id;
    return 0;
}
int shim_ib_send_cm_req(ib_cm_id* id, const shim_cm_request* request)
{
    may_sleep();
    if (is_last(world->fail_cm))
        return -12;
    world->now += world->request_ticks;
    id->sent.emplace_back("REQ");
    id->service_id = request->service_id;
    id->dlid = shim_path_dlid(request->path);
    id->qpn = request->qpn;
    const auto* data = static_cast<const std::uint8_t*>(request->private_data);
    id->private_data.assign(data, data + request->private_bytes);
    world->asked.push_back(id);
    return 0;
}
int shim_ib_send_cm_rep(ib_cm_id* id, const shim_cm_reply* reply)
{
    may_sleep();
    if (is_last(world->fail_cm))
        return -12;
    id->sent.emplace_back("REP");
    id->qpn = reply->qpn;
    id->rnr_retries = reply->rnr_retries;
    const auto* data = static_cast<const std::uint8_t*>(reply->private_data);
    id->private_data.assign(data, data + reply->private_bytes);
    return 0;
}
int shim_ib_send_cm_rtu(ib_cm_id* id)
{
    may_sleep();
    if (world->cm_withdrawn_late)
        return -22;
    id->sent.emplace_back("RTU");
    return 0;
}
int shim_ib_send_cm_drep(ib_cm_id* id)
{
    may_sleep();
    id->sent.emplace_back("DREP");
    return 0;
}
void shim_ib_send_cm_rej(ib_cm_id* id, shim_cm_reason reason)
{
    may_sleep();
    id->sent.emplace_back("REJ");
    id->reason = reason;
}
ib_qp* shim_ib_create_rc_qp(ib_pd*, const shim_rc_qp* wanted)
{
    may_sleep();
    allocates("rc_qp_create");
    if (out_of_memory())
        return error_pointer<ib_qp>(-12);
    auto* qp = new ib_qp;
    qp->send_cq = wanted->send_cq;
    qp->recv_cq = wanted->recv_cq;
    qp->connected = true;
    qp->context = wanted->context;
    qp->srq = wanted->srq;
    qp->recv_sges = wanted->recv_sges;
    qp->number = 0x1000 + ++world->connections_made;
    world->qps.push_back(qp);
    return qp;
}
int shim_rc_qp_to_init(ib_qp* qp, std::uint32_t, std::uint16_t)
{
    EXPECT_EQ(qp->state, "reset");
    qp->state = "init";
    return 0;
}
int shim_helper_rc_qp_to_rtr(ib_qp* qp, ib_cm_id*, std::uint32_t, std::uint8_t rnr_timer)
{
    may_sleep();
    if (world->moves_to_rtr)
        world->moves_to_rtr(*qp);
    if (qp->state == "error")
        return -22;
    EXPECT_EQ(qp->state, "init");
    if (world->cm_withdrawn)
        return -SHIM_ECONNRESET;
    if (is_last(world->fail_cm))
        return -22;
    qp->state = "rtr";
    qp->rnr_timer = rnr_timer;
    return 0;
}
int shim_helper_rc_qp_to_rts(ib_qp* qp, ib_cm_id*, std::uint8_t max_timeout, std::uint8_t max_rnr_retries)
{
    EXPECT_EQ(qp->state, "rtr");
    qp->max_timeout = max_timeout;
    qp->max_rnr_retries = max_rnr_retries;
    qp->state = "rts";
    return 0;
}
