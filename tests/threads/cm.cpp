// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Communication manager between interfaces of one HCA. The fabric's thread delivers the messages of all identifiers,
// one after the other.
#include "kernel.hpp"

#include <algorithm>

struct ib_cm_id {
    std::atomic<shim_cm_endpoint*> endpoint;
    std::uint64_t listens = 0;
    unsigned int number;
    // Identifier at the other end, 0 before a REQ arrives; and its queue pair.
    unsigned int peer = 0;
    std::uint32_t peer_qpn = 0;
};

namespace {

// Guards the identifiers and their state; never held while a message is handled.
std::mutex lock;
std::condition_variable handled;
std::list<ib_cm_id*> ids;
unsigned int next_number = 1;
// Identifier whose message is being handled, and the one whose callback does it: that which listens, for a REQ.
const ib_cm_id *handling = nullptr, *called = nullptr;
thread_local bool in_handler = false;

struct Message {
    unsigned int to, from;
    unsigned int event;
    std::uint32_t qpn;
    // GID of the sender of a REQ.
    shim_gid peer;
    std::uint8_t private_data[SHIM_CM_REP_PRIVATE_BYTES];
};

ib_cm_id* create(shim_cm_endpoint* endpoint)
{
    auto* id = new ib_cm_id{};
    id->endpoint = endpoint;
    id->number = next_number++;
    ids.push_back(id);
    return id;
}

void destroy(ib_cm_id* id)
{
    ids.remove(id);
    delete id;
}

void deliver(const Message& message)
{
    shim_cm_message news{};
    news.event = message.event;
    news.private_data = message.private_data;
    news.reliable = true;
    news.peer = message.peer;
    news.peer_lid = 3;
    std::unique_lock guard(lock);
    const auto it = std::find_if(ids.begin(), ids.end(), [&](ib_cm_id* id) { return id->number == message.to; });
    if (it == ids.end())
        return;
    ib_cm_id* id = *it;
    called = id;
    if (message.event == SHIM_IB_CM_REQ_RECEIVED)
        id = create(id->endpoint);
    if (message.event == SHIM_IB_CM_REQ_RECEIVED || message.event == SHIM_IB_CM_REP_RECEIVED) {
        id->peer = message.from;
        id->peer_qpn = message.qpn;
    }
    handling = id;
    guard.unlock();
    in_handler = true;
    shim_cm_endpoint* const endpoint = id->endpoint;
    const int end = endpoint->handle(endpoint, id, &news);
    in_handler = false;
    guard.lock();
    handling = called = nullptr;
    if (end)
        destroy(id);
    handled.notify_all();
}

void send(unsigned int to, unsigned int event, unsigned int from, std::uint32_t qpn = 0, const void* data = nullptr,
          std::size_t bytes = 0, const shim_gid& peer = {})
{
    auto* message = new Message{to, from, event, qpn, peer, {}};
    if (data)
        std::memcpy(message->private_data, data, bytes);
    Machine::get().fabric->add({nullptr,
                                [](void* context) {
                                    auto* const arrived = static_cast<Message*>(context);
                                    deliver(*arrived);
                                    delete arrived;
                                },
                                message, shim_jiffies()});
}

} // namespace

ib_cm_id* shim_ib_create_cm_id(ib_device*, shim_cm_endpoint* endpoint)
{
    std::lock_guard guard(lock);
    return create(endpoint);
}
void shim_cm_set_context(ib_cm_id* id, shim_cm_endpoint* endpoint) { id->endpoint = endpoint; }
void shim_ib_destroy_cm_id(ib_cm_id* id)
{
    std::unique_lock guard(lock);
    if (!in_handler)
        handled.wait(guard, [id] { return handling != id && called != id; });
    if (id->peer)
        send(id->peer, SHIM_IB_CM_DREQ_RECEIVED, id->number);
    destroy(id);
}
int shim_ib_cm_listen(ib_cm_id* id, std::uint64_t service_id)
{
    std::lock_guard guard(lock);
    id->listens = service_id;
    return 0;
}
int shim_ib_send_cm_req(ib_cm_id* id, const shim_cm_request* request)
{
    std::lock_guard guard(lock);
    const auto it = std::find_if(ids.begin(), ids.end(),
                                 [request](ib_cm_id* other) { return other->listens == request->service_id; });
    if (it == ids.end())
        send(id->number, SHIM_IB_CM_REJ_RECEIVED, 0);
    else
        // The identifier of the requested address also stands for the requester: each connection has its own peer.
        send((*it)->number, SHIM_IB_CM_REQ_RECEIVED, id->number, request->qpn, request->private_data,
             request->private_bytes, request->path->dgid);
    return 0;
}
int shim_ib_send_cm_rep(ib_cm_id* id, const shim_cm_reply* reply)
{
    std::lock_guard guard(lock);
    send(id->peer, SHIM_IB_CM_REP_RECEIVED, id->number, reply->qpn, reply->private_data, reply->private_bytes);
    return 0;
}
int shim_ib_send_cm_rtu(ib_cm_id*) { return 0; }
int shim_ib_send_cm_drep(ib_cm_id*) { return 0; }
void shim_ib_send_cm_rej(ib_cm_id* id, shim_cm_reason)
{
    std::lock_guard guard(lock);
    send(id->peer, SHIM_IB_CM_REJ_RECEIVED, id->number);
}

ib_qp* shim_ib_create_rc_qp(ib_pd*, const shim_rc_qp* wanted)
{
    ib_qp* const qp = create_qp(wanted->send_cq, wanted->recv_cq, wanted->srq, wanted->context);
    qp->connected.store(true);
    return qp;
}
int shim_rc_qp_to_init(ib_qp*, std::uint32_t, std::uint16_t) { return 0; }
int shim_helper_rc_qp_to_rtr(ib_qp* qp, ib_cm_id* id, std::uint32_t, std::uint8_t)
{
    std::lock_guard guard(lock);
    qp->remote.store(id->peer_qpn);
    return 0;
}
int shim_helper_rc_qp_to_rts(ib_qp* qp, ib_cm_id*, std::uint8_t, std::uint8_t)
{
    qp->state.store(ib_qp::ready);
    return 0;
}
