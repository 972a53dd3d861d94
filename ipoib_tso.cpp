// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Segmentation of TCP packets for HCAs that can't.
#include <algorithm>

#include <ipoib/encapsulation.hpp>
#include <ipoib/segmenter.hpp>

namespace ipoib {

kernel::Status SegmentHeaders::allocate(unsigned int count)
{
    reset();
    // Pages instead of one array: the memory is mapped for DMA, and may be too large for one allocation.
    const unsigned int pages = (count * bytes_each + shim_page_size() - 1) / shim_page_size();
    if (!pages_.allocate(pages))
        return kernel::no_memory;
    for (count_ = 0; count_ < pages; ++count_)
        if (!(pages_[count_] = shim_get_free_pages(0)))
            return kernel::no_memory;
    return {};
}

void SegmentHeaders::reset()
{
    while (count_ > 0)
        shim_put_page(pages_[--count_]);
    pages_.reset();
}

Segmenter::Segmenter(sk_buff* skb, unsigned int header_bytes, unsigned int segment_bytes)
    : skb_(skb), header_bytes_(header_bytes), segment_bytes_(segment_bytes), left_(shim_skb_len(skb) - header_bytes)
{
    shim_tso_start(native(), skb);
}

bool Segmenter::next(ib_device* ca, MappedPacket& segment, void* headers, unsigned int max_sges)
{
    const unsigned int data_bytes = std::min(left_, segment_bytes_);
    left_ -= data_bytes;
    const bool last = left_ == 0;
    shim_helper_tso_build_hdr(native(), skb_, headers, data_bytes, last);
    segment.begin_segment(last ? skb_ : nullptr);
    std::uint32_t sum = 0;
    for (unsigned int done = 0; done < data_bytes;) {
        void* const piece = shim_tso_data(native());
        const unsigned int bytes = std::min(shim_tso_piece_bytes(native()), data_bytes - done);
        scattered_ = segment.sges == max_sges;
        if (scattered_ || !segment.add_data(ca, piece, bytes)) [[unlikely]] {
            segment.unmap_data(ca);
            return false;
        }
        sum = shim_csum_block_add(sum, piece, bytes, done);
        shim_tso_build_data(native(), skb_, bytes);
        done += bytes;
    }
    shim_helper_tso_checksums(native(), skb_, headers, data_bytes, sum);
    if (!segment.map_headers(ca, headers, header_bytes_)) [[unlikely]] {
        segment.unmap_data(ca);
        return false;
    }
    segment.payload_bytes = header_bytes_ + data_bytes - sizeof(Encapsulation);
    return true;
}

} // namespace ipoib
