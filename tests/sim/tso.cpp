// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// include/shim/tso.h: of the simulated stack's large packets each segment becomes one of its packets of data.
#include <cstring>
#include <span>

#include "world.hpp"

using namespace sim;

namespace {

// The data's pieces are the rest of the linear part and the fragments.
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

void* data_header(const sk_buff* skb, void* headers)
{
    return static_cast<std::uint8_t*>(headers) + skb->header_bytes - sizeof(Data);
}

} // namespace

void shim_tso_begin(shim_tso* tso, sk_buff* skb)
{
    SIM_CHECK(skb->segment_bytes && skb->header_bytes <= skb->headlen, "a packet is cut that is not to be");
    cut_of(tso) = {skb, 0, 0, 0};
    skip_finished(cut_of(tso));
}

void shim_tso_write_headers(shim_tso* tso, const sk_buff* skb, void* headers, unsigned int data_bytes, bool last)
{
    SIM_CHECK(last || data_bytes == skb->segment_bytes, "a segment of %u bytes before the last", data_bytes);
    std::memcpy(headers, skb->data, skb->header_bytes);
    Data data;
    std::memcpy(&data, data_header(skb, headers), sizeof(data));
    data.bytes = static_cast<std::uint32_t>(sizeof(data)) + data_bytes;
    data.number += cut_of(tso).segments++;
    std::memcpy(data_header(skb, headers), &data, sizeof(data));
    SIM_CHECK(last == (cut_of(tso).segments == skb->segments), "segment %u of %u is %s last", cut_of(tso).segments,
              skb->segments, last ? "the" : "not the");
}

void* shim_tso_data(const shim_tso* tso) { return const_cast<std::uint8_t*>(rest_of_piece(cut_of(tso)).data()); }

unsigned int shim_tso_piece_bytes(const shim_tso* tso)
{
    return static_cast<unsigned int>(rest_of_piece(cut_of(tso)).size());
}

void shim_tso_advance(shim_tso* tso, const sk_buff*, unsigned int bytes)
{
    cut_of(tso).done += bytes;
    skip_finished(cut_of(tso));
}

std::uint32_t shim_tso_add_to_sum(std::uint32_t sum, const void* data, unsigned int bytes, unsigned int offset)
{
    for (unsigned int i = 0; i < bytes; ++i)
        sum += static_cast<std::uint32_t>(static_cast<const std::uint8_t*>(data)[i]) << ((offset + i) % 2 ? 0 : 8);
    return sum;
}

void shim_tso_fill_checksums(const shim_tso*, const sk_buff* skb, void* headers, unsigned int data_bytes,
                             std::uint32_t sum)
{
    Data data;
    std::memcpy(&data, data_header(skb, headers), sizeof(data));
    std::uint32_t expected = 0;
    for (unsigned int i = 0; i < data_bytes; ++i) {
        const std::uint8_t byte = pattern(data.number, sizeof(data) + i);
        expected = shim_tso_add_to_sum(expected, &byte, 1, i);
    }
    fill_checksum(static_cast<std::uint8_t*>(data_header(skb, headers)));
    SIM_CHECK(sum == expected, "the sum of a segment's data is %#x, not %#x", sum, expected);
}
