// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// DMA mapping of packets with page fragments.
#include <ipoib/mapped_packet.hpp>

namespace ipoib {

bool MappedPacket::map_pieces(ib_device* ca, sk_buff* packet, unsigned int skip, unsigned int max_sges)
{
    linear = shim_skb_headlen(packet) > skip ? 1 : 0;
    if (linear + shim_skb_nr_frags(packet) > max_sges) {
        if (shim_skb_linearize(packet) != 0)
            return false;
        linear = 1;
    }
    const unsigned int frags = shim_skb_nr_frags(packet);
    skb = packet;
    sges = 0;
    if (linear && !map_linear(ca, skip)) [[unlikely]]
        return false;
    for (unsigned int frag = 0; frag < frags; ++frag) {
        sge[sges].address = shim_dma_map_frag(ca, packet, frag);
        sge[sges].length = shim_skb_frag_size(packet, frag);
        if (shim_dma_mapping_error(ca, sge[sges].address)) [[unlikely]] {
            unmap_pieces(ca);
            return false;
        }
        ++sges;
    }
    return true;
}

void MappedPacket::unmap_pieces(ib_device* ca)
{
    for (std::uint32_t i = 0; i < linear; ++i)
        shim_dma_unmap_to_device(ca, sge[i].address, sge[i].length);
    for (std::uint32_t i = linear; i < sges; ++i)
        shim_dma_unmap_frag(ca, sge[i].address, sge[i].length);
}

} // namespace ipoib
