// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// include/shim/cq.h, qp.h, wr.h and dma.h: completion queues, the datagram queue pair, work requests.
#include <algorithm>
#include <cstring>

#include <ipoib/interface.hpp>
#include <stand_ins/work_requests.hpp>

#include "world.hpp"

using namespace sim;

struct shim_wc {
    Completion entry;
};
static_assert(sizeof(shim_wc) <= SHIM_SIZEOF_WC);

namespace {

constexpr unsigned int grh_bytes = 40;

// Destroyed queue pairs whose memory is kept, so that their use is seen.
constexpr std::size_t max_quarantine = 512;

int move(ib_qp* qp, ib_qp::State from, ib_qp::State to, const char* name)
{
    const Verb verb(qp, "ib_modify_qp");
    SIM_CHECK(qp->state == from || (qp->state == ib_qp::State::error && !world->quiet),
              "a queue pair goes to %s from state %d", name, static_cast<int>(qp->state));
    if (qp->state != from)
        return -22;
    if (world->memory.fails())
        return -12;
    qp->state = to;
    return 0;
}

// Counts packets for the comparison with the driver's statistics. A drain, a send in the receive queue, is not counted.
void count(net_device& dev, const Completion& entry)
{
    const bool ok = entry.status == Status::success;
    if (entry.send)
        dev.bad_sends += !ok && !entry.drain;
    else if (ok)
        ++dev.good_receives;
    else
        dev.bad_receives += entry.status != Status::flushed;
    dev.echoes += entry.echo;
}

} // namespace

namespace sim {

void check_exists(const ib_qp* qp, const char* verb)
{
    SIM_CHECK(qp, "%s without a queue pair", verb);
    SIM_CHECK(qp->state != ib_qp::State::destroyed, "%s of a queue pair that is destroyed", verb);
}

} // namespace sim

// Completion queues

void ib_cq::push(const Completion& entry)
{
    SIM_CHECK(entries.size() < size, "a completion queue of %u overruns", size);
    entries.push_back(entry);
    entries.back().since = world->scheduler.now();
    if (!std::exchange(armed, false))
        return;
    if (world->scheduler.random().one_in(4)) {
        completed(this, context);
        return;
    }
    world->scheduler.after(world->scheduler.random().below(5 * microsecond), [serial = serial] {
        const auto it = world->cqs.find(serial);
        if (it != world->cqs.end())
            it->second->completed(it->second, it->second->context);
    });
}

ib_cq* shim_ib_create_cq(ib_device* ca, unsigned int entries, unsigned int, void (*completed)(ib_cq*, void*),
                         void* context)
{
    may_sleep("ib_create_cq");
    if (world->memory.fails())
        return error_pointer<ib_cq>(-12);
    ++ca->cqs;
    auto* cq = new ib_cq{ca, entries, completed, context, ++world->serials, {}};
    // The context is a part of an interface. Searches the newest first: most often they own the queue.
    const auto& devs = world->all_devs;
    const auto owner = std::find_if(devs.rbegin(), devs.rend(), [context](const auto& dev) {
        return reinterpret_cast<std::uintptr_t>(context) - reinterpret_cast<std::uintptr_t>(dev->owner) <
               sizeof(ipoib::Interface);
    });
    SIM_CHECK(owner != devs.rend(), "a completion queue of no interface");
    cq->dev = owner->get();
    world->cqs[cq->serial] = cq;
    return cq;
}
void shim_ib_destroy_cq(ib_cq* cq)
{
    may_sleep("ib_destroy_cq");
    SIM_CHECK(cq->users == 0, "a completion queue is destroyed that %ld queue pairs use", cq->users);
    SIM_CHECK(world->cqs.erase(cq->serial) == 1, "a completion queue is destroyed twice");
    --cq->ca->cqs;
    delete cq;
}
int shim_ib_poll_cq(ib_cq* cq, int entries, shim_wc* wc)
{
    world->scheduler.point();
    int n = 0;
    for (; n < entries && !cq->entries.empty(); ++n, cq->entries.pop_front()) {
        Completion& entry = shim_wc_at(wc, n)->entry;
        entry = cq->entries.front();
        if (ib_qp* const qp = entry.send ? find_qp(entry.qp_serial) : nullptr)
            qp->seen = entry.number + 1;
        count(*cq->dev, entry);
    }
    return n;
}
int shim_rdma_set_cq_moderation(ib_cq* cq, unsigned int frames, unsigned int usecs)
{
    world->scheduler.point();
    if (!cq->ca->moderates)
        return -95;
    cq->moderated_frames = frames;
    cq->moderated_usecs = usecs;
    return 0;
}
bool shim_ib_req_notify_cq(ib_cq* cq)
{
    world->scheduler.point();
    cq->armed = true;
    return !cq->entries.empty();
}

shim_wc* shim_wc_at(shim_wc* wc, int index)
{
    return reinterpret_cast<shim_wc*>(reinterpret_cast<char*>(wc) + SHIM_SIZEOF_WC * static_cast<std::size_t>(index));
}
std::uint64_t shim_wc_id(const shim_wc* wc) { return wc->entry.id; }
bool shim_wc_ok(const shim_wc* wc) { return wc->entry.status == Status::success; }
bool shim_wc_flushed(const shim_wc* wc) { return wc->entry.status == Status::flushed; }
bool shim_wc_retries_exceeded(const shim_wc* wc)
{
    return wc->entry.status == Status::retry_exceeded || wc->entry.status == Status::rnr_exceeded;
}
int shim_wc_status(const shim_wc* wc) { return static_cast<int>(wc->entry.status); }
unsigned int shim_wc_vendor_error(const shim_wc*) { return 0; }
unsigned int shim_wc_bytes(const shim_wc* wc) { return wc->entry.bytes; }
bool shim_wc_has_grh(const shim_wc* wc) { return wc->entry.grh; }
bool shim_wc_checksum_ok(const shim_wc* wc) { return wc->entry.checksum_ok; }
std::uint32_t shim_wc_source_qpn(const shim_wc* wc) { return wc->entry.source_qpn; }
std::uint16_t shim_wc_slid(const shim_wc* wc) { return wc->entry.slid; }
void* shim_wc_qp_context(const shim_wc* wc)
{
    const ib_qp* const qp = find_qp(wc->entry.qp_serial);
    SIM_CHECK(qp, "a completion is looked at when its queue pair is gone");
    return qp->context;
}

// The datagram queue pair

ib_qp* shim_ib_create_ud_qp(ib_pd* pd, ib_cq* send_cq, ib_cq* recv_cq, unsigned int send_wrs, unsigned int recv_wrs,
                            unsigned int send_sges, std::uint32_t)
{
    may_sleep("ib_create_qp");
    if (world->memory.fails() || world->scheduler.random().one_in(pd->ca->no_queue_pairs_one_in)) {
        world->memory.refuse();
        return error_pointer<ib_qp>(-12);
    }
    ib_device* ca = pd->ca;
    auto* qp = new ib_qp{};
    qp->ca = ca;
    qp->pd = pd;
    qp->serial = ++world->serials;
    // Numbers are reused soon, and by all HCAs.
    const auto numbers = std::max<std::size_t>(60, 2 * ca->qps.size());
    do
        qp->number = ca->next_qpn = ca->next_qpn >= 0x40 + numbers ? 0x40 : ca->next_qpn + 1;
    while (ca->qps.contains(qp->number));
    qp->send_cq = send_cq;
    qp->recv_cq = recv_cq;
    qp->send_wrs = send_wrs;
    qp->recv_wrs = recv_wrs;
    qp->send_sges = send_sges;
    qp->recv_sges = 1;
    ++pd->users;
    ++send_cq->users;
    ++recv_cq->users;
    ca->qps[qp->number] = qp;
    world->qps[qp->serial] = qp;
    return qp;
}
void shim_ib_destroy_qp(ib_qp* qp)
{
    may_sleep("ib_destroy_qp");
    check_exists(qp, "ib_destroy_qp");
    SIM_CHECK(qp->groups.empty(), "a queue pair is destroyed while attached to groups");
    SIM_CHECK(qp->verbs == 0, "a queue pair is destroyed that a verb uses");
    world->qps.erase(qp->serial);
    qp->forget_completions();
    qp->ca->qps.erase(qp->number);
    --qp->pd->users;
    --qp->send_cq->users;
    --qp->recv_cq->users;
    if (qp->srq)
        --qp->srq->users;
    qp->state = ib_qp::State::destroyed;
    world->dead_qps.emplace_back(qp);
    if (world->dead_qps.size() > max_quarantine)
        world->dead_qps.pop_front();
}
void ib_qp::forget_completions()
{
    if (!ca->cleans_queues)
        return;
    for (ib_cq* cq : {send_cq, recv_cq})
        std::erase_if(cq->entries, [this](const Completion& entry) { return entry.qp == this; });
}
std::uint32_t shim_ib_qp_num(const ib_qp* qp)
{
    check_exists(qp, "qp_num");
    return qp->number;
}
int shim_qp_to_init(ib_qp* qp, std::uint32_t, std::uint16_t pkey_index, std::uint32_t qkey)
{
    if (const int error = move(qp, ib_qp::State::reset, ib_qp::State::init, "INIT"))
        return error;
    qp->pkey_index = pkey_index;
    qp->qkey = qkey;
    return 0;
}
int shim_qp_to_rtr(ib_qp* qp) { return move(qp, ib_qp::State::init, ib_qp::State::rtr, "RTR"); }
int shim_qp_to_rts(ib_qp* qp) { return move(qp, ib_qp::State::rtr, ib_qp::State::rts, "RTS"); }
int shim_qp_to_error(ib_qp* qp)
{
    const Verb verb(qp, "ib_modify_qp");
    qp->state = ib_qp::State::error;
    qp->kick();
    return 0;
}
int shim_qp_to_reset(ib_qp* qp)
{
    const Verb verb(qp, "ib_modify_qp");
    qp->state = ib_qp::State::reset;
    qp->sends.clear();
    qp->receives.clear();
    qp->seen = qp->posted;
    qp->forget_completions();
    return 0;
}
int shim_helper_qp_recover_send(ib_qp* qp)
{
    const Verb verb(qp, "ib_query_qp");
    if (qp->state != ib_qp::State::send_error)
        return -22;
    qp->state = ib_qp::State::rts;
    qp->kick();
    return 0;
}
int shim_qp_set_qkey(ib_qp* qp, std::uint32_t qkey)
{
    const Verb verb(qp, "ib_modify_qp");
    if (world->memory.fails() || qp->state == ib_qp::State::reset)
        return -22;
    qp->qkey = qkey;
    return 0;
}
int shim_ib_attach_mcast(ib_qp* qp, const shim_gid* mgid, std::uint16_t mlid)
{
    const Verb verb(qp, "ib_attach_mcast");
    if (world->memory.fails())
        return -12;
    // Same test as ib_core's.
    if (mlid < 0xc000 || mlid == 0xffff)
        return -22;
    const std::string name(reinterpret_cast<const char*>(mgid->raw), sizeof(mgid->raw));
    SIM_CHECK(qp->groups.emplace(name, mlid).second, "attached twice to a group");
    return 0;
}
void shim_ib_detach_mcast(ib_qp* qp, const shim_gid* mgid, std::uint16_t mlid)
{
    const Verb verb(qp, "ib_detach_mcast");
    const std::string name(reinterpret_cast<const char*>(mgid->raw), sizeof(mgid->raw));
    SIM_CHECK(qp->groups.erase({name, mlid}) == 1, "detached from a group that it was never attached to");
}

// Work requests

int shim_helper_post_send(ib_qp* qp, shim_send_wr* first, shim_send_wr** refused)
{
    world->scheduler.point();
    check_exists(qp, "ib_post_send");
    SIM_CHECK(qp->state != ib_qp::State::reset && qp->state != ib_qp::State::init,
              "a send is posted to a queue pair in state %d", static_cast<int>(qp->state));
    Random& random = world->scheduler.random();
    for (shim_send_wr* wr = first; wr; wr = wr->next) {
        if (random.one_in(qp->ca->post_error_one_in)) {
            if (refused)
                *refused = wr;
            qp->kick();
            return -12;
        }
        SIM_CHECK(qp->posted - qp->seen < qp->send_wrs, "a send queue of %u overruns", qp->send_wrs);
        SIM_CHECK(wr->count <= qp->send_sges, "a send of %u elements, of %u", wr->count, qp->send_sges);
        Send send{wr->id,   qp->posted++, wr->ah,       wr->qpn,
                  wr->qkey, wr->signaled, wr->checksum, {wr->sges, wr->sges + wr->count}};
        if (wr->segment_bytes) {
            SIM_CHECK(qp->ca->features & SHIM_FEATURE_TSO, "an HCA is to cut segments that can't");
            send.headers.assign(wr->headers, wr->headers + wr->header_bytes);
            send.segment_bytes = wr->segment_bytes;
        }
        SIM_CHECK(!wr->checksum || qp->ca->features & SHIM_FEATURE_IP_CSUM, "an HCA is to fill in sums that can't");
        for (const shim_sge& sge : send.sges)
            world->memory.check_mapped(sge.address, sge.length, qp->ca);
        qp->sends.push_back(std::move(send));
    }
    // The send may be completed before this returns.
    if (!qp->engine && random.one_in(4))
        qp->run();
    else
        qp->kick();
    world->scheduler.point();
    return 0;
}

static int take_receives(std::deque<Receive>& receives, unsigned int size, unsigned int sges, ib_device* ca,
                         shim_recv_wr* first, shim_recv_wr** refused)
{
    world->scheduler.point();
    *refused = nullptr;
    for (; first; first = first->next) {
        // Work requests before the failing one are accepted.
        if (world->scheduler.random().one_in(ca->post_error_one_in)) {
            *refused = first;
            world->memory.refuse();
            return -12;
        }
        SIM_CHECK(receives.size() < size, "a receive queue of %u overruns", size);
        SIM_CHECK(first->count <= sges, "a receive of %u elements, of %u", first->count, sges);
        receives.push_back({first->id, {first->sges, first->sges + first->count}});
        for (const shim_sge& sge : receives.back().sges)
            world->memory.check_mapped(sge.address, sge.length, ca);
    }
    return 0;
}
int shim_helper_post_recv(ib_qp* qp, shim_recv_wr* first, shim_recv_wr** refused)
{
    check_exists(qp, "ib_post_recv");
    SIM_CHECK(qp->state != ib_qp::State::reset, "a receive is posted to a queue pair in RESET");
    const int error = take_receives(qp->receives, qp->recv_wrs, qp->recv_sges, qp->ca, first, refused);
    if (qp->state == ib_qp::State::error)
        qp->kick();
    return error;
}
int shim_helper_post_srq_recv(ib_srq* srq, shim_recv_wr* first, shim_recv_wr** refused)
{
    return take_receives(srq->receives, srq->size, srq->sges, srq->pd->ca, first, refused);
}

// DMA

std::uint64_t shim_dma_map_to_device(ib_device* ca, void* address, std::size_t bytes)
{
    return world->memory.map(address, bytes, Memory::Way::to_device, ca);
}
void shim_dma_unmap_to_device(ib_device* ca, std::uint64_t address, std::size_t bytes)
{
    world->memory.unmap(address, bytes, Memory::Way::to_device, ca);
}
std::uint64_t shim_dma_map_frag(ib_device* ca, const sk_buff* skb, unsigned int frag)
{
    auto& bytes = const_cast<std::vector<std::uint8_t>&>(skb->frags.at(frag));
    return world->memory.map(bytes.data(), bytes.size(), Memory::Way::to_device, ca);
}
void shim_dma_unmap_frag(ib_device* ca, std::uint64_t address, std::size_t bytes)
{
    world->memory.unmap(address, bytes, Memory::Way::to_device, ca);
}
std::uint64_t shim_dma_map_from_device(ib_device* ca, void* address, std::size_t bytes)
{
    return world->memory.map(address, bytes, Memory::Way::from_device, ca);
}
void shim_dma_unmap_from_device(ib_device* ca, std::uint64_t address, std::size_t bytes)
{
    world->memory.unmap(address, bytes, Memory::Way::from_device, ca);
}
void shim_dma_sync_for_cpu(ib_device* ca, std::uint64_t address, std::size_t bytes)
{
    world->memory.check_mapped(address, bytes, ca);
}
void shim_dma_sync_for_device(ib_device* ca, std::uint64_t address, std::size_t bytes)
{
    world->memory.check_mapped(address, bytes, ca);
}
bool shim_dma_mapping_error(ib_device*, std::uint64_t address) { return address == Memory::no_address; }
