// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Packets, their memory, and segmentation.
#include "fakes_inside.hpp"

#include <numeric>
#include <span>

#include <ipoib/tcp.hpp>

// skbuff.h

static page* new_page(page_pool* pool, std::size_t bytes)
{
    auto* one = new page{pool, std::vector<std::uint8_t>(bytes)};
    (pool ? pool->pages : world->loose_pages).insert(one);
    world->pages[one->bytes.data()] = one;
    return one;
}

static page* page_of(const void* address)
{
    const auto* const byte = static_cast<const std::uint8_t*>(address);
    const auto next = world->pages.upper_bound(byte);
    if (next != world->pages.begin()) {
        page* one = std::prev(next)->second;
        if (byte < one->bytes.data() + one->bytes.size())
            return one;
    }
    return nullptr;
}

static void drop_page(page* one)
{
    ASSERT_NE(one, nullptr) << "a page is freed twice";
    if (--one->users > 0)
        return;
    (one->pool ? one->pool->pages : world->loose_pages).erase(one);
    world->pages.erase(one->bytes.data());
    delete one;
}

void free_skb(sk_buff* skb)
{
    ASSERT_EQ(world->skbs.erase(skb), 1U) << "an skb is freed twice";
    for (void* data : skb->pages)
        drop_page(page_of(data));
    if (skb->buffer)
        drop_page(page_of(skb->buffer));
    delete skb;
}

static void still_the_drivers(const sk_buff* skb) { EXPECT_FALSE(skb->posted) << "read after it was posted"; }
unsigned char* shim_skb_data(const sk_buff* skb)
{
    still_the_drivers(skb);
    return const_cast<unsigned char*>(skb->bytes.data()) + skb->start;
}
unsigned int shim_skb_headlen(const sk_buff* skb)
{
    still_the_drivers(skb);
    return static_cast<unsigned int>(skb->bytes.size() - skb->start - skb->paged);
}
unsigned int shim_skb_len(const sk_buff* skb)
{
    still_the_drivers(skb);
    return std::accumulate(skb->frags.begin(), skb->frags.end(),
                           static_cast<unsigned int>(skb->bytes.size() - skb->start),
                           [](unsigned int sum, auto& frag) { return sum + static_cast<unsigned int>(frag.size()); });
}
unsigned int shim_skb_nr_frags(const sk_buff* skb) { return static_cast<unsigned int>(skb->frags.size()); }
unsigned int shim_skb_frag_size(const sk_buff* skb, unsigned int frag)
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
void shim_skb_reserve(sk_buff* skb, unsigned int bytes)
{
    skb->start += bytes;
    if (!skb->buffer)
        skb->bytes.resize(skb->start);
}
void shim_skb_put(sk_buff* skb, unsigned int bytes)
{
    if (!skb->buffer) {
        skb->bytes.resize(skb->bytes.size() + bytes);
        EXPECT_LE(skb->bytes.size(), skb->buffer_bytes);
        return;
    }
    EXPECT_LE(skb->start + bytes + shim_skb_buffer_tailroom(), skb->buffer_bytes);
    // Before this the vector holds the whole buffer.
    skb->bytes.assign(skb->buffer, skb->buffer + skb->start + bytes);
}
void shim_helper_skb_pull_mac_header(sk_buff* skb, unsigned int bytes)
{
    skb->mac_header.assign(shim_skb_data(skb), shim_skb_data(skb) + bytes);
    skb->start += bytes;
}
int shim_skb_linearize(sk_buff* skb)
{
    if (out_of_memory())
        return -12;
    for (const auto& frag : skb->frags)
        skb->bytes.insert(skb->bytes.end(), frag.begin(), frag.end());
    skb->frags.clear();
    return 0;
}
unsigned int shim_skb_gso_size(const sk_buff* skb) { return skb->segment_bytes; }
unsigned int shim_skb_tcp_headers(const sk_buff* skb) { return skb->header_bytes; }
bool shim_pskb_may_pull(sk_buff*, unsigned int) { return !world->refuses("skb_pull_headers"); }
bool shim_skb_checksum_partial(const sk_buff* skb) { return skb->wants_checksum; }
int shim_helper_skb_checksum(sk_buff* skb)
{
    skb->wants_checksum = false;
    return 0;
}
void shim_skb_set_protocol(sk_buff* skb, std::uint16_t type) { skb->protocol = type; }
void shim_skb_set_device(sk_buff* skb, net_device* dev) { skb->dev = dev; }
void shim_skb_record_rx_queue(sk_buff* skb, std::uint16_t queue) { skb->rx_queue = queue; }
void shim_skb_set_packet_type(sk_buff* skb, shim_packet_type type) { skb->type = type; }
bool shim_helper_ip_checksum_holds(const void* packet)
{
    return ipoib::internet_checksum(packet, sizeof(ipoib::Ipv4Header)) == 0;
}
std::uint16_t tcp_checksum(const void* packet, unsigned int bytes)
{
    const auto* const begin = static_cast<const std::uint8_t*>(packet);
    const unsigned int tcp_bytes = bytes - static_cast<unsigned int>(sizeof(ipoib::Ipv4Header));
    // RFC 9293 section 3.1: the pseudo-header comes first.
    std::vector<std::uint8_t> all(begin + 12, begin + 20);
    all.insert(all.end(), {0, 6, static_cast<std::uint8_t>(tcp_bytes >> 8), static_cast<std::uint8_t>(tcp_bytes)});
    all.insert(all.end(), begin + sizeof(ipoib::Ipv4Header), begin + bytes);
    all.resize(all.size() + all.size() % 2);
    return ipoib::internet_checksum(all.data(), static_cast<unsigned int>(all.size()));
}
bool shim_helper_tcp_checksum_holds(const void* packet, unsigned int bytes) { return tcp_checksum(packet, bytes) == 0; }
void shim_skb_set_checksum_unnecessary(sk_buff* skb) { skb->verified = true; }
void shim_helper_skb_set_merged(sk_buff* skb, unsigned int segments, unsigned int segment_bytes)
{
    skb->segments = segments;
    skb->segment_bytes = segment_bytes;
    const auto& tcp = *reinterpret_cast<const ipoib::TcpHeader*>(shim_skb_data(skb) + sizeof(ipoib::Ipv4Header));
    EXPECT_EQ(shim_skb_headlen(skb), sizeof(ipoib::Ipv4Header) + (tcp.length >> 4) * 4U)
        << "skb_segment() clones a packet with linear data that GRO put into a frag_list";
}
void shim_helper_skb_tx_timestamp(sk_buff*) {}
void shim_napi_consume_skb(sk_buff* skb, int budget)
{
    EXPECT_TRUE(budget == 0 || world->polling) << "freed as in a poll, and is in none";
    free_skb(skb);
}
void shim_kfree_skb_reason(sk_buff* skb, shim_drop why)
{
    world->reasons.insert(why);
    ++world->drops;
    free_skb(skb);
}
void shim_dev_queue_xmit(sk_buff* skb, net_device* dev)
{
    may_sleep();
    EXPECT_EQ(skb->dev, dev);
    world->transmit(skb);
}
bool shim_dev_direct_xmit(sk_buff* skb, unsigned int queue)
{
    may_sleep();
    const bool stopped = skb->dev->transmit_queues.at(queue).stopped;
    if (stopped)
        shim_kfree_skb_reason(skb, SHIM_DROP_DEV_READY);
    else
        world->transmit_on(queue, skb);
    return !stopped;
}
unsigned int shim_skb_get_queue_mapping(const sk_buff* skb) { return skb->tx_queue; }
std::uint32_t shim_skb_get_hash(sk_buff* skb)
{
    still_the_drivers(skb);
    return skb->hash;
}
void shim_skb_orphan(sk_buff* skb) { skb->orphaned = true; }
int shim_skb_orphan_frags(sk_buff* skb)
{
    if (skb->lent && out_of_memory())
        return -12;
    skb->lent = false;
    return 0;
}
sk_buff* shim_skb_next(const sk_buff* skb) { return skb->next; }
void shim_skb_set_next(sk_buff* skb, sk_buff* next) { skb->next = next; }

void shim_skb_set_cb(sk_buff* skb, unsigned int note) { skb->note = note; }
unsigned int shim_skb_cb(const sk_buff* skb) { return skb->note; }
void shim_skb_dst_update_pmtu(sk_buff*, unsigned int mtu) { world->updated_pmtus.push_back(mtu); }
void shim_helper_icmp_too_big(sk_buff* skb, net_device*, unsigned int mtu)
{
    may_sleep();
    world->rejected_mtus.push_back(mtu);
    free_skb(skb);
}
sk_buff* shim_napi_alloc_skb(shim_napi*, unsigned int bytes)
{
    if (out_of_memory())
        return nullptr;
    auto* skb = new sk_buff;
    skb->bytes.resize(SHIM_NET_IP_ALIGN);
    skb->start = SHIM_NET_IP_ALIGN;
    // Linear data stay where they are when fragments are added.
    skb->bytes.reserve(1 << 17);
    skb->buffer_bytes = SHIM_NET_IP_ALIGN + bytes;
    world->skbs.insert(skb);
    return skb;
}
void shim_helper_skb_add_rx_frag(sk_buff* skb, void* data, unsigned int bytes, unsigned int buffer_bytes)
{
    const auto* const from = static_cast<const std::uint8_t*>(data);
    EXPECT_EQ(page_of(from), page_of(from + bytes - 1));
    skb->bytes.insert(skb->bytes.end(), from, from + bytes);
    skb->pages.push_back(data);
    skb->charged += buffer_bytes;
    skb->paged += bytes;
}
void shim_skb_mark_for_recycle(sk_buff*) {}
void* shim_get_free_pages(unsigned int order)
{
    may_sleep();
    allocates("page_alloc");
    const bool fails = world->fail_pages || (order && world->fail_large_pages);
    return fails ? nullptr : new_page(nullptr, std::size_t(world->page_size) << order)->bytes.data();
}
void shim_get_page(void* address) { ++page_of(address)->users; }
void shim_put_page(void* address)
{
    page* const one = page_of(address);
    ASSERT_TRUE(!one || !one->pool) << "a page of a pool is freed behind its back";
    drop_page(one);
}

page_pool* shim_page_pool_create(net_device*, shim_napi* napi, unsigned int size, unsigned int order, bool in_pieces)
{
    allocates("pool_create");
    if (world->refuses("pool_create"))
        return error_pointer<page_pool>(-12);
    auto* pool = new page_pool{size, order, in_pieces, napi};
    world->pools.insert(pool);
    return pool;
}
static void close_page(page_pool* pool)
{
    if (page* open = std::exchange(pool->open, nullptr))
        drop_page(open);
}
void shim_page_pool_destroy(page_pool* pool)
{
    EXPECT_FALSE(pool->napi->enabled) << "a page pool is destroyed whose poll may run";
    close_page(pool);
    pool->destroyed = true;
}
void* shim_helper_page_pool_alloc(page_pool* pool)
{
    EXPECT_FALSE(pool->in_pieces);
    if (world->fail_pages || (pool->order && world->fail_large_pages))
        return nullptr;
    return new_page(pool, std::size_t(world->page_size) << pool->order)->bytes.data();
}
void* shim_helper_page_pool_alloc_frag(page_pool* pool, unsigned int bytes)
{
    EXPECT_TRUE(pool->in_pieces);
    if (world->fail_pages)
        return nullptr;
    const unsigned int whole = world->page_size << pool->order;
    EXPECT_LE(bytes, whole / 2);
    if (!pool->open || pool->given + bytes > whole) {
        close_page(pool);
        pool->open = new_page(pool, whole);
        pool->given = 0;
    }
    ++pool->open->users;
    return pool->open->bytes.data() + std::exchange(pool->given, pool->given + bytes);
}
void shim_page_pool_put_full_page(page_pool* pool, void* buffer, bool)
{
    page* one = page_of(buffer);
    ASSERT_NE(one, nullptr) << "a page is freed twice";
    ASSERT_EQ(one->pool, pool);
    drop_page(one);
}
sk_buff* shim_helper_napi_build_skb(void* buffer, unsigned int bytes)
{
    if (out_of_memory())
        return nullptr;
    auto* skb = new sk_buff;
    skb->buffer = static_cast<std::uint8_t*>(buffer);
    skb->buffer_bytes = skb->charged = bytes;
    EXPECT_EQ(page_of(skb->buffer), page_of(skb->buffer + bytes - 1));
    world->skbs.insert(skb);
    return skb;
}
unsigned int shim_skb_buffer_headroom() { return 64; }
unsigned int shim_skb_buffer_tailroom() { return 320; }
unsigned int shim_page_size() { return world->page_size; }

// tso.h

namespace {

// The data is the rest of the linear part and the fragments.
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

void shim_tso_start(shim_tso* tso, sk_buff* skb)
{
    cut_of(tso) = {skb, 0, 0, 0};
    next_piece(tso);
}
void shim_helper_tso_build_hdr(shim_tso* tso, const sk_buff* skb, void* headers, unsigned int data_bytes, bool last)
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
void shim_tso_build_data(shim_tso* tso, const sk_buff*, unsigned int bytes)
{
    cut_of(tso).done += bytes;
    next_piece(tso);
}
std::uint32_t shim_csum_block_add(std::uint32_t sum, const void* data, unsigned int bytes, unsigned int offset)
{
    for (unsigned int i = 0; i < bytes; ++i)
        sum += static_cast<std::uint32_t>(static_cast<const std::uint8_t*>(data)[i]) << ((offset + i) % 2 ? 0 : 8);
    return sum;
}
// Checksum of the data alone.
void shim_helper_tso_checksums(const shim_tso*, const sk_buff*, void* headers, unsigned int, std::uint32_t sum)
{
    auto& ip = *reinterpret_cast<ipoib::Ipv4Header*>(static_cast<std::uint8_t*>(headers) + 4);
    sum = (sum >> 16) + (sum & 0xffff);
    reinterpret_cast<ipoib::TcpHeader*>(&ip + 1)->checksum =
        kernel::Be16(static_cast<std::uint16_t>(~((sum >> 16) + sum)));
}
