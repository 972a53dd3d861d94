// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// HCA: queue pairs whose sends a thread completes and delivers to other queue pairs of this HCA. One more thread
// answers for the subnet administrator and the communication manager.
#include "kernel.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace {

Machine* machine = nullptr;

constexpr int flushed = 5;

void push(ib_cq* cq, const shim_wc& entry) { EXPECT_TRUE(cq->entries.push(entry)) << "a completion queue overflows"; }

void notify(ib_cq* cq)
{
    // Pairs with the one in shim_ib_req_notify_cq().
    full_barrier();
    if (!cq->entries.empty() && cq->armed.exchange(false))
        cq->completed(cq, cq->context);
}

constexpr unsigned int grh_bytes = 40;

// Copies a message as the HCA does: a datagram is written behind a GRH.
void copy(const PostedSend& send, const PostedReceive& receive, bool datagram, bool multicast)
{
    unsigned int to = 0, offset = datagram ? grh_bytes : 0;
    if (datagram) {
        auto* const grh = reinterpret_cast<std::uint8_t*>(receive.sges[0].address);
        std::memset(grh, 0, grh_bytes);
        grh[24] = multicast ? 0xff : 0xfe;
    }
    for (unsigned int from = 0; from < send.count; ++from) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(send.sges[from].address);
        for (unsigned int left = send.sges[from].length; left;) {
            if (offset == receive.sges[to].length) {
                ++to;
                offset = 0;
            }
            const unsigned int piece = std::min(left, receive.sges[to].length - offset);
            std::memcpy(reinterpret_cast<std::uint8_t*>(receive.sges[to].address) + offset, bytes, piece);
            bytes += piece, left -= piece, offset += piece;
        }
    }
}

// Delivers to the addressed queue pair, if that has a receive; senders receive their own multicast packets.
void deliver(ib_qp& from, const PostedSend& send)
{
    const bool multicast = send.ah && send.ah->multicast;
    const std::uint32_t to = from.connected ? from.remote.load() : multicast ? from.number : send.qpn;
    for (ib_qp* qp : machine->ca.qps) {
        PostedReceive receive;
        if (qp->number != to || qp->state.load() != ib_qp::ready ||
            !(qp->srq ? qp->srq->receives : qp->receives).pop(receive))
            continue;
        unsigned int bytes = from.connected ? 0 : grh_bytes;
        for (unsigned int i = 0; i < send.count; ++i)
            bytes += send.sges[i].length;
        if (send.count)
            copy(send, receive, !from.connected, multicast);
        push(qp->recv_cq, {receive.id, qp, 0, bytes, from.number, 3, multicast});
        notify(qp->recv_cq);
    }
}

} // namespace

Machine& Machine::get() { return *machine; }

Machine::Machine()
{
    machine = this;
    fabric = new Worker;
    threads_.emplace_back([this] { run_hca(); });
    threads_.emplace_back([this] { run_processor(); });
    threads_.emplace_back([this] { run_processor(); });
    EXPECT_EQ(ipoib_start(), 0);
}

Machine::~Machine()
{
    ipoib_stop();
    ending_.store(true);
    for (std::thread& thread : threads_)
        thread.join();
    delete fabric;
    delete netdev;
    EXPECT_TRUE(ca.qps.empty());
    machine = nullptr;
}

void Machine::open()
{
    shim_rtnl_lock();
    netdev->up.store(true);
    EXPECT_EQ(ipoib_ndo_open(netdev), 0);
    shim_rtnl_unlock();
    const unsigned long deadline = shim_jiffies() + patience_ms;
    while (!netdev->carrier.load() && !kernel::reached(deadline, shim_jiffies()))
        shim_msleep(1);
    EXPECT_TRUE(netdev->carrier.load());
}

void Machine::close()
{
    shim_rtnl_lock();
    netdev->up.store(false);
    (void)ipoib_ndo_stop(netdev);
    shim_rtnl_unlock();
}

void Machine::run_processor()
{
    for (unsigned int idle = 0; !ending_.load(std::memory_order_relaxed); rest(idle))
        idle = poll_all() ? 0 : idle + 1;
}

void Machine::run_hca()
{
    bool busy = false;
    for (unsigned int idle = 0; !ending_.load(std::memory_order_relaxed); rest(idle)) {
        idle = std::exchange(busy, false) ? 0 : idle + 1;
        std::lock_guard guard(ca.lock);
        for (ib_qp* qp : ca.qps) {
            const ib_qp::State state = qp->state.load();
            PostedSend send;
            PostedReceive receive;
            for (int i = 0; i < 8 && state != ib_qp::reset && qp->sends.pop(send); ++i) {
                busy = true;
                if (state == ib_qp::ready)
                    deliver(*qp, send);
                if (state == ib_qp::error || send.signaled)
                    push(qp->send_cq, {send.id, qp, state == ib_qp::error ? flushed : 0, 0, 0, 0, false});
            }
            while (state == ib_qp::error && !qp->srq && qp->receives.pop(receive))
                push(qp->recv_cq, {receive.id, qp, flushed, 0, 0, 0, false});
            notify(qp->send_cq);
            notify(qp->recv_cq);
        }
    }
}

// device.h, cq.h, qp.h, wr.h, dma.h, ah.h, srq.h

const char* shim_ib_device_name(const ib_device*) { return "threads0"; }
// No gathering: the driver would segment.
unsigned int shim_ib_max_send_sge(const ib_device*) { return 1; }
std::uint64_t shim_ib_device_cap_flags(const ib_device*) { return 0; }
std::uint64_t shim_ib_kernel_cap_flags(const ib_device*) { return 0; }
unsigned int shim_ib_num_comp_vectors(const ib_device*) { return 2; }
int shim_helper_ib_query_port(ib_device*, std::uint32_t, shim_port* port)
{
    *port = {true, 3, 2048, 2048, 4, 2, false};
    return 0;
}
int shim_rdma_query_gid(ib_device* ca, std::uint32_t, int, shim_gid* gid)
{
    std::lock_guard guard(ca->lock);
    *gid = ca->gid;
    return 0;
}
int shim_ib_ops_query_gid(ib_device* ca, std::uint32_t port, int index, shim_gid* gid)
{
    return shim_rdma_query_gid(ca, port, index, gid);
}
void shim_ib_dispatch_gid_change(ib_device*, std::uint32_t) {}
int shim_helper_rdma_find_gid(ib_device*, std::uint32_t, const shim_gid*, std::uint16_t* index)
{
    *index = 0;
    return 0;
}
int shim_ib_query_pkey(ib_device*, std::uint32_t, std::uint16_t, std::uint16_t* pkey)
{
    *pkey = 0xffff;
    return 0;
}
int shim_ib_find_pkey(ib_device*, std::uint32_t, std::uint16_t, std::uint16_t* index)
{
    *index = 0;
    return 0;
}
int shim_ib_find_cached_pkey(ib_device* ca, std::uint32_t port, std::uint16_t pkey, std::uint16_t* index)
{
    return shim_ib_find_pkey(ca, port, pkey, index);
}
int shim_ptr_err_or_zero(const void* pointer)
{
    const auto value = reinterpret_cast<std::intptr_t>(pointer);
    return value < 0 && value > -4096 ? static_cast<int>(value) : 0;
}
ib_pd* shim_ib_alloc_pd(ib_device*) { return new ib_pd; }
void shim_ib_dealloc_pd(ib_pd* pd) { delete pd; }
std::uint32_t shim_ib_pd_lkey(const ib_pd*) { return 1; }

ib_cq* shim_ib_create_cq(ib_device*, unsigned int, unsigned int, void (*completed)(ib_cq*, void*), void* context)
{
    auto* cq = new ib_cq;
    cq->completed = completed;
    cq->context = context;
    return cq;
}
void shim_ib_destroy_cq(ib_cq* cq) { delete cq; }
int shim_ib_poll_cq(ib_cq* cq, int entries, shim_wc* wc)
{
    int got = 0;
    while (got < entries && cq->entries.pop(wc[got]))
        ++got;
    return got;
}
int shim_rdma_set_cq_moderation(ib_cq*, unsigned int, unsigned int) { return 0; }
bool shim_ib_req_notify_cq(ib_cq* cq)
{
    cq->armed.store(true);
    full_barrier();
    return !cq->entries.empty() && cq->armed.exchange(false);
}

shim_wc* shim_wc_at(shim_wc* wc, int index) { return wc + index; }
std::uint64_t shim_wc_id(const shim_wc* wc) { return wc->id; }
bool shim_wc_ok(const shim_wc* wc) { return wc->status == 0; }
bool shim_wc_flushed(const shim_wc* wc) { return wc->status == flushed; }
bool shim_wc_retries_exceeded(const shim_wc*) { return false; }
int shim_wc_status(const shim_wc* wc) { return wc->status; }
unsigned int shim_wc_vendor_error(const shim_wc*) { return 0; }
void* shim_wc_qp_context(const shim_wc* wc) { return wc->qp->context; }
unsigned int shim_wc_bytes(const shim_wc* wc) { return wc->bytes; }
bool shim_wc_has_grh(const shim_wc* wc) { return wc->grh; }
bool shim_wc_checksum_ok(const shim_wc*) { return false; }
std::uint32_t shim_wc_source_qpn(const shim_wc* wc) { return wc->source_qpn; }
std::uint16_t shim_wc_slid(const shim_wc* wc) { return wc->slid; }

ib_qp* create_qp(ib_cq* send_cq, ib_cq* recv_cq, ib_srq* srq, void* context)
{
    auto* qp = new ib_qp;
    qp->send_cq = send_cq;
    qp->recv_cq = recv_cq;
    qp->srq = srq;
    qp->context = context;
    std::lock_guard guard(machine->ca.lock);
    qp->number = machine->ca.next_qpn++;
    machine->ca.qps.push_back(qp);
    return qp;
}
ib_qp* shim_ib_create_ud_qp(ib_pd*, ib_cq* send_cq, ib_cq* recv_cq, unsigned int, unsigned int, unsigned int,
                            std::uint32_t)
{
    return create_qp(send_cq, recv_cq, nullptr, nullptr);
}
void shim_ib_destroy_qp(ib_qp* qp)
{
    {
        std::lock_guard guard(machine->ca.lock);
        std::erase(machine->ca.qps, qp);
    }
    delete qp;
}
std::uint32_t shim_ib_qp_num(const ib_qp* qp) { return qp->number; }
int shim_qp_to_init(ib_qp*, std::uint32_t, std::uint16_t, std::uint32_t) { return 0; }
int shim_qp_to_rtr(ib_qp*) { return 0; }
int shim_qp_to_rts(ib_qp* qp)
{
    qp->state.store(ib_qp::ready);
    return 0;
}
int shim_qp_to_error(ib_qp* qp)
{
    qp->state.store(ib_qp::error);
    if (qp->srq && qp->context)
        ipoib_last_wqe_reached(qp->context);
    return 0;
}
int shim_qp_to_reset(ib_qp* qp)
{
    std::lock_guard guard(machine->ca.lock);
    qp->state.store(ib_qp::reset);
    PostedSend send;
    PostedReceive receive;
    while (qp->sends.pop(send) || qp->receives.pop(receive)) {}
    return 0;
}
int shim_helper_qp_recover_send(ib_qp*) { return -22; }
int shim_qp_set_qkey(ib_qp*, std::uint32_t) { return 0; }
int shim_ib_attach_mcast(ib_qp*, const shim_gid*, std::uint16_t) { return 0; }
void shim_ib_detach_mcast(ib_qp*, const shim_gid*, std::uint16_t) {}

int shim_helper_post_send(ib_qp* qp, shim_send_wr* first, shim_send_wr** refused)
{
    if (refused)
        *refused = nullptr;
    for (; first; first = first->next) {
        PostedSend send{first->id, first->qpn, first->ah, first->signaled, first->count, {}};
        std::copy_n(first->sges, first->count, send.sges);
        EXPECT_TRUE(qp->sends.push(send)) << "a send queue overflows";
    }
    return 0;
}

template <class Queue>
static int post(Queue& queue, shim_recv_wr* first, shim_recv_wr** refused)
{
    *refused = nullptr;
    for (; first; first = first->next) {
        PostedReceive receive{first->id, first->count, {}};
        std::copy_n(first->sges, first->count, receive.sges);
        EXPECT_TRUE(queue.push(receive)) << "a receive queue overflows";
    }
    return 0;
}
int shim_helper_post_recv(ib_qp* qp, shim_recv_wr* first, shim_recv_wr** refused)
{
    return post(qp->receives, first, refused);
}

ib_srq* shim_ib_create_srq(ib_pd*, unsigned int, unsigned int) { return new ib_srq; }
void shim_ib_destroy_srq(ib_srq* srq) { delete srq; }
unsigned int shim_ib_max_srq_sge(const ib_device*) { return 17; }
int shim_helper_post_srq_recv(ib_srq* srq, shim_recv_wr* first, shim_recv_wr** refused)
{
    return post(srq->receives, first, refused);
}

std::uint64_t shim_dma_map_to_device(ib_device*, void* address, std::size_t)
{
    return reinterpret_cast<std::uint64_t>(address);
}
void shim_dma_unmap_to_device(ib_device*, std::uint64_t, std::size_t) {}
std::uint64_t shim_dma_map_from_device(ib_device*, void* address, std::size_t)
{
    return reinterpret_cast<std::uint64_t>(address);
}
void shim_dma_unmap_from_device(ib_device*, std::uint64_t, std::size_t) {}
void shim_dma_sync_for_cpu(ib_device*, std::uint64_t, std::size_t) {}
void shim_dma_sync_for_device(ib_device*, std::uint64_t, std::size_t) {}
bool shim_dma_mapping_error(ib_device*, std::uint64_t) { return false; }

ib_ah* shim_helper_create_ah(ib_pd*, const shim_ah_attributes* attributes)
{
    return new ib_ah{attributes->dgid.raw[0] == 0xff};
}
ib_ah* shim_helper_create_ah_from_path(ib_pd*, std::uint32_t, sa_path_rec*) { return new ib_ah{false}; }
void shim_rdma_destroy_ah(ib_ah* ah) { delete ah; }

void shim_helper_register_event_handler(ib_device* ca, shim_event_handler*,
                                        void (*on_event)(void*, unsigned int, std::uint32_t), void* context)
{
    std::lock_guard guard(ca->lock);
    ca->on_event = on_event;
    ca->event_context = context;
}
void shim_ib_unregister_event_handler(shim_event_handler*)
{
    std::lock_guard guard(machine->ca.lock);
    machine->ca.on_event = nullptr;
}

// sa.h

struct ib_sa_query {
    void (*answered)(int, sa_path_rec*, void*);
    void* context;
    shim_gid dgid;
    static void answer(void* query, int status)
    {
        auto* const asked = static_cast<ib_sa_query*>(query);
        sa_path_rec record{asked->dgid};
        asked->answered(status, status ? nullptr : &record, asked->context);
        delete asked;
    }
};
struct ib_sa_multicast {
    shim_mcmember asked;
    int (*answered)(int, const shim_mcmember*, void*);
    void* context;
};

void shim_ib_sa_register_client() {}
void shim_ib_sa_unregister_client() {}
int shim_helper_sa_path_query(ib_device*, std::uint32_t, const shim_path_query* wanted, unsigned int,
                              void (*answered)(int, sa_path_rec*, void*), void* context, ib_sa_query** query)
{
    *query = new ib_sa_query{answered, context, wanted->dgid};
    machine->fabric->add({*query, [](void* asked) { ib_sa_query::answer(asked, 0); }, *query, shim_jiffies()});
    return 1;
}
void shim_ib_sa_cancel_query(int, ib_sa_query* query)
{
    if (machine->fabric->take(query))
        machine->fabric->add({query, [](void* asked) { ib_sa_query::answer(asked, -4); }, query, shim_jiffies()});
}
std::uint32_t shim_path_dlid(sa_path_rec*) { return 3; }
void shim_path_copy(sa_path_rec* to, const sa_path_rec* from) { *to = *from; }

ib_sa_multicast* shim_helper_sa_join(ib_device*, std::uint32_t, const shim_mcmember* member, bool,
                                     int (*answered)(int, const shim_mcmember*, void*), void* context)
{
    auto* join = new ib_sa_multicast{*member, answered, context};
    join->asked.mlid = 0xc001;
    join->asked.mtu = 4;
    machine->fabric->add({join,
                          [](void* asked) {
                              auto* const membership = static_cast<ib_sa_multicast*>(asked);
                              if (membership->answered(0, &membership->asked, membership->context))
                                  delete membership;
                          },
                          join, shim_jiffies()});
    return join;
}
void shim_helper_sa_leave(ib_sa_multicast* membership)
{
    machine->fabric->cancel(membership);
    delete membership;
}
bool shim_ib_sa_get_mcmember_rec(ib_device*, std::uint32_t, const shim_gid*) { return false; }
int shim_rdma_mtu_enum_to_int(ib_device*, std::uint32_t, int code) { return 128 << code; }
