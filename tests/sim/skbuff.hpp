// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Packets and the pages that some are made of. A packet has one owner, and an end.
#pragma once
#include <cstdint>
#include <vector>

#include <shim/skbuff.h>

struct net_device;

struct page_pool {
    unsigned int order;
    // Pages that are not back yet.
    long outside = 0;
    bool destroyed = false;
    // It is not for two at a time.
    bool in_use = false;
};

struct page {
    std::uint32_t magic;
    // nullptr: of no pool.
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
    // What is behind the linear part: of a packet to be sent, and of one that was received.
    std::vector<std::vector<std::uint8_t>> frags;
    std::vector<PageFrag> pages;
    page* built_in = nullptr;
    sk_buff* next = nullptr;
    net_device* dev = nullptr;
    std::uint16_t protocol = 0;
    shim_packet_type type = SHIM_PACKET_HOST;
    unsigned int note = 0;
    bool wants_checksum = false, verified = false, recycle = false;
    // Of one that is to be cut: the bytes of each segment's data, how many, and of the headers with the encapsulation.
    unsigned int segment_bytes = 0, segments = 1, header_bytes = 0;
    // Of one that LRO made: how many it was, and the bytes of data of each but the last.
    unsigned int merged = 1, merged_bytes = 0;
    const std::uint8_t* link_header = nullptr;
    bool timestamped = false;
    // Of a packet to be sent: since when there is it, and its neighbours in age.
    std::uint64_t born = 0;
    sk_buff *older = nullptr, *newer = nullptr;

    unsigned int len() const;
    // All of it, in one piece.
    std::vector<std::uint8_t> bytes() const;
};

namespace sim {

// With so much room before its data.
sk_buff* skb_create(unsigned int headroom, unsigned int room);
void skb_free(sk_buff* skb);
// Among those to be sent, all of which have an end soon.
void skb_watch(sk_buff* skb);
void check_no_old_skbs();

} // namespace sim
