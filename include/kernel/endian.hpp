// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Big-endian fields of wire formats: unaligned, converted when read or written, never an integer by accident.
#pragma once
#include <cstdint>

namespace kernel {

class Be16 {
public:
    constexpr Be16() = default;
    constexpr explicit Be16(std::uint16_t value)
        : bytes_{static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(value)}
    {
    }
    constexpr std::uint16_t value() const { return static_cast<std::uint16_t>(bytes_[0] << 8 | bytes_[1]); }

private:
    std::uint8_t bytes_[2] = {};
};

class Be32 {
public:
    constexpr Be32() = default;
    constexpr explicit Be32(std::uint32_t value)
        : bytes_{static_cast<std::uint8_t>(value >> 24), static_cast<std::uint8_t>(value >> 16),
                 static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(value)}
    {
    }
    constexpr std::uint32_t value() const
    {
        return std::uint32_t(bytes_[0]) << 24 | std::uint32_t(bytes_[1]) << 16 | std::uint32_t(bytes_[2]) << 8 |
               bytes_[3];
    }

private:
    std::uint8_t bytes_[4] = {};
};

} // namespace kernel
