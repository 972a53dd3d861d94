// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A packet, or a segment of one, mapped for the HCA to send: the slot of a send ring or send pool.
#pragma once
#include <cstdint>

#include <kernel/opaque.hpp>
#include <shim/device.h>
#include <shim/dma.h>
#include <shim/skbuff.h>
#include <shim/wr.h>

namespace ipoib {

struct MappedPacket {
    // The linear part and as many page fragments as a packet has (MAX_SKB_FRAGS), where the HCA allows.
    static constexpr unsigned int max_sges_per_send = 18;

    // nullptr: a segment that is not its packet's last.
    sk_buff* skb;
    // Packets on the wire: more than one if the HCA segments it.
    std::uint32_t packets;
    // Bytes behind the encapsulation, of all packets on the wire.
    std::uint32_t payload_bytes;
    // Bytes that byte queue limits count for it. A free slot of a send pool has none.
    std::uint32_t queued_bytes;
    std::uint32_t sges;
    // Elements that map linear memory; the rest map page fragments.
    std::uint32_t linear;
    shim_sge sge[max_sges_per_send];
    kernel::Opaque<shim_send_wr> wr;

    shim_send_wr* native() { return wr.get(); }
    void set_lkey(std::uint32_t lkey)
    {
        for (auto& element : sge)
            element.lkey = lkey;
    }
    // Maps the packet, without the first skip bytes of its linear part, with up to max_sges elements. Returns false if
    // it can't be mapped; it remains the caller's.
    [[nodiscard]] bool map(ib_device* ca, sk_buff* packet, unsigned int skip, unsigned int max_sges)
    {
        if (shim_skb_nr_frags(packet) != 0 || shim_skb_headlen(packet) <= skip)
            return map_pieces(ca, packet, skip, max_sges);
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

    // A segment is mapped piece by piece: its data, and then its headers into the first element. Both functions return
    // false if the piece can't be mapped.
    void begin_segment(sk_buff* packet)
    {
        skb = packet;
        sges = linear = 1;
    }
    [[nodiscard]] bool add_data(ib_device* ca, void* data, std::uint32_t bytes)
    {
        sge[sges].address = shim_dma_map_to_device(ca, data, bytes);
        sge[sges].length = bytes;
        if (shim_dma_mapping_error(ca, sge[sges].address)) [[unlikely]]
            return false;
        linear = ++sges;
        return true;
    }
    [[nodiscard]] bool map_headers(ib_device* ca, void* headers, std::uint32_t bytes)
    {
        sge[0].address = shim_dma_map_to_device(ca, headers, bytes);
        sge[0].length = bytes;
        return !shim_dma_mapping_error(ca, sge[0].address);
    }
    void unmap_data(ib_device* ca)
    {
        for (std::uint32_t i = 1; i < sges; ++i)
            shim_dma_unmap_to_device(ca, sge[i].address, sge[i].length);
    }

private:
    [[nodiscard]] bool map_linear(ib_device* ca, unsigned int skip)
    {
        sges = 1;
        sge[0].length = shim_skb_headlen(skb) - skip;
        sge[0].address = shim_dma_map_to_device(ca, shim_skb_data(skb) + skip, sge[0].length);
        return !shim_dma_mapping_error(ca, sge[0].address);
    }
    bool map_pieces(ib_device* ca, sk_buff* packet, unsigned int skip, unsigned int max_sges);
    void unmap_pieces(ib_device* ca);
};

} // namespace ipoib
