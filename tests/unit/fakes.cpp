// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The boundary on the host, function by function, and the World behind it.
#include "fakes.hpp"

#include <algorithm>
#include <cstdarg>
#include <numeric>
#include <span>

#include <gtest/gtest.h>

#include <ipoib/connected.hpp>
#include <ipoib/encapsulation.hpp>
#include <ipoib/mgid.hpp>
#include <ipoib/tcp.hpp>

struct shim_spinlock {
    bool held;
};
struct shim_mutex {
    bool held;
};
struct shim_completion {
    bool done;
};
struct shim_work {
    void (*run)(void*);
    void* context;
};
struct workqueue_struct {
    std::string name;
};
struct shim_napi {
    int (*poll)(void*, int);
    void* context;
    bool enabled;
};
struct shim_hash {
    std::map<std::string, shim_hash_node*>* nodes;
};
struct shim_wc {
    Completion entry;
};
static_assert(sizeof(shim_wc) <= SHIM_SIZEOF_WC && sizeof(shim_send_wr) <= SHIM_SIZEOF_SEND_WR);
static_assert(sizeof(shim_recv_wr) <= SHIM_SIZEOF_RECV_WR && sizeof(shim_napi) <= SHIM_SIZEOF_NAPI);

namespace {

World* world = nullptr;

constexpr int flushed = 5;

void may_sleep() { EXPECT_EQ(world->spinning, 0) << "sleeps under a spinlock or with bottom halves off"; }

void* allocate(std::size_t bytes)
{
    if (world->fail_allocation > 0 && --world->fail_allocation == 0)
        return nullptr;
    void* memory = ::operator new(bytes);
    std::memset(memory, 0, bytes);
    world->memory.insert(memory);
    return memory;
}

std::uint64_t map(const void* address)
{
    if (world->fail_mapping > 0 && --world->fail_mapping == 0)
        return 0;
    world->mappings.insert(reinterpret_cast<std::uint64_t>(address));
    return reinterpret_cast<std::uint64_t>(address);
}

void unmap(std::uint64_t address)
{
    const auto it = world->mappings.find(address);
    ASSERT_NE(it, world->mappings.end()) << "unmapped twice, or never mapped";
    world->mappings.erase(it);
}

void free_page(page* one)
{
    ASSERT_EQ(one->pool ? one->pool->pages.erase(one) : world->loose_pages.erase(one), 1U) << "a page is freed twice";
    delete one;
}

void free_skb(sk_buff* skb)
{
    ASSERT_EQ(world->skbs.erase(skb), 1U) << "an skb is freed twice";
    for (page* one : skb->pages)
        free_page(one);
    if (skb->buffer)
        free_page(skb->buffer);
    delete skb;
}

} // namespace

struct shim_parameters shim_parameters;
static char no_names[] = "";

// World

World& World::get() { return *world; }

World::World()
{
    world = this;
    shim_parameters = {128, 256, 128, 0, 0, 0, 0, 1, no_names};
}

World::~World()
{
    for (sk_buff* skb : std::vector<sk_buff*>(received))
        free_skb(skb);
    EXPECT_TRUE(skbs.empty()) << skbs.size() << " skbs are left";
    EXPECT_TRUE(ahs.empty()) << ahs.size() << " address handles are left";
    EXPECT_TRUE(memory.empty()) << memory.size() << " allocations are left";
    EXPECT_TRUE(mappings.empty()) << mappings.size() << " DMA mappings are left";
    EXPECT_TRUE(memberships.empty()) << memberships.size() << " memberships are left";
    EXPECT_TRUE(queued.empty()) << "work is left";
    EXPECT_TRUE(netdevs.empty() && qps.empty());
    EXPECT_TRUE(registered.empty() && work_queues == 0);
    EXPECT_TRUE(cm_ids.empty()) << cm_ids.size() << " connection identifiers are left";
    EXPECT_TRUE(srqs.empty() && loose_pages.empty());
    for (page_pool* pool : pools) {
        EXPECT_TRUE(pool->destroyed && pool->pages.empty()) << "a page pool is left, or pages of it";
        delete pool;
    }
    world = nullptr;
}

void World::start() { ASSERT_EQ(ipoib_start(), 0); }

void World::stop()
{
    if (!netdevs.empty() && netdevs.front()->registered && !netdevs.front()->stopped)
        run_polls();
    ipoib_stop();
}

void World::run_work()
{
    for (int guard = 0; guard < 10000; ++guard) {
        const auto it = std::find_if(queued.begin(), queued.end(), [&](const Queued& q) {
            return q.due <= now && !std::count(busy_queues.begin(), busy_queues.end(), q.queue);
        });
        if (it == queued.end()) {
            answer_cancelled_paths();
            return;
        }
        shim_work* work = it->work;
        busy_queues.push_back(it->queue);
        queued.erase(it);
        work->run(work->context);
        busy_queues.pop_back();
    }
    ADD_FAILURE() << "work never ends";
}

void World::advance(unsigned long ticks)
{
    // Work that sleeps lets time pass, too.
    for (const unsigned long end = now + ticks; !kernel::reached(end, now); ++now)
        run_work();
    run_work();
}

void World::answer_cancelled_paths()
{
    // An answer may have another question asked.
    for (std::size_t i = 0; i < paths.size(); ++i) {
        if (!paths[i].open || !paths[i].cancelled)
            continue;
        paths[i].open = false;
        sa_path_rec record{5};
        paths[i].answered(status_of_cancelled, status_of_cancelled ? nullptr : &record, paths[i].context);
    }
}

void World::run_polls()
{
    for (int guard = 0; guard < 10000 && !scheduled.empty(); ++guard) {
        shim_napi* napi = scheduled.front();
        scheduled.erase(scheduled.begin());
        if (!napi->enabled)
            continue;
        if (napi->poll(napi->context, 64) == 64)
            scheduled.push_back(napi);
    }
    EXPECT_TRUE(scheduled.empty()) << "polling never ends";
}

void World::sleep()
{
    run_polls();
    ++now;
    run_work();
}

bool World::refuses(const char* call)
{
    if (refused != call)
        return false;
    if (!granted)
        return true;
    --granted;
    return false;
}

void World::let_others_run()
{
    if (!meanwhile)
        return;
    const int here = std::exchange(spinning, 0);
    std::exchange(meanwhile, nullptr)();
    spinning = here;
}

void World::event(shim_event event, std::uint32_t port)
{
    for (const auto& [_, handler] : ca.handlers)
        handler.on_event(handler.context, event, port);
}

sk_buff* World::packet(const ipoib::HwAddr& to, std::uint16_t type, std::size_t payload)
{
    auto* skb = new sk_buff;
    skb->bytes.resize(64 + payload);
    skb->start = 64;
    skb->dev = &dev();
    skbs.insert(skb);
    EXPECT_EQ(ipoib_header_create(skb, type, to.bytes), IPOIB_HEADER_BYTES);
    return skb;
}

void World::transmit(sk_buff* skb, bool more_follow)
{
    more = more_follow;
    ++spinning;
    ipoib_ndo_start_xmit(skb, skb->dev);
    --spinning;
    more = false;
}

void World::complete_sends(std::size_t count, int status)
{
    finish_sends(count, status);
    // Few of them raise no event.
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
    message.event = SHIM_CM_REP;
    message.private_data = reinterpret_cast<const std::uint8_t*>(&data);
    EXPECT_EQ(ipoib_cm_event(id, &message, id->context), 0);
}

void World::message(ib_cm_id* id, shim_cm_event event, unsigned int reason)
{
    ASSERT_NE(id, nullptr);
    shim_cm_message message{};
    message.event = event;
    message.reason = reason;
    EXPECT_EQ(ipoib_cm_event(id, &message, id->context), 0);
}

ib_cm_id* World::new_cm_id(void* context)
{
    auto* id = new ib_cm_id;
    id->context = context;
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
    ib_cm_id* const id = new_cm_id(listener->context);
    const ipoib::PrivateData data{{kernel::Be32(qpn), kernel::Be32(mtu)}, offer};
    shim_cm_message message{};
    message.event = SHIM_CM_REQ;
    message.private_data = reinterpret_cast<const std::uint8_t*>(&data);
    message.peer = from.native();
    message.reliable = reliable;
    if (!ipoib_cm_event(id, &message, id->context))
        return id;
    turned_away = id->reason;
    cm_ids.erase(id);
    delete id;
    return nullptr;
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

std::size_t World::open_paths() const
{
    return static_cast<std::size_t>(std::count_if(paths.begin(), paths.end(), [](const auto& p) { return p.open; }));
}

void World::answer_path(int status, std::uint16_t dlid)
{
    for (PathQuestion& question : paths) {
        if (!question.open)
            continue;
        question.open = false;
        sa_path_rec record{dlid};
        question.answered(status, status ? nullptr : &record, question.context);
        return;
    }
    ADD_FAILURE() << "no path was asked for";
}

ib_sa_multicast* World::join_of(const ipoib::Gid& mgid)
{
    for (ib_sa_multicast* join : open_joins)
        if (ipoib::Gid::from(join->asked.mgid) == mgid)
            return join;
    return nullptr;
}

void World::answer_join(ib_sa_multicast* join, int status, std::uint16_t mlid)
{
    ASSERT_NE(join, nullptr);
    std::erase(open_joins, join);
    shim_mcmember member = join->asked;
    member.mlid = mlid;
    if (!join->with_parameters) {
        member.qkey = 0xb1b;
        member.mtu = group_mtu;
        member.rate = 3;
        member.sl = 1;
        member.traffic_class = 2;
        member.hop_limit = 3;
        member.flow_label = 4;
    }
    if (join->answered(status, &member, join->context)) {
        std::erase(memberships, join);
        delete join;
    }
}

void World::answer_broadcast(int status, std::uint8_t mtu)
{
    group_mtu = mtu;
    answer_join(join_of(ipoib::broadcast_gid(ipoib::PKey(ca.pkey))), status, 0xc000);
}

void World::bring_up()
{
    rtnl = true;
    ASSERT_EQ(ipoib_ndo_open(&dev()), 0);
    rtnl = false;
    run_polls();
    run_work();
    answer_broadcast();
    run_work();
    ASSERT_TRUE(dev().carrier);
}

// memory.h

void* shim_alloc(std::size_t bytes)
{
    may_sleep();
    return allocate(bytes);
}
void* shim_alloc_atomic(std::size_t bytes) { return allocate(bytes); }
void* shim_alloc_array(std::size_t count, std::size_t bytes)
{
    may_sleep();
    return allocate(count * bytes);
}
void shim_free(void* memory)
{
    if (!memory)
        return;
    EXPECT_EQ(world->memory.erase(memory), 1U) << "memory is freed twice";
    ::operator delete(memory);
}

// sync.h

void shim_spinlock_init(shim_spinlock* lock, shim_lock_class*, const char*) { lock->held = false; }
void shim_spinlock_lock_bh(shim_spinlock* lock)
{
    world->let_others_run();
    EXPECT_FALSE(lock->held) << "a spinlock is taken twice";
    lock->held = true;
    ++world->spinning;
}
void shim_spinlock_unlock_bh(shim_spinlock* lock)
{
    lock->held = false;
    --world->spinning;
}
void shim_spinlock_assert_held(const shim_spinlock* lock) { EXPECT_TRUE(lock->held); }
void shim_mutex_init(shim_mutex* mutex, shim_lock_class*, const char*) { mutex->held = false; }
void shim_mutex_lock(shim_mutex* mutex)
{
    may_sleep();
    EXPECT_FALSE(mutex->held) << "a mutex is taken twice";
    mutex->held = true;
}
void shim_mutex_unlock(shim_mutex* mutex) { mutex->held = false; }
void shim_mutex_destroy(shim_mutex*) {}
void shim_completion_init(shim_completion* completion) { completion->done = false; }
void shim_completion_complete(shim_completion* completion) { completion->done = true; }
void shim_completion_wait(shim_completion* completion)
{
    may_sleep();
    world->answer_cancelled_paths();
    EXPECT_TRUE(completion->done) << "waits for what never comes";
}
void shim_rcu_read_lock() {}
void shim_rcu_read_unlock() {}
void shim_rcu_synchronize()
{
    may_sleep();
    ++world->grace_periods;
}
void shim_smp_mb() { world->let_others_run(); }
void shim_bh_disable() { ++world->spinning; }
void shim_bh_enable() { --world->spinning; }
unsigned long shim_jiffies() { return world->now; }
std::uint32_t shim_random_below(std::uint32_t limit) { return world->chance * (limit - 1) / 100; }
unsigned long shim_jiffies_per_second() { return 100; }
void shim_sleep_ms(unsigned int)
{
    may_sleep();
    world->sleep();
}
void shim_rtnl_lock()
{
    EXPECT_FALSE(world->rtnl);
    world->rtnl = true;
}
bool shim_rtnl_trylock() { return world->rtnl ? false : (world->rtnl = true); }
void shim_rtnl_unlock()
{
    world->rtnl = false;
    // The end of those that were unregistered under it.
    while (!world->going.empty()) {
        net_device* dev = world->going.front();
        world->going.erase(world->going.begin());
        ipoib_netdev_gone(dev);
        delete dev;
    }
}

// work.h

workqueue_struct* shim_workqueue_create(const char* name)
{
    if (world->refuses("workqueue_create"))
        return nullptr;
    ++world->work_queues;
    return new workqueue_struct{name};
}
void shim_workqueue_destroy(workqueue_struct* queue)
{
    --world->work_queues;
    delete queue;
}
void shim_work_init(shim_work* work, void (*run)(void*), void* context, shim_lock_class*, const char* name)
{
    EXPECT_NE(strstr(name, "::"), nullptr);
    *work = {run, context};
}
void shim_work_queue(workqueue_struct* queue, shim_work* work, unsigned long delay)
{
    EXPECT_NE(queue, nullptr);
    for (const auto& queued : world->queued)
        if (queued.work == work)
            return;
    world->queued.push_back({work, world->now + delay, queue});
}
void shim_work_requeue(workqueue_struct* queue, shim_work* work, unsigned long delay)
{
    std::erase_if(world->queued, [&](const auto& queued) { return queued.work == work; });
    shim_work_queue(queue, work, delay);
}
void shim_work_cancel(shim_work* work)
{
    may_sleep();
    std::erase_if(world->queued, [&](const auto& queued) { return queued.work == work; });
}

// hash.h

namespace {
std::string text(const void* key, std::uint16_t bytes) { return std::string(static_cast<const char*>(key), bytes); }
std::string key_of(const shim_hash_node* node, std::uint16_t bytes)
{
    return text(reinterpret_cast<const char*>(node) + SHIM_SIZEOF_HASH_NODE, bytes);
}
} // namespace

int shim_hash_init(shim_hash* hash, std::uint16_t)
{
    if (world->refuses("hash_init"))
        return -12;
    hash->nodes = new std::map<std::string, shim_hash_node*>;
    return 0;
}
void shim_hash_destroy(shim_hash* hash)
{
    EXPECT_TRUE(hash->nodes->empty()) << "a hash table is destroyed with elements in it";
    delete hash->nodes;
}
shim_hash_node* shim_hash_find(shim_hash* hash, const void* key, std::uint16_t bytes)
{
    const auto it = hash->nodes->find(text(key, bytes));
    return it == hash->nodes->end() ? nullptr : it->second;
}
int shim_hash_insert(shim_hash* hash, shim_hash_node* node, std::uint16_t bytes)
{
    if (world->fail_allocation > 0 && --world->fail_allocation == 0)
        return -12;
    return hash->nodes->emplace(key_of(node, bytes), node).second ? 0 : -17;
}
void shim_hash_remove(shim_hash* hash, shim_hash_node* node, std::uint16_t bytes)
{
    EXPECT_EQ(hash->nodes->erase(key_of(node, bytes)), 1U);
}

// skbuff.h

unsigned char* shim_skb_data(const sk_buff* skb) { return const_cast<unsigned char*>(skb->bytes.data()) + skb->start; }
unsigned int shim_skb_headlen(const sk_buff* skb) { return static_cast<unsigned int>(skb->bytes.size() - skb->start); }
unsigned int shim_skb_len(const sk_buff* skb)
{
    return std::accumulate(skb->frags.begin(), skb->frags.end(), shim_skb_headlen(skb),
                           [](unsigned int sum, auto& frag) { return sum + static_cast<unsigned int>(frag.size()); });
}
unsigned int shim_skb_frags(const sk_buff* skb) { return static_cast<unsigned int>(skb->frags.size()); }
unsigned int shim_skb_frag_len(const sk_buff* skb, unsigned int frag)
{
    return static_cast<unsigned int>(skb->frags.at(frag).size());
}
unsigned char* shim_skb_push(sk_buff* skb, unsigned int bytes)
{
    EXPECT_GE(skb->start, bytes);
    skb->start -= bytes;
    return shim_skb_data(skb);
}
unsigned char* shim_skb_pull(sk_buff* skb, unsigned int bytes)
{
    EXPECT_GE(shim_skb_len(skb), bytes);
    skb->start += bytes;
    return shim_skb_data(skb);
}
void shim_skb_reserve(sk_buff* skb, unsigned int bytes) { skb->start += bytes; }
void shim_skb_put(sk_buff* skb, unsigned int bytes)
{
    if (!skb->buffer) {
        skb->bytes.resize(skb->bytes.size() + bytes);
        return;
    }
    EXPECT_LE(skb->start + bytes + shim_skb_buffer_tailroom(), skb->buffer->bytes.size());
    // Until now the vector holds the whole buffer.
    skb->bytes.assign(skb->buffer->bytes.begin(), skb->buffer->bytes.begin() + static_cast<long>(skb->start + bytes));
}
void shim_skb_set_mac_header(sk_buff* skb, unsigned int bytes)
{
    skb->mac_header.assign(shim_skb_data(skb), shim_skb_data(skb) + bytes);
    skb->start += bytes;
}
int shim_skb_linearize(sk_buff* skb)
{
    if (world->fail_allocation > 0 && --world->fail_allocation == 0)
        return -12;
    for (const auto& frag : skb->frags)
        skb->bytes.insert(skb->bytes.end(), frag.begin(), frag.end());
    skb->frags.clear();
    return 0;
}
unsigned int shim_skb_segment_bytes(const sk_buff* skb) { return skb->segment_bytes; }
unsigned int shim_skb_tcp_headers(const sk_buff* skb) { return skb->header_bytes; }
bool shim_skb_pull_headers(sk_buff*, unsigned int) { return !world->refuses("skb_pull_headers"); }
bool shim_skb_wants_checksum(const sk_buff* skb) { return skb->wants_checksum; }
int shim_skb_fill_checksum(sk_buff* skb)
{
    skb->wants_checksum = false;
    return 0;
}
void shim_skb_set_protocol(sk_buff* skb, std::uint16_t type) { skb->protocol = type; }
void shim_skb_set_device(sk_buff* skb, net_device* dev) { skb->dev = dev; }
void shim_skb_set_packet_type(sk_buff* skb, shim_packet_type type) { skb->type = type; }
void shim_skb_checksum_verified(sk_buff* skb) { skb->verified = true; }
void shim_skb_set_merged(sk_buff* skb, unsigned int segments, unsigned int segment_bytes)
{
    skb->segments = segments;
    skb->segment_bytes = segment_bytes;
    // The headers were changed in the buffer.
    const auto headers = skb->buffer->bytes.begin() + static_cast<long>(skb->start);
    const auto& tcp = *reinterpret_cast<const ipoib::TcpHeader*>(&headers[sizeof(ipoib::Ipv4Header)]);
    std::copy_n(headers, sizeof(ipoib::Ipv4Header) + (tcp.length >> 4) * 4U,
                skb->bytes.begin() + static_cast<long>(skb->start));
}
void shim_skb_tx_timestamp(sk_buff*) {}
void shim_skb_consume(sk_buff* skb, int) { free_skb(skb); }
void shim_skb_drop(sk_buff* skb, shim_drop why)
{
    world->reasons.insert(why);
    ++world->drops;
    free_skb(skb);
}
void shim_skb_transmit_again(sk_buff* skb, net_device* dev)
{
    may_sleep();
    EXPECT_EQ(skb->dev, dev);
    world->transmit(skb);
}
void shim_skb_orphan(sk_buff* skb) { skb->orphaned = true; }
sk_buff* shim_skb_next(const sk_buff* skb) { return skb->next; }
void shim_skb_set_next(sk_buff* skb, sk_buff* next) { skb->next = next; }

void shim_skb_set_note(sk_buff* skb, unsigned int note) { skb->note = note; }
unsigned int shim_skb_note(const sk_buff* skb) { return skb->note; }
void shim_skb_update_pmtu(sk_buff*, unsigned int mtu) { world->updated_pmtus.push_back(mtu); }
void shim_skb_reject_too_big(sk_buff* skb, net_device*, unsigned int mtu)
{
    may_sleep();
    world->rejected_mtus.push_back(mtu);
    free_skb(skb);
}
sk_buff* shim_skb_alloc(shim_napi*, unsigned int)
{
    if (world->fail_allocation > 0 && --world->fail_allocation == 0)
        return nullptr;
    auto* skb = new sk_buff;
    world->skbs.insert(skb);
    return skb;
}
void shim_skb_add_page(sk_buff* skb, page* one, unsigned int offset, unsigned int bytes)
{
    const auto from = one->bytes.begin() + offset;
    skb->bytes.insert(skb->bytes.end(), from, from + bytes);
    skb->pages.push_back(one);
}
void shim_skb_mark_for_recycle(sk_buff*) {}
page* shim_page_alloc()
{
    may_sleep();
    if (world->fail_pages)
        return nullptr;
    auto* one = new page{nullptr, std::vector<std::uint8_t>(4096)};
    world->loose_pages.insert(one);
    return one;
}
void shim_page_free(page* one) { free_page(one); }

page_pool* shim_pool_create(unsigned int, unsigned int order)
{
    if (world->refuses("pool_create"))
        return reinterpret_cast<page_pool*>(std::intptr_t(-12));
    auto* pool = new page_pool{order, {}, false};
    world->pools.insert(pool);
    return pool;
}
void shim_pool_destroy(page_pool* pool) { pool->destroyed = true; }
page* shim_pool_get(page_pool* pool)
{
    if (world->fail_pages)
        return nullptr;
    auto* buffer = new page{pool, std::vector<std::uint8_t>(std::size_t(4096) << pool->order)};
    pool->pages.insert(buffer);
    return buffer;
}
void shim_pool_put(page_pool* pool, page* buffer, bool)
{
    ASSERT_EQ(pool->pages.erase(buffer), 1U);
    delete buffer;
}
void* shim_page_address(page* buffer) { return buffer->bytes.data(); }
sk_buff* shim_skb_build(page* buffer, unsigned int)
{
    if (world->fail_allocation > 0 && --world->fail_allocation == 0)
        return nullptr;
    auto* skb = new sk_buff;
    skb->buffer = buffer;
    world->skbs.insert(skb);
    return skb;
}
unsigned int shim_skb_buffer_headroom() { return 64; }
unsigned int shim_skb_buffer_tailroom() { return 320; }
unsigned int shim_page_size() { return 4096; }

// tso.h

namespace {

// The data's pieces are the rest of the linear part and the fragments.
struct Cut {
    sk_buff* skb;
    std::size_t piece, done;
    std::uint32_t cut_bytes;
};
static_assert(sizeof(Cut) <= SHIM_SIZEOF_TSO);
Cut& cut_of(shim_tso* tso) { return *reinterpret_cast<Cut*>(tso); }
std::span<std::uint8_t> piece_of(const shim_tso* tso)
{
    const Cut& cut = *reinterpret_cast<const Cut*>(tso);
    std::span<std::uint8_t> whole(cut.skb->bytes);
    whole = cut.piece ? std::span<std::uint8_t>(cut.skb->frags.at(cut.piece - 1))
                      : whole.subspan(cut.skb->start + cut.skb->header_bytes);
    return whole.subspan(cut.done);
}
void next_piece(shim_tso* tso)
{
    Cut& cut = cut_of(tso);
    while (cut.piece < cut.skb->frags.size() && piece_of(tso).empty()) {
        ++cut.piece;
        cut.done = 0;
    }
}

} // namespace

void shim_tso_begin(shim_tso* tso, sk_buff* skb)
{
    cut_of(tso) = {skb, 0, 0, 0};
    next_piece(tso);
}
void shim_tso_write_headers(shim_tso* tso, const sk_buff* skb, void* headers, unsigned int data_bytes, bool last)
{
    std::memcpy(headers, skb->bytes.data() + skb->start, skb->header_bytes);
    auto& ip = *reinterpret_cast<ipoib::Ipv4Header*>(static_cast<std::uint8_t*>(headers) + 4);
    auto& tcp = *reinterpret_cast<ipoib::TcpHeader*>(&ip + 1);
    ip.total_bytes = kernel::Be16(static_cast<std::uint16_t>(skb->header_bytes - 4 + data_bytes));
    tcp.sequence = kernel::Be32(tcp.sequence.value() + cut_of(tso).cut_bytes);
    if (!last)
        tcp.flags &= static_cast<std::uint8_t>(~ipoib::tcp_psh);
    cut_of(tso).cut_bytes += data_bytes;
}
void* shim_tso_data(const shim_tso* tso) { return piece_of(tso).data(); }
unsigned int shim_tso_piece_bytes(const shim_tso* tso) { return static_cast<unsigned int>(piece_of(tso).size()); }
void shim_tso_advance(shim_tso* tso, const sk_buff*, unsigned int bytes)
{
    cut_of(tso).done += bytes;
    next_piece(tso);
}
std::uint32_t shim_tso_add_to_sum(std::uint32_t sum, const void* data, unsigned int bytes, unsigned int offset)
{
    for (unsigned int i = 0; i < bytes; ++i)
        sum += static_cast<std::uint32_t>(static_cast<const std::uint8_t*>(data)[i]) << ((offset + i) % 2 ? 0 : 8);
    return sum;
}
// Of the data alone.
void shim_tso_fill_checksums(const shim_tso*, const sk_buff*, void* headers, unsigned int, std::uint32_t sum)
{
    auto& ip = *reinterpret_cast<ipoib::Ipv4Header*>(static_cast<std::uint8_t*>(headers) + 4);
    sum = (sum >> 16) + (sum & 0xffff);
    reinterpret_cast<ipoib::TcpHeader*>(&ip + 1)->checksum =
        kernel::Be16(static_cast<std::uint16_t>(~((sum >> 16) + sum)));
}

// lower.h

int shim_lower_start(shim_lower* lower, net_device* dev, ib_device*, std::uint32_t)
{
    if (!world->have_lower)
        return -95;
    if (world->fail_allocation > 0 && --world->fail_allocation == 0)
        return -12;
    *lower = {dev};
    ++world->lowers;
    return 0;
}
void shim_lower_end(shim_lower*, net_device*) { --world->lowers; }
int shim_lower_init(const shim_lower* lower, net_device* dev)
{
    EXPECT_EQ(lower->dev, dev);
    dev->address[3] = 0x77;
    dev->lower.push_back("init");
    return 0;
}
void shim_lower_uninit(const shim_lower*, net_device* dev) { dev->lower.push_back("uninit"); }
int shim_lower_open(const shim_lower*, net_device* dev, std::uint16_t)
{
    if (world->refuses("lower_open"))
        return -5;
    dev->lower.push_back("open");
    return 0;
}
void shim_lower_stop(const shim_lower*, net_device* dev) { dev->lower.push_back("stop"); }
int shim_lower_change_mtu(const shim_lower*, net_device* dev, unsigned int mtu)
{
    dev->mtu = mtu;
    return 0;
}
void shim_lower_tx_timeout(net_device* dev) { dev->lower.push_back("timeout"); }
void shim_lower_get_stats(const shim_lower*, net_device*, shim_stats* stats) { stats->tx_packets += 1000; }
void shim_lower_set_mtu(net_device*, unsigned int) {}
void shim_lower_send(net_device* dev, sk_buff* skb, ib_ah* ah, std::uint32_t)
{
    EXPECT_TRUE(world->ahs.contains(ah));
    dev->lower.push_back("send");
    free_skb(skb);
}
int shim_lower_attach(net_device* dev, ib_device*, const shim_gid*, std::uint16_t, bool set_qkey, std::uint32_t)
{
    dev->lower.push_back(set_qkey ? "attach broadcast" : "attach");
    return 0;
}
void shim_lower_detach(net_device* dev, ib_device*, const shim_gid*, std::uint16_t) { dev->lower.push_back("detach"); }

// trace.h

void shim_trace_step(const net_device*, shim_trace_machine machine, const std::uint8_t*, const char* before,
                     const char* after)
{
    EXPECT_LT(std::strlen(before), 12U);
    EXPECT_LT(std::strlen(after), 12U);
    static const char* const names[] = {"path", "group", "active", "passive"};
    world->trace.push_back(std::string(names[machine]) + " " + before + " " + after);
}
void shim_trace_interface(const net_device*, const char* before, const char* after)
{
    world->trace.push_back(std::string("interface ") + before + " " + after);
}
void shim_trace_flush(const net_device*, const char* level) { world->trace.push_back(std::string("flush ") + level); }
void shim_trace_ring(const net_device*, const char* ring, const char* what, unsigned int used, unsigned int size)
{
    EXPECT_LE(used, size);
    world->trace.push_back(std::string(ring) + " " + what);
}

// dim.h

void shim_dim_init(shim_dim* dim, void (*apply)(void*, unsigned int, unsigned int), void* context)
{
    *dim = {apply, context};
}
void shim_dim_look(shim_dim* dim, std::uint16_t events, std::uint64_t packets, std::uint64_t)
{
    world->dim_looks.push_back({events, packets});
    world->dim = dim;
}
void shim_dim_cancel(shim_dim*) { world->dim = nullptr; }

// netdevice.h

net_device* shim_netdev_create(ib_device*, std::uint32_t)
{
    if (world->refuses("netdev_create"))
        return nullptr;
    auto* dev = new net_device;
    world->netdevs.push_back(dev);
    return dev;
}
void* shim_netdev_owner(const net_device* dev) { return dev->owner; }
void shim_netdev_set_owner(net_device* dev, void* owner) { dev->owner = owner; }
net_device* shim_netdev_create_child(ib_device*, std::uint32_t, net_device*, const char* name)
{
    if (world->refuses("netdev_create_child"))
        return nullptr;
    auto* dev = new net_device;
    dev->name = name;
    world->netdevs.push_back(dev);
    return dev;
}
void shim_netdev_use_one_queue(net_device*) {}
void shim_tx_queue_always_allow(net_device*, unsigned int) {}
void shim_netdev_set_up(net_device*, unsigned int, unsigned int) {}
void shim_netdev_set_child(net_device* dev)
{
    EXPECT_FALSE(dev->registered);
    dev->child = true;
}
void shim_netdev_limit_segments(net_device* dev, unsigned int segments) { dev->most_segments = segments; }
int shim_netdev_register(net_device* dev)
{
    EXPECT_TRUE(world->rtnl);
    const int error = ipoib_ndo_init(dev);
    dev->registered = !error;
    return error;
}
void shim_netdev_unregister(net_device* dev, void*)
{
    EXPECT_TRUE(world->rtnl);
    ipoib_ndo_stop(dev);
    ipoib_ndo_uninit(dev);
    dev->registered = false;
    std::erase(world->netdevs, dev);
    world->going.push_back(dev);
}
bool shim_netdev_is_ours(const net_device* dev) { return dev->ours; }
bool shim_netdev_up(const net_device* dev) { return dev->up; }
void shim_netdev_bring(net_device* dev, bool up)
{
    EXPECT_TRUE(world->rtnl);
    // One that does not open stays down.
    dev->up = up && ipoib_ndo_open(dev) == 0;
    if (!up)
        ipoib_ndo_stop(dev);
}
bool shim_may_administer(const net_device*) { return world->administrator; }
bool shim_parse_int(const char* text, int* value) { return sscanf(text, "%i", value) == 1; }
void shim_netdev_free(net_device* dev)
{
    std::erase(world->netdevs, dev);
    delete dev;
}
const char* shim_netdev_name(const net_device* dev) { return dev->name.c_str(); }
void shim_netdev_set_address(net_device* dev, unsigned int offset, const void* address, unsigned int bytes)
{
    std::memcpy(dev->address.data() + offset, address, bytes);
}
uint8_t* shim_netdev_broadcast(net_device* dev) { return dev->broadcast.data(); }
void shim_netdev_set_initial_mtu(net_device* dev, unsigned int mtu) { dev->mtu = mtu; }
void shim_netdev_store_mtu(net_device* dev, unsigned int mtu) { dev->mtu = mtu; }
int shim_netdev_change_mtu(net_device* dev, unsigned int mtu)
{
    EXPECT_TRUE(world->rtnl);
    if (world->refuses("netdev_change_mtu"))
        return -16;
    return mtu == dev->mtu ? 0 : ipoib_ndo_change_mtu(dev, static_cast<int>(mtu));
}
unsigned int shim_netdev_mtu(const net_device* dev) { return dev->mtu; }
bool shim_netdev_rx_checksum(const net_device* dev) { return dev->rx_checksum; }
bool shim_netdev_lro(const net_device* dev) { return dev->lro; }
const std::uint8_t* shim_netdev_address(const net_device* dev) { return dev->address.data(); }
bool shim_netdev_address_given(const net_device* dev) { return dev->address_given; }
bool shim_netdev_has_address(net_device* dev, const sockaddr* address) { return dev->ip == address; }
net_device* shim_netdev_hold_outermost(net_device* dev)
{
    ++dev->holds;
    return dev;
}
void shim_netdev_address_changed(net_device* dev)
{
    EXPECT_TRUE(world->rtnl);
    dev->address_changes += dev->registered;
}
void shim_netdev_notify_peers(net_device* dev)
{
    EXPECT_TRUE(world->rtnl);
    ++dev->announcements;
}
void shim_netdev_update_features(net_device* dev)
{
    EXPECT_TRUE(world->rtnl);
    ++dev->feature_updates;
}
void shim_netdev_for_each_multicast(net_device* dev, void (*visit)(void*, const std::uint8_t*), void* context)
{
    ++world->spinning;
    for (const auto& address : dev->multicast)
        visit(context, address.bytes);
    --world->spinning;
}
void shim_netdev_carrier_on(net_device* dev) { dev->carrier = true; }
void shim_netdev_carrier_off(net_device* dev) { dev->carrier = false; }
void shim_tx_queue_start(net_device* dev) { dev->stopped = false; }
void shim_tx_queue_stop(net_device* dev) { dev->stopped = true; }
void shim_tx_queue_wake(net_device* dev)
{
    dev->wakes += dev->stopped;
    dev->stopped = false;
}
bool shim_tx_queue_stopped(const net_device* dev) { return dev->stopped; }
bool shim_tx_queue_held(const net_device* dev) { return dev->stopped || dev->limited; }
void shim_tx_queue_disable(net_device* dev) { dev->stopped = true; }
bool shim_tx_queue_sent(net_device* dev, unsigned int bytes, bool more)
{
    dev->queued_bytes += static_cast<int>(bytes);
    return !more;
}
void shim_tx_queue_completed(net_device* dev, unsigned int, unsigned int bytes)
{
    dev->queued_bytes -= static_cast<int>(bytes);
    EXPECT_GE(dev->queued_bytes, 0);
}
void shim_tx_queue_reset(net_device* dev) { dev->queued_bytes = 0; }
bool shim_xmit_more() { return world->more; }
unsigned int shim_tx_queue_idle_ms(const net_device*) { return 0; }
void shim_napi_add(net_device*, shim_napi* napi, int (*poll)(void*, int), void* context, bool)
{
    *napi = {poll, context, false};
}
void shim_napi_remove(shim_napi* napi) { EXPECT_FALSE(napi->enabled); }
void shim_napi_enable(shim_napi* napi) { napi->enabled = true; }
void shim_napi_disable(shim_napi* napi)
{
    may_sleep();
    napi->enabled = false;
    std::erase(world->scheduled, napi);
}
void shim_napi_schedule(shim_napi* napi)
{
    if (std::find(world->scheduled.begin(), world->scheduled.end(), napi) == world->scheduled.end())
        world->scheduled.push_back(napi);
}
bool shim_napi_complete(shim_napi*, int) { return true; }
void shim_napi_receive(shim_napi*, sk_buff* skb) { world->received.push_back(skb); }
void shim_napi_receive_unmerged(shim_napi*, sk_buff* skb)
{
    world->received.push_back(skb);
    ++world->unmerged;
}
bool shim_napi_holds_packets(const shim_napi*) { return world->gro_holds_packets; }
unsigned long shim_neighbour_gc_interval() { return 3000; }
int shim_restart_syscall() { return -513; }
int shim_format(char* buffer, std::size_t bytes, const char* format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(buffer, bytes, format, arguments);
    va_end(arguments);
    return written;
}

// module.h

void shim_log(const net_device*, shim_level level, const char* format, ...)
{
    if (level == SHIM_LOG_WARNING)
        world->log.emplace_back(format);
}
namespace {
int register_as(const char* what)
{
    if (world->refuses(what))
        return -12;
    world->registered.push_back(what);
    return 0;
}
void unregister(const char* what) { EXPECT_EQ(std::erase(world->registered, what), 1U) << what; }
} // namespace

int shim_client_register()
{
    if (const int error = register_as("client"))
        return error;
    // Who registers is not told what becomes of an HCA.
    (void)ipoib_add_device(&world->ca, &world->state);
    return 0;
}
void shim_client_unregister()
{
    unregister("client");
    if (world->state)
        ipoib_remove_device(&world->ca, std::exchange(world->state, nullptr));
}
std::uint32_t shim_ib_ports(const ib_device*) { return 1; }
bool shim_ib_port_is_ib(const ib_device* ca, std::uint32_t) { return ca->infiniband; }

// verbs.h

const char* shim_ib_device_name(const ib_device*) { return "fake0"; }
unsigned int shim_ib_max_send_sge(const ib_device*) { return 18; }
unsigned int shim_ib_abilities(const ib_device*) { return world->abilities; }
unsigned int shim_ib_comp_vectors(const ib_device*) { return 2; }
int shim_ib_query_port(ib_device* ca, std::uint32_t, shim_port* port)
{
    *port = ca->port;
    return world->refuses("ib_query_port") ? -19 : 0;
}
int shim_ib_query_gid(ib_device* ca, std::uint32_t, int, shim_gid* gid)
{
    *gid = ca->gid;
    return world->refuses("ib_query_gid") ? -5 : 0;
}
int shim_ib_find_gid(ib_device* ca, std::uint32_t, const shim_gid* gid, std::uint16_t* index)
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
    *pkey = ca->pkey;
    return 0;
}
int shim_ib_find_pkey(ib_device*, std::uint32_t, std::uint16_t pkey, std::uint16_t* index)
{
    for (std::size_t i = 0; i < world->pkeys_found.size(); ++i) {
        if ((world->pkeys_found[i] & 0x7fff) != (pkey & 0x7fff))
            continue;
        *index = static_cast<std::uint16_t>(i);
        return 0;
    }
    return -2;
}
int shim_pointer_error(const void* pointer)
{
    const auto value = reinterpret_cast<std::intptr_t>(pointer);
    return value < 0 && value >= -4095 ? static_cast<int>(value) : 0;
}
ib_pd* shim_pd_create(ib_device* ca) { return new ib_pd{ca}; }
void shim_pd_destroy(ib_pd* pd) { delete pd; }
std::uint32_t shim_pd_lkey(const ib_pd*) { return 7; }
ib_cq* shim_cq_create(ib_device*, unsigned int size, unsigned int, void (*completed)(ib_cq*, void*), void* context)
{
    return new ib_cq{completed, context, {}, false, size};
}
void shim_cq_destroy(ib_cq* cq) { delete cq; }
int shim_cq_poll(ib_cq* cq, int entries, shim_wc* wc)
{
    int n = 0;
    for (; n < entries && !cq->entries.empty(); ++n, cq->entries.pop_front())
        shim_wc_at(wc, n)->entry = cq->entries.front();
    return n;
}
int shim_cq_moderate(ib_cq*, unsigned int entries, unsigned int usecs)
{
    world->ca.moderated_entries = entries;
    world->ca.moderated_usecs = usecs;
    return world->ca.moderation_error;
}
int shim_cq_arm(ib_cq* cq)
{
    cq->armed = true;
    return cq->entries.empty() ? 0 : 1;
}
shim_wc* shim_wc_at(shim_wc* wc, int index)
{
    return reinterpret_cast<shim_wc*>(reinterpret_cast<char*>(wc) + SHIM_SIZEOF_WC * static_cast<std::size_t>(index));
}
std::uint64_t shim_wc_id(const shim_wc* wc) { return wc->entry.id; }
bool shim_wc_ok(const shim_wc* wc) { return wc->entry.status == 0; }
bool shim_wc_flushed(const shim_wc* wc) { return wc->entry.status == flushed; }
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
ib_qp* shim_qp_create(ib_pd*, ib_cq* send_cq, ib_cq* recv_cq, unsigned int send_wrs, unsigned int recv_wrs,
                      unsigned int)
{
    if (world->fail_qps > 0) {
        --world->fail_qps;
        return reinterpret_cast<ib_qp*>(std::intptr_t(-12));
    }
    auto* qp = new ib_qp;
    qp->number += world->qps_made++;
    qp->send_wrs = send_wrs;
    qp->recv_wrs = recv_wrs;
    qp->send_cq = send_cq;
    qp->recv_cq = recv_cq;
    world->qps.push_back(qp);
    return qp;
}
void shim_qp_destroy(ib_qp* qp)
{
    EXPECT_TRUE(qp->attached.empty()) << "a queue pair is destroyed while attached to groups";
    std::erase(world->qps, qp);
    delete qp;
}
std::uint32_t shim_qp_number(const ib_qp* qp) { return qp->number; }
int shim_qp_to_init(ib_qp* qp, std::uint32_t, std::uint16_t, std::uint32_t)
{
    EXPECT_EQ(qp->state, "reset");
    qp->state = "init";
    return 0;
}
int shim_qp_to_rtr(ib_qp* qp)
{
    qp->state = "rtr";
    return 0;
}
int shim_qp_to_rts(ib_qp* qp)
{
    qp->state = "rts";
    return 0;
}
int shim_qp_to_error(ib_qp* qp)
{
    if (world->refuses("qp_to_error"))
        return -22;
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
int shim_qp_recover_send(ib_qp* qp)
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
int shim_qp_attach(ib_qp* qp, const shim_gid* mgid, std::uint16_t mlid)
{
    may_sleep();
    if (world->refuses("qp_attach"))
        return -12;
    EXPECT_TRUE(qp->attached.emplace(text(mgid, 16), mlid).second) << "attached twice";
    return 0;
}
void shim_qp_detach(ib_qp* qp, const shim_gid* mgid, std::uint16_t mlid)
{
    may_sleep();
    EXPECT_EQ(qp->attached.erase({text(mgid, 16), mlid}), 1U) << "detached, but never attached";
}
void shim_send_wr_init(shim_send_wr* wr, std::uint64_t id, shim_sge* sges)
{
    *wr = {};
    wr->id = id;
    wr->sges = sges;
}
void shim_send_wr_set_datagram(shim_send_wr* wr, unsigned int sges, ib_ah* ah, std::uint32_t qpn, std::uint32_t qkey)
{
    wr->count = sges;
    wr->ah = ah;
    wr->qpn = qpn;
    wr->qkey = qkey;
}
void shim_send_wr_set_segments(shim_send_wr* wr, void* headers, unsigned int header_bytes, unsigned int segment_bytes)
{
    wr->headers = headers;
    wr->header_bytes = header_bytes;
    wr->segment_bytes = segment_bytes;
}
void shim_send_wr_set_message(shim_send_wr* wr, unsigned int sges) { wr->count = sges; }
void shim_send_wr_set_flags(shim_send_wr* wr, bool signaled, bool checksum)
{
    wr->signaled = signaled;
    wr->checksum = checksum;
}
void shim_send_wr_signal(shim_send_wr* wr) { wr->signaled = true; }
void shim_send_wr_set_next(shim_send_wr* wr, shim_send_wr* next) { wr->next = next; }
int shim_post_send(ib_qp* qp, shim_send_wr* first)
{
    if (world->fail_post > 0 && --world->fail_post == 0)
        return -12;
    ++world->doorbells;
    for (shim_send_wr* wr = first; wr; wr = wr->next) {
        EXPECT_TRUE(qp->connected || world->ahs.contains(wr->ah)) << "sent by an address handle that is gone";
        Sent sent{wr->id, wr->ah, wr->qpn, wr->qkey, wr->signaled, {}, wr->checksum, wr->segment_bytes, {}};
        if (wr->header_bytes) {
            const auto* headers = static_cast<const std::uint8_t*>(wr->headers);
            sent.headers.assign(headers, headers + wr->header_bytes);
        }
        for (unsigned int i = 0; i < wr->count; ++i) {
            const auto* from = reinterpret_cast<const std::uint8_t*>(wr->sges[i].address);
            sent.bytes.insert(sent.bytes.end(), from, from + wr->sges[i].length);
        }
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
void shim_recv_wr_init(shim_recv_wr* wr, std::uint64_t id, shim_sge* sges, unsigned int count)
{
    *wr = {id, sges, count, nullptr};
}
void shim_recv_wr_set_next(shim_recv_wr* wr, shim_recv_wr* next) { wr->next = next; }
shim_recv_wr* shim_recv_wr_next(const shim_recv_wr* wr) { return wr->next; }
static int take_receives(std::deque<shim_recv_wr>& receives, shim_recv_wr* first, shim_recv_wr** refused)
{
    ++world->receive_posts;
    for (; first && world->receives_until_failure != 0; first = first->next, --world->receives_until_failure)
        receives.push_back(*first);
    *refused = first;
    if (!first)
        return 0;
    world->receives_until_failure = -1;
    return -12;
}
int shim_post_recv(ib_qp* qp, shim_recv_wr* first, shim_recv_wr** refused)
{
    return take_receives(qp->receives, first, refused);
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
bool shim_dma_failed(ib_device*, std::uint64_t address) { return address == 0; }

namespace {
ib_ah* create_ah(std::uint16_t dlid)
{
    may_sleep();
    if (world->fail_allocation > 0 && --world->fail_allocation == 0)
        return reinterpret_cast<ib_ah*>(std::intptr_t(-12));
    auto* ah = new ib_ah{dlid};
    world->ahs.insert(ah);
    return ah;
}
} // namespace

ib_ah* shim_ah_create(ib_pd*, const shim_ah_attributes* attributes) { return create_ah(attributes->dlid); }
ib_ah* shim_ah_create_from_path(ib_pd*, std::uint32_t, sa_path_rec* record) { return create_ah(record->dlid); }
void shim_ah_destroy(ib_ah* ah)
{
    may_sleep();
    for (ib_qp* qp : world->qps)
        for (const Sent& sent : qp->outstanding)
            EXPECT_NE(sent.ah, ah) << "an address handle is destroyed while the HCA uses it";
    EXPECT_EQ(world->ahs.erase(ah), 1U) << "an address handle is destroyed twice";
    delete ah;
}
void shim_events_start(ib_device* ca, shim_event_handler* handler, void (*on_event)(void*, shim_event, std::uint32_t),
                       void* context)
{
    EXPECT_TRUE(ca->handlers.emplace(handler, ib_device::Handler{on_event, context}).second);
}
void shim_events_stop(shim_event_handler* handler) { EXPECT_EQ(world->ca.handlers.erase(handler), 1U); }

// sa.h

void shim_sa_register() { world->registered.push_back("sa"); }
void shim_sa_unregister()
{
    EXPECT_EQ(world->open_paths(), 0U) << "a path question is open at the end";
    EXPECT_EQ(std::erase(world->registered, "sa"), 1U);
}
int shim_sa_ask_path(ib_device*, std::uint32_t, const shim_path_question* question, unsigned int limit_ms,
                     void (*answered)(int, sa_path_rec*, void*), void* context, ib_sa_query** query)
{
    if (world->fail_allocation > 0 && --world->fail_allocation == 0)
        return -12;
    if (world->sa_unknown)
        return -11;
    const int id = static_cast<int>(++world->path_questions);
    world->paths.push_back({id, *question, limit_ms, answered, context});
    *query = reinterpret_cast<ib_sa_query*>(std::intptr_t(id));
    return id;
}
void shim_sa_cancel(int id, ib_sa_query*)
{
    for (PathQuestion& question : world->paths) {
        if (question.id == id && question.open)
            question.cancelled = true;
    }
}
ib_sa_multicast* shim_sa_join(ib_device*, std::uint32_t, const shim_mcmember* member, bool with_parameters,
                              int (*answered)(int, const shim_mcmember*, void*), void* context)
{
    may_sleep();
    ++world->join_questions;
    if (world->fail_allocation > 0 && --world->fail_allocation == 0)
        return reinterpret_cast<ib_sa_multicast*>(std::intptr_t(-12));
    auto* join = new ib_sa_multicast{*member, with_parameters, answered, context};
    world->open_joins.push_back(join);
    world->memberships.push_back(join);
    return join;
}
void shim_sa_leave(ib_sa_multicast* membership)
{
    may_sleep();
    ++world->leaves;
    if (world->answer_while_leaving) {
        EXPECT_EQ(membership->answered(-110, &membership->asked, membership->context), 0) << "would be freed twice";
    }
    EXPECT_EQ(std::erase(world->memberships, membership), 1U) << "left twice";
    std::erase(world->open_joins, membership);
    delete membership;
}
unsigned int shim_mtu_bytes(std::uint8_t code) { return code >= 1 && code <= 5 ? 128U << code : 0; }

// cm.h

ib_cm_id* shim_cm_create(ib_device*, void* context)
{
    may_sleep();
    if (world->fail_cm > 0 && --world->fail_cm == 0)
        return reinterpret_cast<ib_cm_id*>(std::intptr_t(-12));
    return world->new_cm_id(context);
}
void shim_cm_set_context(ib_cm_id* id, void* context) { id->context = context; }
void shim_cm_destroy(ib_cm_id* id)
{
    may_sleep();
    EXPECT_EQ(world->cm_ids.erase(id), 1U) << "an identifier is destroyed twice";
    std::erase(world->asked, id);
    delete id;
}
int shim_cm_listen(ib_cm_id* id, std::uint64_t service_id)
{
    if (world->fail_cm > 0 && --world->fail_cm == 0)
        return -16;
    id->listens = service_id;
    return 0;
}
int shim_cm_send_req(ib_cm_id* id, const shim_cm_request* request)
{
    may_sleep();
    if (world->fail_cm > 0 && --world->fail_cm == 0)
        return -12;
    id->sent.emplace_back("REQ");
    id->service_id = request->service_id;
    id->qpn = request->qpn;
    const auto* data = static_cast<const std::uint8_t*>(request->private_data);
    id->private_data.assign(data, data + request->private_bytes);
    world->asked.push_back(id);
    return 0;
}
int shim_cm_send_rep(ib_cm_id* id, const shim_cm_reply* reply)
{
    may_sleep();
    if (world->fail_cm > 0 && --world->fail_cm == 0)
        return -12;
    id->sent.emplace_back("REP");
    id->qpn = reply->qpn;
    id->rnr_retries = reply->rnr_retries;
    const auto* data = static_cast<const std::uint8_t*>(reply->private_data);
    id->private_data.assign(data, data + reply->private_bytes);
    return 0;
}
int shim_cm_send_rtu(ib_cm_id* id)
{
    may_sleep();
    id->sent.emplace_back("RTU");
    return 0;
}
int shim_cm_send_drep(ib_cm_id* id)
{
    may_sleep();
    id->sent.emplace_back("DREP");
    return 0;
}
void shim_cm_send_rej(ib_cm_id* id, shim_cm_reason reason)
{
    may_sleep();
    id->sent.emplace_back("REJ");
    id->reason = reason;
}
ib_qp* shim_rc_qp_create(ib_pd*, const shim_rc_qp* wanted)
{
    may_sleep();
    if (world->fail_allocation > 0 && --world->fail_allocation == 0)
        return reinterpret_cast<ib_qp*>(std::intptr_t(-12));
    auto* qp = new ib_qp;
    qp->send_cq = wanted->send_cq;
    qp->recv_cq = wanted->recv_cq;
    qp->connected = true;
    qp->context = wanted->context;
    qp->srq = wanted->srq;
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
int shim_rc_qp_to_rtr(ib_qp* qp, ib_cm_id*, std::uint32_t, std::uint8_t rnr_timer)
{
    may_sleep();
    EXPECT_EQ(qp->state, "init");
    if (world->fail_cm > 0 && --world->fail_cm == 0)
        return -22;
    qp->state = "rtr";
    qp->rnr_timer = rnr_timer;
    return 0;
}
int shim_rc_qp_to_rts(ib_qp* qp, ib_cm_id*)
{
    EXPECT_EQ(qp->state, "rtr");
    qp->state = "rts";
    return 0;
}
ib_srq* shim_srq_create(ib_pd*, unsigned int, unsigned int)
{
    if (world->refuse_srq)
        return reinterpret_cast<ib_srq*>(std::intptr_t(-12));
    auto* srq = new ib_srq;
    world->srqs.insert(srq);
    return srq;
}
void shim_srq_destroy(ib_srq* srq)
{
    EXPECT_EQ(world->srqs.erase(srq), 1U);
    delete srq;
}
unsigned int shim_ib_max_srq_sge(const ib_device*) { return world->have_srq ? 30 : 0; }
int shim_srq_post_recv(ib_srq* srq, shim_recv_wr* first, shim_recv_wr** refused)
{
    return take_receives(srq->receives, first, refused);
}
void shim_path_copy(sa_path_rec* to, const sa_path_rec* from) { *to = *from; }
std::uint32_t shim_random() { return 4; }

// debugfs.h

int shim_debugfs_start() { return register_as("debugfs"); }
void shim_debugfs_stop() { unregister("debugfs"); }
dentry* shim_debug_file_create(net_device*, ipoib_debug_file) { return nullptr; }
void shim_debug_file_remove(dentry*) {}
void shim_seq_printf(seq_file*, const char* format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    world->seq_text += text;
}

// netlink.h

int shim_link_register() { return register_as("link"); }
void shim_link_unregister() { unregister("link"); }
void shim_extack(netlink_ext_ack*, const char* format, ...)
{
    char text[SHIM_EXTACK_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    world->extack = text;
}
bool shim_sa_group_known(ib_device*, std::uint32_t, const shim_gid* mgid)
{
    return world->known_groups.contains(text(mgid, 16));
}
std::uint32_t shim_path_dlid(sa_path_rec* record) { return record->dlid; }
std::uint8_t shim_path_sl(const sa_path_rec*) { return 1; }
unsigned int shim_path_mbps(const sa_path_rec*) { return 40000; }
