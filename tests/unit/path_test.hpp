// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Fixture of path tests: any number of peers.
#pragma once

#include "driver_test.hpp"

namespace ipoib {

class PathTest : public DriverTest {
protected:
    // One of many: gid() knows 256.
    static HwAddr stranger(unsigned int n)
    {
        Gid address = gid(0);
        address.bytes[12] = static_cast<std::uint8_t>(n >> 16);
        address.bytes[13] = static_cast<std::uint8_t>(n >> 8);
        address.bytes[14] = static_cast<std::uint8_t>(n);
        return HwAddr::of(0, 0x100, address);
    }
};

} // namespace ipoib
