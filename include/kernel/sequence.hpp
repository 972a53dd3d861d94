// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Numbers that count up and wrap at 2^32: indexes of rings, sends, TCP's sequence numbers.
#pragma once
#include <cstdint>

namespace kernel {

// Correct across the wrap, for numbers less than half the range apart.
constexpr bool not_before(std::uint32_t later, std::uint32_t earlier)
{
    return static_cast<std::int32_t>(later - earlier) >= 0;
}

} // namespace kernel
