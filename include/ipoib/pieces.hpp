// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Sizes of receive buffers, in bytes. The stack charges sockets for the whole buffer of a packet, so its size must not
// grow with the page size of the architecture (4, 16 or 64 KiB): several buffers share a large page.
#pragma once
#include <algorithm>

namespace ipoib {

// The buffer of a datagram: the GRH, the datagram, and an skb's headroom and tailroom.
struct DatagramBuffer {
    // Order of the page pool's pages.
    unsigned int page_order;
    // Size of a buffer: the whole page, unless two or more fit in it.
    unsigned int bytes;
    unsigned int per_page;
    bool is_piece() const { return per_page > 1; }

    static constexpr DatagramBuffer of(unsigned int page_bytes, unsigned int needed)
    {
        // At least ARCH_DMA_MINALIGN of every architecture: buffers mapped for DMA share no cache line.
        constexpr unsigned int alignment = 256;
        unsigned int order = 0;
        while (page_bytes << order < needed)
            ++order;
        const unsigned int page = page_bytes << order;
        const unsigned int piece = (needed + alignment - 1) / alignment * alignment;
        return page / piece > 1 ? DatagramBuffer{order, piece, page / piece} : DatagramBuffer{order, page, 1};
    }
};

// The buffer of a message on a connection: pieces of equal size, one for each element of the receive.
struct MessageBuffer {
    static constexpr unsigned int max_message = 65524;
    static constexpr unsigned int min_piece = 4096;
    // The pieces of the longest message, and one more for an skb's headroom and tailroom in the first.
    static constexpr unsigned int max_pieces = 65536 / min_piece + 1;

    unsigned int piece_bytes;
    unsigned int pieces;

    // The buffer for receives of up to max_elements elements, with the smallest pieces that hold the longest message. A
    // piece is a page at most; with few elements and small pages, the buffer only holds shorter messages.
    static constexpr MessageBuffer of(unsigned int page_bytes, unsigned int elements)
    {
        unsigned int piece = min_piece;
        while (piece < page_bytes && piece * elements < max_message)
            piece *= 2;
        return {piece, std::min(elements, 65536 / piece + 1)};
    }
};

} // namespace ipoib
