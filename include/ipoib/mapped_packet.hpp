// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A packet, or a segment of one, that the HCA is about to send, with its pieces mapped: what a slot of any send ring
// holds.
#pragma once
#include <cstdint>

#include <generated/layout.h>
#include <shim/skbuff.h>
#include <shim/verbs.h>

namespace ipoib {

struct MappedPacket {
    // The linear part and as many page fragments as a packet has (MAX_SKB_FRAGS), where the HCA allows.
    static constexpr unsigned int most_sges = 18;

    // nullptr: of a segment that is not its packet's last.
    sk_buff* skb;
    // On the wire: more than one when the HCA cuts it into segments.
    std::uint32_t packets;
    // Of payload, behind each one's encapsulation.
    std::uint32_t payload_bytes;
    // Bytes as the stack's byte queue limit saw them.
    std::uint32_t queued_bytes;
    std::uint32_t sges;
    // So many elements are of memory, the rest are page fragments.
    std::uint32_t linear;
    shim_sge sge[most_sges];
    alignas(SHIM_ALIGNOF_SEND_WR) std::byte wr[SHIM_SIZEOF_SEND_WR];

    shim_send_wr* native() { return reinterpret_cast<shim_send_wr*>(wr); }
    void set_lkey(std::uint32_t lkey)
    {
        for (auto& element : sge)
            element.lkey = lkey;
    }
    // Takes the packet, which begins with its encapsulation, without the first skip bytes of its linear part, in no
    // more than most elements. False: it can't be mapped, and stays the caller's.
    [[nodiscard]] bool map(ib_device* ca, sk_buff* packet, unsigned int skip, unsigned int most)
    {
        if (shim_skb_frags(packet) != 0 || shim_skb_headlen(packet) <= skip)
            return map_pieces(ca, packet, skip, most);
        skb = packet;
        linear = 1;
        return map_linear(ca, skip);
    }
    void unmap(ib_device* ca)
    {
        if (sges == 1 && linear == 1)
            shim_dma_unmap_to_device(ca, sge[0].address, sge[0].length);
        else
            unmap_pieces(ca);
    }

    // By pieces: the headers' element, which is mapped last, then so much data. False: it can't be mapped.
    void begin_segment(sk_buff* packet)
    {
        skb = packet;
        sges = linear = 1;
    }
    [[nodiscard]] bool add_data(ib_device* ca, void* data, std::uint32_t bytes);
    [[nodiscard]] bool map_headers(ib_device* ca, void* headers, std::uint32_t bytes);
    // What was added, without the headers.
    void unmap_data(ib_device* ca);

private:
    [[nodiscard]] bool map_linear(ib_device* ca, unsigned int skip)
    {
        sges = 1;
        sge[0].length = shim_skb_headlen(skb) - skip;
        sge[0].address = shim_dma_map_to_device(ca, shim_skb_data(skb) + skip, sge[0].length);
        return !shim_dma_failed(ca, sge[0].address);
    }
    bool map_pieces(ib_device* ca, sk_buff* packet, unsigned int skip, unsigned int most);
    void unmap_pieces(ib_device* ca);
};

} // namespace ipoib
