// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Segments a large TCP packet (TSO) for HCAs that can't. Each segment has headers of its own, checksums included; its
// data stays in the packet. The stack would allocate a packet for each segment.
#pragma once
#include <cstddef>
#include <cstdint>

#include <ipoib/mapped_packet.hpp>
#include <kernel/memory.hpp>
#include <kernel/opaque.hpp>
#include <kernel/result.hpp>
#include <shim/device.h>
#include <shim/page_pool.h>
#include <shim/tso.h>

namespace ipoib {

// Memory for the headers of a ring's segments, one for each slot.
class SegmentHeaders {
public:
    static constexpr unsigned int bytes_each = SHIM_TSO_HEADERS;

    SegmentHeaders() = default;
    SegmentHeaders(const SegmentHeaders&) = delete;
    SegmentHeaders& operator=(const SegmentHeaders&) = delete;
    ~SegmentHeaders() { reset(); }

    // CONTEXT: process.
    kernel::Status allocate(unsigned int count);
    void reset();
    void* operator[](unsigned int index) const
    {
        const unsigned int each_page = shim_page_size() / bytes_each;
        return static_cast<std::byte*>(pages_[index / each_page]) + index % each_page * bytes_each;
    }

private:
    unsigned int count_ = 0;
    kernel::Array<void*> pages_;
};

class Segmenter {
public:
    // The packet begins with its encapsulation; its first header_bytes are in the linear part.
    Segmenter(sk_buff* skb, unsigned int header_bytes, unsigned int segment_bytes);

    // Segments of the packet.
    unsigned int count() const { return (left_ + segment_bytes_ - 1) / segment_bytes_; }
    // Maps the next segment, with its headers in this memory, in up to max_sges elements. Returns false if it can't be
    // mapped.
    [[nodiscard]] bool next(ib_device* ca, MappedPacket& segment, void* headers, unsigned int max_sges);
    // True if a segment's data is in more pieces than there are elements.
    bool scattered() const { return scattered_; }

private:
    shim_tso* native() { return tso_.get(); }

    sk_buff* skb_;
    unsigned int header_bytes_, segment_bytes_;
    // Bytes of data of the segments to come.
    unsigned int left_;
    bool scattered_ = false;
    kernel::Opaque<shim_tso> tso_;
};

} // namespace ipoib
