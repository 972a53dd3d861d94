// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Packets of the scripted kernel, and the pages that they are built in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include <shim/netdevice.h>
#include <shim/page_pool.h>
#include <shim/skbuff.h>

struct sk_buff {
    std::vector<std::uint8_t> bytes;
    std::size_t start = 0;
    sk_buff* next = nullptr;
    net_device* dev = nullptr;
    std::uint16_t protocol = 0;
    shim_packet_type type = SHIM_PACKET_HOST;
    std::uint16_t rx_queue = 0;
    unsigned int tx_queue = 0;
    std::uint32_t hash = 0;
    std::vector<std::uint8_t> mac_header;
    // Buffer that the packet was built in (nullptr: allocated), data that was added, and bytes that a socket is charged
    // for both.
    std::uint8_t* buffer = nullptr;
    std::vector<void*> pages;
    unsigned int buffer_bytes = 0, charged = 0;
    // Number of last bytes of the packet that are in pages.
    std::size_t paged = 0;
    // Data behind the linear bytes, of a packet to be sent.
    std::vector<std::vector<std::uint8_t>> frags;
    unsigned int note = 0;
    // For segmentation: bytes of data in each segment, and bytes of headers; or merged from segments.
    unsigned int segment_bytes = 0, header_bytes = 0, segments = 0;
    bool wants_checksum = false, verified = false, orphaned = false;
    // The pages belong to user space.
    bool lent = false;
    // Given to the HCA, whose completion may free it at any time.
    bool posted = false;
};

struct page {
    // nullptr if the page has no pool.
    page_pool* pool;
    std::vector<std::uint8_t> bytes;
    // Pieces of the page that are not given back.
    unsigned int users = 1;
};

struct page_pool {
    // Maximum number of kept pages.
    unsigned int size;
    unsigned int order;
    bool in_pieces;
    const shim_napi* napi;
    std::set<page*> pages{};
    bool destroyed = false;
    // Page that pieces are cut from, also in use by the pool, and how much of it is given out.
    page* open = nullptr;
    unsigned int given = 0;
};
