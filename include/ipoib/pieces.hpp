// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Sizes of receive buffers, in bytes. The stack charges sockets for the whole buffer of a packet, so its size must not
// grow with the page size of the architecture (4, 16 or 64 KiB): several buffers share a large page.
#pragma once
#include <algorithm>

namespace ipoib {

// Order of the smallest page that has space for a buffer.
constexpr unsigned int smallest_order(unsigned int page_bytes, unsigned int buffer_bytes)
{
    unsigned int order = 0;
    while (page_bytes << order < buffer_bytes)
        ++order;
    return order;
}

// Order of the pages of a pool of buffers. Pools allocate pages of order 0 by 64, which is 4 MiB if pages have 64 KiB,
// and larger ones one by one.
constexpr unsigned int pool_order(unsigned int page_bytes, unsigned int buffer_bytes)
{
    constexpr unsigned int max_page_by_64 = 16384;
    return std::max(smallest_order(page_bytes, buffer_bytes), page_bytes > max_page_by_64 ? 1U : 0U);
}

// Size of a datagram's buffer, of which `needed` bytes are the GRH, the datagram, and an skb's headroom and tailroom: a
// whole page, unless two or more fit in one.
constexpr unsigned int datagram_buffer(unsigned int page_bytes, unsigned int needed)
{
    // At least ARCH_DMA_MINALIGN of every architecture: buffers mapped for DMA share no cache line.
    constexpr unsigned int alignment = 256;
    const unsigned int page = page_bytes << smallest_order(page_bytes, needed);
    const unsigned int piece = (needed + alignment - 1) / alignment * alignment;
    return page / piece > 1 ? piece : page;
}

// The buffer of a message on a connection, a piece for each element of the receive: a small one first, in which short
// messages fit and the packet is built, and large ones, since the stack's work grows with the number of pieces.
struct MessageBuffer {
    static constexpr unsigned int max_message = 65524;
    static constexpr unsigned int small_piece = 4096, large_piece = 16384;
    // The small pieces of the longest message, and one more for an skb's headroom and tailroom.
    static constexpr unsigned int max_pieces = 65536 / small_piece + 1;

    unsigned int first_bytes;
    unsigned int other_bytes;
    unsigned int pieces;
    constexpr unsigned int bytes() const { return first_bytes + (pieces - 1) * other_bytes; }

    // The buffer for receives of up to max_elements elements. With few elements the first piece is large, too. With
    // fewer, pieces grow up to the size of a page; if that is too small, the buffer only holds shorter messages.
    static constexpr MessageBuffer of(unsigned int page_bytes, unsigned int max_elements)
    {
        unsigned int other = large_piece;
        while (other < page_bytes && other * max_elements < max_message)
            other *= 2;
        const unsigned int pieces = std::min(max_elements, 65536 / other + 1);
        const bool fits = small_piece + (pieces - 1) * other >= max_message;
        return {fits ? small_piece : other, other, pieces};
    }
};

} // namespace ipoib
