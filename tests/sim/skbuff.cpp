// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// include/shim/skbuff.h.
#include "skbuff.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>

#include <ipoib/encapsulation.hpp>

#include "world.hpp"

using namespace sim;

namespace {

constexpr std::uint32_t skb_magic = 0x5bb5bb, page_magic = 0x9a9e9a9e, dead = 0xdeadbeef;
constexpr unsigned int page_bytes = 4096, max_order = 4;
// REQs time out after 69 s; refused joins are repeated after at most 16 s, unanswered ones after 64 s; a packet waits
// for a path or a group for 60 s.
constexpr Time max_life = 300 * second;
constexpr unsigned int buffer_headroom = 64, buffer_tailroom = 320;

void check(const sk_buff* skb)
{
    SIM_CHECK(skb->magic == skb_magic, skb->magic == dead ? "an skb is used after its end" : "no skb");
}

page* page_create(page_pool* pool, unsigned int order)
{
    world->memory.hold("page", 1);
    auto* one = new page{page_magic, pool, nullptr, std::size_t(page_bytes) << order, 1};
    auto& spare = world->spare_pages[order];
    if (spare.empty()) {
        one->memory = static_cast<std::uint8_t*>(std::malloc(std::size_t(page_bytes) << order));
    } else {
        one->memory = spare.back();
        spare.pop_back();
    }
    world->pages[one->memory] = one;
    return one;
}

// Page that contains this address.
page* page_of(const void* address)
{
    const auto* const byte = static_cast<const std::uint8_t*>(address);
    const auto next = world->pages.upper_bound(byte);
    page* one = next == world->pages.begin() ? nullptr : std::prev(next)->second;
    SIM_CHECK(one && byte < one->memory + one->bytes, "a page is used after its end");
    return one;
}

void page_release(page* one)
{
    SIM_CHECK(one->magic == page_magic, "a page is freed twice");
    if (--one->users > 0)
        return;
    one->magic = dead;
    world->pages.erase(one->memory);
    page_pool* pool = one->pool;
    const auto order = static_cast<unsigned int>(std::countr_zero(one->bytes / page_bytes));
#if defined(__SANITIZE_ADDRESS__)
    std::free(one->memory);
    delete one;
    (void)order;
#else
    std::memset(one->memory, 0x6b, 256);
    world->spare_pages[order].push_back(one->memory);
    world->dead_pages.push_back(one);
    if (world->dead_pages.size() > 64) {
        delete world->dead_pages.front();
        world->dead_pages.pop_front();
    }
#endif
    world->memory.hold("page", -1);
    if (pool && --pool->outside == 0 && pool->destroyed) {
        world->memory.hold("page pool", -1);
        delete pool;
    }
}

// The pool is used by one poll, or by its user before polls run.
class PoolUse {
public:
    explicit PoolUse(page_pool* pool) : pool_(pool)
    {
        SIM_CHECK(!pool->in_use, "a page pool is used by two at a time");
        SIM_CHECK(!pool->destroyed, "a page pool is used after its end");
        pool->in_use = true;
        world->scheduler.point();
    }
    ~PoolUse() { pool_->in_use = false; }

private:
    page_pool* pool_;
};

} // namespace

unsigned int sk_buff::len() const
{
    unsigned int sum = headlen;
    for (const auto& frag : frags)
        sum += static_cast<unsigned int>(frag.size());
    for (const auto& frag : pages)
        sum += frag.bytes;
    return sum;
}

std::vector<std::uint8_t> sk_buff::bytes() const
{
    std::vector<std::uint8_t> all(data, data + headlen);
    all.reserve(len());
    for (const auto& frag : frags)
        all.insert(all.end(), frag.begin(), frag.end());
    for (const auto& frag : pages)
        all.insert(all.end(), frag.from->memory + frag.offset, frag.from->memory + frag.offset + frag.bytes);
    return all;
}

namespace sim {

sk_buff* skb_create(unsigned int headroom, unsigned int room)
{
    auto* skb = new sk_buff;
    skb->magic = skb_magic;
    skb->own.resize(headroom + room);
    skb->head = skb->own.data();
    skb->data = skb->head + headroom;
    skb->end = skb->head + skb->own.size();
    world->memory.hold("skb", 1);
    return skb;
}

void skb_watch(sk_buff* skb)
{
    skb->born = world->scheduler.now();
    skb->older = world->newest_skb;
    (skb->older ? skb->older->newer : world->oldest_skb) = skb;
    world->newest_skb = skb;
}

void check_no_old_skbs()
{
    const sk_buff* oldest = world->oldest_skb;
    SIM_CHECK(!oldest || world->scheduler.now() - oldest->born < max_life,
              "%s: a packet is neither sent nor dropped for %llu s", oldest->dev->name.c_str(),
              static_cast<unsigned long long>(max_life / second));
}

void skb_free(sk_buff* skb)
{
    SIM_CHECK(skb->magic == skb_magic, "an skb is freed twice");
    skb->magic = dead;
    if (skb->born) {
        (skb->older ? skb->older->newer : world->oldest_skb) = skb->newer;
        (skb->newer ? skb->newer->older : world->newest_skb) = skb->older;
    }
    for (const auto& frag : skb->pages) {
        SIM_CHECK(!frag.from->pool || skb->recycle, "a packet with pages of a pool is not marked");
        page_release(frag.from);
    }
    if (skb->built_in)
        page_release(skb->built_in);
    world->memory.hold("skb", -1);
#if defined(__SANITIZE_ADDRESS__)
    delete skb;
#else
    std::fill(skb->own.begin(), skb->own.end(), std::uint8_t(0x6b));
    world->dead_skbs.push_back(skb);
    if (world->dead_skbs.size() > 256) {
        delete world->dead_skbs.front();
        world->dead_skbs.pop_front();
    }
#endif
}

} // namespace sim

unsigned char* shim_skb_data(const sk_buff* skb)
{
    check(skb);
    return skb->data;
}
unsigned int shim_skb_len(const sk_buff* skb)
{
    check(skb);
    return skb->len();
}
unsigned int shim_skb_headlen(const sk_buff* skb) { return skb->headlen; }
unsigned int shim_skb_nr_frags(const sk_buff* skb) { return static_cast<unsigned int>(skb->frags.size()); }
unsigned int shim_skb_frag_size(const sk_buff* skb, unsigned int frag)
{
    return static_cast<unsigned int>(skb->frags.at(frag).size());
}
unsigned char* shim_skb_push(sk_buff* skb, unsigned int bytes)
{
    check(skb);
    SIM_CHECK(skb->data - skb->head >= static_cast<long>(bytes), "skb_under_panic");
    skb->headlen += bytes;
    return skb->data -= bytes;
}
unsigned char* shim_skb_pull(sk_buff* skb, unsigned int bytes)
{
    check(skb);
    SIM_CHECK(skb->headlen >= bytes, "a packet is pulled beyond its linear part");
    skb->headlen -= bytes;
    return skb->data += bytes;
}
void shim_skb_put(sk_buff* skb, unsigned int bytes)
{
    check(skb);
    skb->headlen += bytes;
    SIM_CHECK(skb->data + skb->headlen <= skb->end, "skb_over_panic");
}
void shim_skb_reserve(sk_buff* skb, unsigned int bytes)
{
    SIM_CHECK(skb->headlen == 0, "room is reserved in a packet that has data");
    skb->data += bytes;
}
void shim_helper_skb_pull_mac_header(sk_buff* skb, unsigned int bytes)
{
    skb->link_header = skb->data;
    (void)shim_skb_pull(skb, bytes);
}
int shim_skb_linearize(sk_buff* skb)
{
    if (world->memory.fails())
        return -12;
    const auto all = skb->bytes();
    const long room = skb->data - skb->head;
    std::vector<std::uint8_t> fresh(static_cast<std::size_t>(room) + all.size());
    std::copy(all.begin(), all.end(), fresh.begin() + room);
    skb->own = std::move(fresh);
    skb->head = skb->own.data();
    skb->data = skb->head + room;
    skb->end = skb->head + skb->own.size();
    skb->headlen = static_cast<unsigned int>(all.size());
    skb->frags.clear();
    return 0;
}
unsigned int shim_skb_gso_size(const sk_buff* skb) { return skb->segment_bytes; }
unsigned int shim_skb_tcp_headers(const sk_buff* skb) { return skb->header_bytes; }
bool shim_pskb_may_pull(sk_buff* skb, unsigned int bytes)
{
    SIM_CHECK(bytes <= skb->headlen, "the stack's headers are not in the linear part");
    return !world->memory.fails();
}
bool shim_skb_checksum_partial(const sk_buff* skb) { return skb->wants_checksum; }
int shim_helper_skb_checksum(sk_buff* skb)
{
    if (world->memory.fails())
        return -12;
    skb->wants_checksum = false;
    // Makes the packet's bytes linear, and splits the headers off again.
    auto bytes = skb->bytes();
    constexpr std::size_t before = sizeof(ipoib::Encapsulation);
    fill_checksum(bytes.data() + before, bytes.size() - before);
    std::memcpy(skb->data, bytes.data(), std::min<std::size_t>(skb->headlen, bytes.size()));
    return 0;
}
void shim_skb_set_protocol(sk_buff* skb, std::uint16_t type) { skb->protocol = type; }
void shim_skb_set_device(sk_buff* skb, net_device* dev) { skb->dev = dev; }
void shim_skb_record_rx_queue(sk_buff*, std::uint16_t) {}
void shim_skb_set_packet_type(sk_buff* skb, shim_packet_type type) { skb->type = type; }
bool shim_helper_ip_checksum_holds(const void* packet) { return sum_of(packet, sizeof(ipoib::Ipv4Header)) == 0xffff; }
bool shim_helper_tcp_checksum_holds(const void* packet, unsigned int bytes)
{
    return checksum_of(static_cast<const std::uint8_t*>(packet), bytes) == Checksum::right;
}
void shim_skb_set_checksum_unnecessary(sk_buff* skb) { skb->verified = true; }
void shim_helper_skb_set_merged(sk_buff* skb, unsigned int segments, unsigned int segment_bytes)
{
    check(skb);
    SIM_CHECK(segments > 1 && segment_bytes && skb->merged == 1, "a packet is merged from %u segments of %u bytes",
              segments, segment_bytes);
    const auto& tcp = *reinterpret_cast<const ipoib::TcpHeader*>(skb->data + sizeof(ipoib::Ipv4Header));
    SIM_CHECK(skb->headlen == sizeof(ipoib::Ipv4Header) + (tcp.length >> 4) * 4U,
              "a merged packet has %u bytes of linear data, with its headers", skb->headlen);
    skb->merged = segments;
    skb->merged_bytes = segment_bytes;
}
void shim_helper_skb_tx_timestamp(sk_buff* skb)
{
    check(skb);
    SIM_CHECK(!std::exchange(skb->timestamped, true), "a packet has two timestamps");
}

void shim_napi_consume_skb(sk_buff* skb, int)
{
    world->scheduler.point();
    // Counted as sent.
    net_device& dev = *skb->dev;
    dev.handed += skb->segments - 1;
    dev.sent_packets += skb->segments;
    dev.sent_payload += skb->len() - sizeof(ipoib::Encapsulation) +
                        (skb->segments - 1) * (skb->header_bytes - sizeof(ipoib::Encapsulation));
    SIM_CHECK(skb->timestamped, "%s: a packet is sent without a timestamp", dev.name.c_str());
    skb_free(skb);
}
void shim_kfree_skb_reason(sk_buff* skb, shim_drop why)
{
    world->scheduler.point();
    SIM_NOTE("a packet is dropped, reason %d", why);
    if (why == SHIM_DROP_FULL_RING || why == SHIM_DROP_PKT_TOO_BIG)
        world->stack.excuse(skb->data, skb->headlen, skb->segments);
    if (why != SHIM_DROP_PKT_TOO_BIG)
        ++skb->dev->dropped;
    skb_free(skb);
}
void shim_dev_queue_xmit(sk_buff* skb, net_device* dev)
{
    check(skb);
    SIM_CHECK(!world->stack.within_transmit(dev), "transmit again under the transmit lock");
    ++dev->again;
    const Bh bh;
    world->stack.transmit(dev, skb);
}
bool shim_dev_direct_xmit(sk_buff* skb, unsigned int queue)
{
    check(skb);
    net_device* const dev = skb->dev;
    SIM_CHECK(!world->stack.within_transmit(dev), "transmit again under the transmit lock");
    // The driver counts what is dropped for a stopped queue.
    const bool taken = world->stack.transmit_directly(dev, queue, skb);
    dev->again += taken;
    dev->dropped += !taken;
    return taken;
}
unsigned int shim_skb_get_queue_mapping(const sk_buff* skb) { return skb->tx_queue; }
// By the addresses and ports behind the hard header, as the kernel's.
std::uint32_t shim_skb_get_hash(sk_buff* skb)
{
    constexpr std::size_t addresses = IPOIB_HEADER_BYTES + 12, bytes = 12;
    std::uint32_t hash = 2166136261;
    for (std::size_t i = addresses; i < std::min<std::size_t>(addresses + bytes, skb->headlen); ++i)
        hash = (hash ^ skb->data[i]) * 16777619;
    return hash;
}
void shim_skb_dst_update_pmtu(sk_buff* skb, unsigned int mtu)
{
    check(skb);
    // The packet is freed when its error message is sent, perhaps after the interface's counters are looked at.
    ++skb->dev->too_long;
    world->stack.lower_pmtu(skb, mtu);
}
void shim_helper_icmp_too_big(sk_buff* skb, net_device*, unsigned int)
{
    may_sleep("icmp_send");
    world->stack.excuse(skb->data, skb->headlen, skb->segments);
    skb_free(skb);
}
void shim_skb_set_cb(sk_buff* skb, unsigned int number)
{
    check(skb);
    skb->note = number;
}
unsigned int shim_skb_cb(const sk_buff* skb) { return skb->note; }
void shim_skb_orphan(sk_buff* skb) { check(skb); }
int shim_skb_orphan_frags(sk_buff* skb)
{
    check(skb);
    return 0;
}
sk_buff* shim_skb_next(const sk_buff* skb)
{
    check(skb);
    return skb->next;
}
void shim_skb_set_next(sk_buff* skb, sk_buff* next)
{
    check(skb);
    skb->next = next;
}

// Pages

page_pool* shim_page_pool_create(net_device*, shim_napi* napi, unsigned int, unsigned int order, bool)
{
    may_sleep("page_pool_create");
    SIM_CHECK(order <= max_order, "pages of order %u", order);
    if (world->memory.fails())
        return reinterpret_cast<page_pool*>(std::intptr_t(-12));
    world->memory.hold("page pool", 1);
    return new page_pool{order, napi};
}
void shim_page_pool_destroy(page_pool* pool)
{
    may_sleep("page_pool_destroy");
    SIM_CHECK(!pool->destroyed && !pool->in_use, "a page pool is destroyed in use");
    SIM_CHECK(!may_poll(pool->napi), "a page pool is destroyed whose poll may run");
    pool->destroyed = true;
    if (pool->outside == 0) {
        world->memory.hold("page pool", -1);
        delete pool;
    }
}
void* shim_helper_page_pool_alloc(page_pool* pool)
{
    const PoolUse use(pool);
    if (world->memory.fails_to_receive(std::size_t(page_bytes) << pool->order))
        return nullptr;
    ++pool->outside;
    return page_create(pool, pool->order)->memory;
}
// Each piece gets a page of its own: the simulator does not count the bytes of memory in use.
void* shim_helper_page_pool_alloc_frag(page_pool* pool, unsigned int) { return shim_helper_page_pool_alloc(pool); }
void shim_page_pool_put_full_page(page_pool* pool, void* buffer, bool in_poll)
{
    page* const one = page_of(buffer);
    SIM_CHECK(one->pool == pool, "a page goes to a pool that it is not of");
    SIM_CHECK(!in_poll || world->scheduler.current()->kind == Fiber::Kind::softirq, "no poll puts a page as one");
    // Only a poll returns pages without a lock.
    std::optional<PoolUse> use;
    if (in_poll)
        use.emplace(pool);
    else
        world->scheduler.point();
    // Never the last one: the pool is destroyed later.
    page_release(one);
}
sk_buff* shim_helper_napi_build_skb(void* buffer, unsigned int bytes)
{
    world->scheduler.point();
    if (world->memory.fails_to_receive(0))
        return nullptr;
    sk_buff* skb = skb_create(0, 0);
    skb->head = skb->data = static_cast<std::uint8_t*>(buffer);
    skb->end = skb->head + bytes - buffer_tailroom;
    skb->built_in = page_of(buffer);
    skb->recycle = true;
    return skb;
}
sk_buff* shim_napi_alloc_skb(shim_napi*, unsigned int bytes)
{
    SIM_CHECK(world->scheduler.current()->kind == Fiber::Kind::softirq, "napi_alloc_skb outside a poll");
    world->scheduler.point();
    return world->memory.fails_to_receive(bytes) ? nullptr : skb_create(0, bytes);
}
void shim_helper_skb_add_rx_frag(sk_buff* skb, void* data, unsigned int bytes, unsigned int)
{
    check(skb);
    page* const one = page_of(data);
    const auto offset = static_cast<unsigned int>(static_cast<std::uint8_t*>(data) - one->memory);
    SIM_CHECK(skb->pages.size() < 17, "more fragments than fit into a packet");
    skb->pages.push_back({one, offset, bytes});
}
void shim_skb_mark_for_recycle(sk_buff* skb) { skb->recycle = true; }
void* shim_get_free_pages(unsigned int order)
{
    may_sleep("alloc_pages");
    return world->memory.fails() ? nullptr : page_create(nullptr, order)->memory;
}
void shim_get_page(void* address) { ++page_of(address)->users; }
void shim_put_page(void* address) { page_release(page_of(address)); }
unsigned int shim_skb_buffer_headroom() { return buffer_headroom; }
unsigned int shim_skb_buffer_tailroom() { return buffer_tailroom; }
unsigned int shim_page_size() { return page_bytes; }
