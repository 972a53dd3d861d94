// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Work request ids: the kind of the work request that completed, and its index in its ring or pool.
#pragma once
#include <cstdint>

#include <shim/cq.h>

namespace ipoib {

class WrId {
public:
    enum class Kind : std::uint32_t {
        ud,    // a send or receive of a UD queue pair
        rc,    // a send or receive of a connection
        drain, // the send that drains a passive connection
    };

    static constexpr std::uint64_t of(Kind kind, std::uint32_t index)
    {
        return std::uint64_t(static_cast<std::uint32_t>(kind)) << 32 | index;
    }
    static Kind kind(const shim_wc* wc) { return static_cast<Kind>(shim_wc_id(wc) >> 32); }
    static std::uint32_t index(const shim_wc* wc) { return static_cast<std::uint32_t>(shim_wc_id(wc)); }
};

} // namespace ipoib
