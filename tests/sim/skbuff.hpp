// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Packets and the pages of some of them. A packet has one owner, and is freed once.
#pragma once
#include <cstdint>
#include <vector>

#include <shim/skbuff.h>

struct net_device;

struct page_pool {
    unsigned int order;
    const shim_napi* napi;
    // Pages that were not returned yet.
    long outside = 0;
    bool destroyed = false;
    // Set during a call: the pool is not for two users at a time.
    bool in_use = false;
};

struct page {
    std::uint32_t magic;
    // nullptr: the page has no pool.
    page_pool* pool;
    std::uint8_t* memory;
    std::size_t bytes;
    unsigned int users;
};

struct sk_buff {
    struct PageFrag {
        page* from;
        unsigned int offset, bytes;
    };
    std::uint32_t magic;
    std::vector<std::uint8_t> own;
    std::uint8_t *head = nullptr, *data = nullptr, *end = nullptr;
    unsigned int headlen = 0;
    // Data behind the linear part: of a packet to be sent, and of a received one.
    std::vector<std::vector<std::uint8_t>> frags;
    std::vector<PageFrag> pages;
    page* built_in = nullptr;
    sk_buff* next = nullptr;
    net_device* dev = nullptr;
    std::uint16_t protocol = 0;
    shim_packet_type type = SHIM_PACKET_HOST;
    unsigned int note = 0, tx_queue = 0;
    bool wants_checksum = false, verified = false, recycle = false;
    // Segmentation: bytes of each segment's data, number of segments, bytes of headers with the encapsulation.
    unsigned int segment_bytes = 0, segments = 1, header_bytes = 0;
    // Number of merged segments, and bytes of data of each but the last.
    unsigned int merged = 1, merged_bytes = 0;
    const std::uint8_t* link_header = nullptr;
    bool timestamped = false;
    // Transmission: time of creation, and neighbours in age.
    std::uint64_t born = 0;
    sk_buff *older = nullptr, *newer = nullptr;

    unsigned int len() const;
    // The whole packet, in one piece.
    std::vector<std::uint8_t> bytes() const;
};

namespace sim {

// Creates a packet with this much headroom.
sk_buff* skb_create(unsigned int headroom, unsigned int room);
void skb_free(sk_buff* skb);
// Adds it to the packets to be sent, each of which must be freed soon.
void skb_watch(sk_buff* skb);
void check_no_old_skbs();

} // namespace sim
