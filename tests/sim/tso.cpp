// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// include/shim/tso.h: the kernel's helpers for drivers that segment large TCP packets.
#include <cstring>
#include <span>

#include <ipoib/encapsulation.hpp>

#include "world.hpp"

using namespace sim;

namespace {

// The data is the rest of the linear part and the fragments.
struct Cut {
    const sk_buff* skb;
    std::uint32_t piece, done, segments;
};
static_assert(sizeof(Cut) <= SHIM_SIZEOF_TSO);

Cut& cut_of(shim_tso* tso) { return *reinterpret_cast<Cut*>(tso); }
const Cut& cut_of(const shim_tso* tso) { return *reinterpret_cast<const Cut*>(tso); }

std::span<const std::uint8_t> rest_of_piece(const Cut& cut)
{
    const sk_buff& skb = *cut.skb;
    const std::span<const std::uint8_t> whole =
        cut.piece ? std::span(std::as_const(skb.frags.at(cut.piece - 1)))
                  : std::span<const std::uint8_t>(skb.data, skb.headlen).subspan(skb.header_bytes);
    return whole.subspan(cut.done);
}

void skip_finished(Cut& cut)
{
    while (cut.piece < cut.skb->frags.size() && rest_of_piece(cut).empty()) {
        ++cut.piece;
        cut.done = 0;
    }
}

std::uint8_t* ip_of(void* headers) { return static_cast<std::uint8_t*>(headers) + sizeof(ipoib::Encapsulation); }

} // namespace

void shim_tso_start(shim_tso* tso, sk_buff* skb)
{
    SIM_CHECK(skb->segment_bytes && skb->header_bytes <= skb->headlen, "a packet is cut that is not to be");
    cut_of(tso) = {skb, 0, 0, 0};
    skip_finished(cut_of(tso));
}

void shim_helper_tso_build_hdr(shim_tso* tso, const sk_buff* skb, void* headers, unsigned int data_bytes, bool last)
{
    SIM_CHECK(last || data_bytes == skb->segment_bytes, "a segment of %u bytes before the last", data_bytes);
    std::memcpy(headers, skb->data, skb->header_bytes);
    make_segment_headers(ip_of(headers), cut_of(tso).segments++, skb->segment_bytes, data_bytes, last);
    SIM_CHECK(last == (cut_of(tso).segments == skb->segments), "segment %u of %u is %s last", cut_of(tso).segments,
              skb->segments, last ? "the" : "not the");
}

void* shim_tso_data(const shim_tso* tso) { return const_cast<std::uint8_t*>(rest_of_piece(cut_of(tso)).data()); }

unsigned int shim_tso_piece_bytes(const shim_tso* tso)
{
    return static_cast<unsigned int>(rest_of_piece(cut_of(tso)).size());
}

void shim_tso_build_data(shim_tso* tso, const sk_buff*, unsigned int bytes)
{
    cut_of(tso).done += bytes;
    skip_finished(cut_of(tso));
}

std::uint32_t shim_csum_block_add(std::uint32_t sum, const void* data, unsigned int bytes, unsigned int offset)
{
    const std::uint16_t one = sum_of(data, bytes);
    // Sums from an odd offset on have the halves of each word swapped.
    sum += offset % 2 ? static_cast<std::uint16_t>(one << 8 | one >> 8) : one;
    return (sum >> 16) + (sum & 0xffff);
}

void shim_helper_tso_checksums(const shim_tso*, const sk_buff*, void* headers, unsigned int data_bytes,
                               std::uint32_t sum)
{
    std::uint8_t* const packet = ip_of(headers);
    const Ip ip(packet);
    std::vector<std::uint8_t> data(data_bytes);
    fill(data.data(), data_bytes, ip.key(), ip.place());
    const std::uint32_t expected = sum_of(data.data(), data_bytes);
    SIM_CHECK(sum % 0xffff == expected % 0xffff, "the sum of a segment's data is %#x, not %#x", sum, expected);
    const std::uint16_t pseudo = pseudo_header_sum(ip, ip.header_bytes() + data_bytes);
    ip.transport_checksum() = kernel::Be16(0);
    ip.transport_checksum() =
        kernel::Be16(static_cast<std::uint16_t>(~sum_of(packet + 20, ip.header_bytes() - 20, pseudo + expected)));
}
