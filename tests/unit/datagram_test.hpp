// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Fixture of datagram tests: an open interface with a known peer.
#pragma once

#include "driver_test.hpp"

namespace ipoib {

class DatagramTest : public DriverTest {
protected:
    void SetUp() override
    {
        DriverTest::SetUp();
        open();
        meet(peer(1));
        world.sent.clear();
        world.doorbells = 0;
    }
    static std::vector<std::uint8_t> frame(std::uint16_t type = 0x0800, std::size_t payload = 60)
    {
        std::vector<std::uint8_t> bytes(4 + payload, 0x5a);
        bytes[0] = static_cast<std::uint8_t>(type >> 8);
        bytes[1] = static_cast<std::uint8_t>(type);
        bytes[2] = bytes[3] = 0;
        return bytes;
    }
};

} // namespace ipoib
