// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A fuzzer's bytes, read as the choices of a session. Bytes past the end are zero.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ipoib::fuzz {

class Input {
public:
    Input(const std::uint8_t* bytes, std::size_t count) : next_(bytes), end_(bytes + count) {}

    bool empty() const { return next_ == end_; }
    std::uint8_t byte() { return empty() ? 0 : *next_++; }
    std::uint16_t u16()
    {
        // Two statements: compilers differ in the evaluation order of operands.
        const std::uint8_t high = byte();
        return static_cast<std::uint16_t>(high << 8 | byte());
    }
    std::uint32_t u32()
    {
        const std::uint32_t high = u16();
        return high << 16 | u16();
    }
    // Chooses one of count.
    std::size_t below(std::size_t count) { return count ? byte() % count : 0; }
    std::vector<std::uint8_t> bytes(std::size_t count)
    {
        std::vector<std::uint8_t> taken(count);
        const auto there = std::min(count, static_cast<std::size_t>(end_ - next_));
        std::copy_n(next_, there, taken.begin());
        next_ += there;
        return taken;
    }
    // As many bytes as the next byte says.
    std::vector<std::uint8_t> some_bytes()
    {
        const std::size_t count = byte();
        return bytes(std::min(count, static_cast<std::size_t>(end_ - next_)));
    }

private:
    const std::uint8_t* next_;
    const std::uint8_t* end_;
};

} // namespace ipoib::fuzz
