// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A page pool of receive buffers of one size: whole pages of some order, or pieces of them if two or more fit.
#pragma once
#include <cstddef>

#include <ipoib/pieces.hpp>
#include <kernel/error_pointer.hpp>
#include <kernel/handle.hpp>
#include <kernel/result.hpp>
#include <shim/page_pool.h>

namespace ipoib {

class BufferPool {
public:
    // buffers: number of bytes each that are kept for reuse. CONTEXT: process, may sleep.
    kernel::Status create(net_device* dev, shim_napi* napi, unsigned int buffers, unsigned int bytes)
    {
        const unsigned int order = pool_order(shim_page_size(), bytes);
        const unsigned int per_page = (shim_page_size() << order) / bytes;
        piece_bytes_ = per_page > 1 ? bytes : 0;
        const unsigned int pages = (buffers + per_page - 1) / per_page;
        pool_.reset(TRY(kernel::check(shim_page_pool_create(dev, napi, pages, order, piece_bytes_ != 0))));
        return {};
    }
    // The stack may hold buffers. CONTEXT: process; the poll is disabled.
    void destroy() { pool_.reset(); }
    explicit operator bool() const { return static_cast<bool>(pool_); }

    // Returns nullptr without memory. CONTEXT: process before the poll is started, or the poll.
    std::byte* allocate()
    {
        return static_cast<std::byte*>(piece_bytes_ ? shim_helper_page_pool_alloc_frag(pool_.get(), piece_bytes_)
                                                    : shim_helper_page_pool_alloc(pool_.get()));
    }
    // in_poll: the caller is the poll.
    void put(void* buffer, bool in_poll) { shim_page_pool_put_full_page(pool_.get(), buffer, in_poll); }
    page_pool* native() const { return pool_.get(); }

private:
    kernel::Handle<page_pool, shim_page_pool_destroy> pool_;
    // 0: a buffer is a whole page.
    unsigned int piece_bytes_ = 0;
};

} // namespace ipoib
