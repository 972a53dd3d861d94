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
    void use_for_100_seconds(const HwAddr& peer)
    {
        for (int i = 0; i < 10; ++i) {
            world.advance(1000);
            world.transmit(world.packet(peer));
            world.complete_sends(1);
        }
    }
    // The path to a peer is known, with LID 5, and queried again after a fabric event.
    void refresh_path()
    {
        open();
        meet(peer(1), 5);
        reregister();
        EXPECT_EQ(lid_of_next_packet(), 5);
    }
    // Sends a packet to that peer.
    std::uint16_t lid_of_next_packet()
    {
        world.transmit(world.packet(peer(1)));
        return world.sent.back().ah->dlid;
    }
};

} // namespace ipoib
