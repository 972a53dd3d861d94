// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// HCA: queues and their work requests and completions.
#include "fakes_inside.hpp"

#include <algorithm>

struct shim_wc {
    Completion entry;
};
static_assert(sizeof(shim_wc) <= SHIM_SIZEOF_WC && sizeof(shim_send_wr) <= SHIM_SIZEOF_SEND_WR);
static_assert(sizeof(shim_recv_wr) <= SHIM_SIZEOF_RECV_WR);

// The status of a request that was flushed.
static constexpr int flushed = 5;

// State and actions of the HCA

void World::complete_sends(std::size_t count, int status)
{
    finish_sends(count, status);
    // A few completions raise no event.
    advance(1);
    run_polls();
}

void World::finish_sends(std::size_t count, int status)
{
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_FALSE(qp().outstanding.empty());
        const Sent done = qp().outstanding.front();
        qp().outstanding.pop_front();
        const int own = i + 1 == count ? status : 0;
        if (done.signaled || own)
            qp().send_cq->push({done.id, own, 0, 0, 0, false});
    }
    run_polls();
}

bool World::receive(const std::vector<std::uint8_t>& payload, bool grh, const ipoib::Gid& dgid,
                    std::uint32_t source_qpn, std::uint16_t slid, int status)
{
    if (qp().receives.empty())
        return false;
    const shim_recv_wr wr = qp().receives.front();
    qp().receives.pop_front();
    auto* to = reinterpret_cast<std::uint8_t*>(wr.sges->address);
    EXPECT_GE(wr.sges->length, 40 + payload.size());
    std::memset(to, 0xee, 40);
    if (grh) {
        std::memcpy(to + 8, ca.gid.raw, 16);
        std::memcpy(to + 24, dgid.bytes, 16);
    }
    std::copy(payload.begin(), payload.end(), to + 40);
    qp().recv_cq->push(
        {wr.id, status, static_cast<unsigned int>(40 + payload.size()), source_qpn, slid, grh, nullptr, verified});
    if (!polls_later)
        run_polls();
    return true;
}

bool World::receive_message(ib_qp& on, const std::vector<std::uint8_t>& bytes, int status)
{
    auto& receives = on.srq ? on.srq->receives : on.receives;
    if (receives.empty())
        return false;
    const shim_recv_wr wr = receives.front();
    receives.pop_front();
    std::size_t done = 0;
    for (unsigned int i = 0; i < wr.count && done < bytes.size(); ++i) {
        const std::size_t part = std::min<std::size_t>(wr.sges[i].length, bytes.size() - done);
        std::memcpy(reinterpret_cast<void*>(wr.sges[i].address), bytes.data() + done, part);
        done += part;
    }
    EXPECT_EQ(done, bytes.size());
    on.recv_cq->push({wr.id, status, static_cast<unsigned int>(bytes.size()), 0, 0, false, &on});
    if (!polls_later)
        run_polls();
    return true;
}

void World::complete_messages(ib_qp& on, std::size_t count, int status)
{
    for (std::size_t i = 0; i < count; ++i) {
        ASSERT_FALSE(on.outstanding.empty());
        const Sent done = on.outstanding.front();
        on.outstanding.pop_front();
        const int own = i + 1 == count ? status : 0;
        if (done.signaled || own)
            on.send_cq->push({done.id, own, 0, 0, 0, false, &on});
    }
    run_polls();
    advance(1);
    run_polls();
}

// device.h, cq.h, qp.h, wr.h, dma.h, ah.h, srq.h

static std::uint64_t map(const void* address)
{
    if (is_last(world->fail_mapping))
        return 0;
    world->mappings.insert(reinterpret_cast<std::uint64_t>(address));
    return reinterpret_cast<std::uint64_t>(address);
}

static void unmap(std::uint64_t address)
{
    const auto it = world->mappings.find(address);
    ASSERT_NE(it, world->mappings.end()) << "unmapped twice, or never mapped";
    world->mappings.erase(it);
    for (const ib_qp* qp : world->qps)
        for (const Sent& sent : qp->outstanding)
            EXPECT_EQ(std::count(sent.addresses.begin(), sent.addresses.end(), address), 0)
                << "unmapped while the HCA may read it";
}

const char* shim_ib_device_name(const ib_device*) { return "fake0"; }
unsigned int shim_ib_max_send_sge(const ib_device* ca) { return ca->send_sges; }
std::uint64_t shim_ib_device_cap_flags(const ib_device* ca)
{
    return ca->flags | (world->features & SHIM_FEATURE_IP_CSUM ? SHIM_IB_DEVICE_UD_IP_CSUM : 0);
}
std::uint64_t shim_ib_kernel_cap_flags(const ib_device* ca)
{
    return ca->kernel_flags | (world->features & SHIM_FEATURE_TSO ? SHIM_IBK_UD_TSO : 0) |
           (world->features & SHIM_FEATURE_VF ? SHIM_IBK_VIRTUAL_FUNCTION : 0);
}
unsigned int shim_ib_num_comp_vectors(const ib_device* ca) { return ca->comp_vectors; }
int shim_helper_ib_query_port(ib_device* ca, std::uint32_t, shim_port* port)
{
    *port = ca->port;
    port->omni_path = ca->omni_path;
    return world->refuses("ib_query_port") ? -19 : 0;
}
int shim_rdma_mtu_enum_to_int(ib_device* ca, std::uint32_t, int code)
{
    if (ca->omni_path && (code == 6 || code == 7))
        return code == 6 ? 8192 : 10240;
    return code >= 1 && code <= 5 ? 128 << code : -1;
}
int shim_rdma_query_gid(ib_device* ca, std::uint32_t, int, shim_gid* gid)
{
    if (ca->updating_gid) {
        --ca->updating_gid;
        return ca->absent_gid;
    }
    *gid = ca->silent ? ca->known_gid : ca->gid;
    return world->refuses("ib_query_gid") ? -5 : 0;
}
int shim_ib_ops_query_gid(ib_device* ca, std::uint32_t, int, shim_gid* gid)
{
    *gid = ca->gid;
    return world->refuses("ib_ask_gid") ? -5 : 0;
}
void shim_ib_dispatch_gid_change(ib_device* ca, std::uint32_t) { ++ca->gid_reports; }
int shim_helper_rdma_find_gid(ib_device* ca, std::uint32_t, const shim_gid* gid, std::uint16_t* index)
{
    for (std::size_t i = 0; i < ca->gids.size(); ++i)
        if (std::memcmp(ca->gids[i].raw, gid->raw, sizeof(gid->raw)) == 0) {
            *index = static_cast<std::uint16_t>(i + 1);
            return 0;
        }
    *index = 0;
    return std::memcmp(ca->gid.raw, gid->raw, sizeof(gid->raw)) == 0 ? 0 : -2;
}
int shim_ib_query_pkey(ib_device* ca, std::uint32_t, std::uint16_t, std::uint16_t* pkey)
{
    ++world->pkey_queries;
    *pkey = ca->pkey;
    return world->refuses("ib_query_pkey") ? -5 : 0;
}
int shim_ib_find_pkey(ib_device* ca, std::uint32_t port, std::uint16_t pkey, std::uint16_t* index)
{
    ++world->pkey_queries;
    return shim_ib_find_cached_pkey(ca, port, pkey, index);
}
int shim_ib_find_cached_pkey(ib_device*, std::uint32_t, std::uint16_t pkey, std::uint16_t* index)
{
    if (world->refuses("ib_find_pkey"))
        return -5;
    for (std::size_t i = 0; i < world->pkeys_found.size(); ++i) {
        if ((world->pkeys_found[i] & 0x7fff) != (pkey & 0x7fff))
            continue;
        *index = static_cast<std::uint16_t>(i);
        return 0;
    }
    return -2;
}
int shim_ptr_err_or_zero(const void* pointer)
{
    const auto value = reinterpret_cast<std::intptr_t>(pointer);
    return value < 0 && value >= -4095 ? static_cast<int>(value) : 0;
}
ib_pd* shim_ib_alloc_pd(ib_device* ca)
{
    return world->refuses("pd_create") ? error_pointer<ib_pd>(-12) : new ib_pd{ca};
}
void shim_ib_dealloc_pd(ib_pd* pd) { delete pd; }
std::uint32_t shim_ib_pd_lkey(const ib_pd*) { return 7; }
ib_cq* shim_ib_create_cq(ib_device* ca, unsigned int size, unsigned int vector, void (*completed)(ib_cq*, void*),
                         void* context)
{
    EXPECT_LT(vector, std::max(ca->comp_vectors, 1U));
    if (world->refuses("cq_create"))
        return error_pointer<ib_cq>(-12);
    return new ib_cq{completed, context, {}, false, size, vector};
}
void shim_ib_destroy_cq(ib_cq* cq) { delete cq; }
int shim_ib_poll_cq(ib_cq* cq, int entries, shim_wc* wc)
{
    ++world->polled;
    int n = 0;
    for (; n < entries && !cq->entries.empty(); ++n, cq->entries.pop_front())
        shim_wc_at(wc, n)->entry = cq->entries.front();
    return n;
}
int shim_rdma_set_cq_moderation(ib_cq* cq, unsigned int entries, unsigned int usecs)
{
    cq->frames = entries;
    cq->usecs = usecs;
    world->ca.moderated_entries = entries;
    world->ca.moderated_usecs = usecs;
    return world->ca.moderation_error;
}
bool shim_ib_req_notify_cq(ib_cq* cq)
{
    if (is_last(world->fail_arming) || (world->completes_without_end && world->polls_enabled < 2))
        return true;
    cq->armed = true;
    return !cq->entries.empty();
}
shim_wc* shim_wc_at(shim_wc* wc, int index)
{
    return reinterpret_cast<shim_wc*>(reinterpret_cast<char*>(wc) + SHIM_SIZEOF_WC * static_cast<std::size_t>(index));
}
std::uint64_t shim_wc_id(const shim_wc* wc) { return wc->entry.id; }
bool shim_wc_ok(const shim_wc* wc) { return wc->entry.status == 0; }
bool shim_wc_flushed(const shim_wc* wc) { return wc->entry.status == flushed; }
bool shim_wc_retries_exceeded(const shim_wc* wc) { return wc->entry.status == 12 || wc->entry.status == 13; }
int shim_wc_status(const shim_wc* wc) { return wc->entry.status; }
unsigned int shim_wc_vendor_error(const shim_wc*) { return 0; }
unsigned int shim_wc_bytes(const shim_wc* wc) { return wc->entry.bytes; }
bool shim_wc_has_grh(const shim_wc* wc) { return wc->entry.grh; }
bool shim_wc_checksum_ok(const shim_wc* wc) { return wc->entry.verified; }
std::uint32_t shim_wc_source_qpn(const shim_wc* wc) { return wc->entry.source_qpn; }
std::uint16_t shim_wc_slid(const shim_wc* wc) { return wc->entry.slid; }
void* shim_wc_qp_context(const shim_wc* wc)
{
    EXPECT_NE(std::find(world->qps.begin(), world->qps.end(), wc->entry.qp), world->qps.end())
        << "a completion is looked at when its queue pair is gone";
    return wc->entry.qp->context;
}
ib_qp* shim_ib_create_ud_qp(ib_pd*, ib_cq* send_cq, ib_cq* recv_cq, unsigned int send_wrs, unsigned int recv_wrs,
                            unsigned int, std::uint32_t create_flags)
{
    if (world->fail_qps > 0) {
        --world->fail_qps;
        return error_pointer<ib_qp>(-12);
    }
    auto* qp = new ib_qp;
    qp->number += world->qps_made++;
    qp->create_flags = create_flags;
    qp->send_wrs = send_wrs;
    qp->recv_wrs = recv_wrs;
    qp->send_cq = send_cq;
    qp->recv_cq = recv_cq;
    world->qps.push_back(qp);
    return qp;
}
void shim_ib_destroy_qp(ib_qp* qp)
{
    EXPECT_TRUE(qp->attached.empty()) << "a queue pair is destroyed while attached to groups";
    world->polls_at_destruction = world->polls_enabled;
    std::erase(world->qps, qp);
    delete qp;
}
std::uint32_t shim_ib_qp_num(const ib_qp* qp) { return qp->number; }
int shim_qp_to_init(ib_qp* qp, std::uint32_t, std::uint16_t pkey_index, std::uint32_t qkey)
{
    EXPECT_EQ(qp->state, "reset");
    qp->pkey_index = pkey_index;
    qp->qkey = qkey;
    qp->state = "init";
    return 0;
}
int shim_qp_to_rtr(ib_qp* qp)
{
    EXPECT_EQ(qp->state, "init");
    qp->state = "rtr";
    return 0;
}
int shim_qp_to_rts(ib_qp* qp)
{
    EXPECT_EQ(qp->state, "rtr");
    if (world->refuses("qp_to_rts"))
        return -22;
    qp->state = "rts";
    return 0;
}
int shim_qp_to_error(ib_qp* qp)
{
    if (world->refuses("qp_to_error"))
        return -22;
    if (world->moves_to_error)
        world->moves_to_error();
    qp->state = "error";
    if (world->mute)
        return 0;
    for (; !qp->outstanding.empty(); qp->outstanding.pop_front())
        qp->send_cq->push({qp->outstanding.front().id, flushed, 0, 0, 0, false, qp});
    for (; !qp->receives.empty(); qp->receives.pop_front())
        qp->recv_cq->push({qp->receives.front().id, flushed, 0, 0, 0, false, qp});
    if (qp->srq)
        ipoib_last_wqe_reached(qp->context);
    return 0;
}
int shim_qp_to_reset(ib_qp* qp)
{
    if (world->refuses("qp_to_reset"))
        return -22;
    qp->state = "reset";
    qp->receives.clear();
    qp->outstanding.clear();
    return 0;
}
int shim_helper_qp_recover_send(ib_qp* qp)
{
    if (qp->state != "sqe")
        return -22;
    qp->state = "rts";
    return 0;
}
int shim_qp_set_qkey(ib_qp* qp, std::uint32_t qkey)
{
    may_sleep();
    if (world->refuses("qp_set_qkey"))
        return -22;
    qp->qkey = qkey;
    return 0;
}
int shim_ib_attach_mcast(ib_qp* qp, const shim_gid* mgid, std::uint16_t mlid)
{
    may_sleep();
    if (world->refuses("qp_attach"))
        return -12;
    EXPECT_TRUE(qp->attached.emplace(text(mgid, 16), mlid).second) << "attached twice";
    return 0;
}
void shim_ib_detach_mcast(ib_qp* qp, const shim_gid* mgid, std::uint16_t mlid)
{
    may_sleep();
    EXPECT_EQ(qp->attached.erase({text(mgid, 16), mlid}), 1U) << "detached, but never attached";
}
// The packet that an element begins in becomes the HCA's; one that is sent in segments does with its last.
static void mark_posted(const std::uint8_t* data)
{
    for (sk_buff* const skb : world->skbs)
        if (skb->segment_bytes == 0 && data >= skb->bytes.data() && data < skb->bytes.data() + skb->bytes.size())
            skb->posted = true;
}
int shim_helper_post_send(ib_qp* qp, shim_send_wr* first, shim_send_wr** refused)
{
    ++world->doorbells;
    for (shim_send_wr* wr = first; wr; wr = wr->next) {
        if (world->sends_until_failure == 0) {
            world->sends_until_failure = -1;
            if (refused)
                *refused = wr;
            return -12;
        }
        if (world->sends_until_failure > 0)
            --world->sends_until_failure;
        EXPECT_TRUE(qp->connected || world->ahs.contains(wr->ah)) << "sent by an address handle that is gone";
        Sent sent{wr->id, wr->ah, wr->qpn, wr->qkey, wr->signaled, {}, wr->checksum, wr->segment_bytes, {}, {}};
        if (wr->header_bytes)
            sent.headers.assign(wr->headers, wr->headers + wr->header_bytes);
        for (unsigned int i = 0; i < wr->count; ++i) {
            const auto* from = reinterpret_cast<const std::uint8_t*>(wr->sges[i].address);
            sent.bytes.insert(sent.bytes.end(), from, from + wr->sges[i].length);
            sent.addresses.push_back(wr->sges[i].address);
        }
        if (wr->count)
            mark_posted(reinterpret_cast<const std::uint8_t*>(wr->sges[0].address));
        if (qp->state == "error") {
            if (!world->mute)
                qp->send_cq->push({wr->id, flushed, 0, 0, 0, false, qp});
            continue;
        }
        world->sent.push_back(sent);
        qp->outstanding.push_back(sent);
    }
    return 0;
}
static int take_receives(std::deque<shim_recv_wr>& receives, unsigned int sges, shim_recv_wr* first,
                         shim_recv_wr** refused)
{
    ++world->receive_posts;
    for (; first && world->receives_until_failure != 0; first = first->next, --world->receives_until_failure) {
        EXPECT_LE(first->count, sges);
        receives.push_back(*first);
    }
    *refused = first;
    if (!first)
        return 0;
    world->receives_until_failure = -1;
    return -12;
}
int shim_helper_post_recv(ib_qp* qp, shim_recv_wr* first, shim_recv_wr** refused)
{
    return take_receives(qp->receives, qp->recv_sges, first, refused);
}
std::uint64_t shim_dma_map_to_device(ib_device*, void* address, std::size_t) { return map(address); }
void shim_dma_unmap_to_device(ib_device*, std::uint64_t address, std::size_t) { unmap(address); }
std::uint64_t shim_dma_map_frag(ib_device*, const sk_buff* skb, unsigned int frag)
{
    return map(skb->frags.at(frag).data());
}
void shim_dma_unmap_frag(ib_device*, std::uint64_t address, std::size_t) { unmap(address); }
std::uint64_t shim_dma_map_from_device(ib_device*, void* address, std::size_t) { return map(address); }
void shim_dma_unmap_from_device(ib_device*, std::uint64_t address, std::size_t) { unmap(address); }
void shim_dma_sync_for_cpu(ib_device*, std::uint64_t, std::size_t) {}
void shim_dma_sync_for_device(ib_device*, std::uint64_t, std::size_t) {}
bool shim_dma_mapping_error(ib_device*, std::uint64_t address) { return address == 0; }

static ib_ah* create_ah(std::uint16_t dlid)
{
    may_sleep();
    if (out_of_memory())
        return error_pointer<ib_ah>(-12);
    auto* ah = new ib_ah{dlid};
    world->ahs.insert(ah);
    return ah;
}

ib_ah* shim_helper_create_ah(ib_pd*, const shim_ah_attributes* attributes) { return create_ah(attributes->dlid); }
ib_ah* shim_helper_create_ah_from_path(ib_pd*, std::uint32_t, sa_path_rec* record) { return create_ah(record->dlid); }
void shim_rdma_destroy_ah(ib_ah* ah)
{
    may_sleep();
    for (ib_qp* qp : world->qps)
        for (const Sent& sent : qp->outstanding)
            EXPECT_NE(sent.ah, ah) << "an address handle is destroyed while the HCA uses it";
    EXPECT_EQ(world->ahs.erase(ah), 1U) << "an address handle is destroyed twice";
    delete ah;
}
void shim_helper_register_event_handler(ib_device* ca, shim_event_handler* handler,
                                        void (*on_event)(void*, unsigned int, std::uint32_t), void* context)
{
    EXPECT_TRUE(ca->handlers.emplace(handler, ib_device::Handler{on_event, context}).second);
}
void shim_ib_unregister_event_handler(shim_event_handler* handler) { EXPECT_EQ(world->ca.handlers.erase(handler), 1U); }

// Shared receive queues

ib_srq* shim_ib_create_srq(ib_pd*, unsigned int, unsigned int sges)
{
    if (world->refuse_srq)
        return error_pointer<ib_srq>(-12);
    auto* srq = new ib_srq{.sges = sges, .receives = {}};
    world->srqs.insert(srq);
    return srq;
}
void shim_ib_destroy_srq(ib_srq* srq)
{
    EXPECT_EQ(world->srqs.erase(srq), 1U);
    delete srq;
}
unsigned int shim_ib_max_srq_sge(const ib_device*) { return world->have_srq ? world->srq_sges : 0; }
int shim_helper_post_srq_recv(ib_srq* srq, shim_recv_wr* first, shim_recv_wr** refused)
{
    return take_receives(srq->receives, srq->sges, first, refused);
}
