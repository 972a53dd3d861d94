// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Fixture of tests of the passive side: connections that peers made.
#pragma once

#include "connected_test.hpp"

#include <shim/skbuff.h>

namespace ipoib {

class PassiveTest : public ConnectedTest {
protected:
    // The accepting side does not depend on the mode.
    void SetUp() override
    {
        DriverTest::SetUp();
        open();
    }
    ib_cm_id* listener()
    {
        const auto it = std::find_if(world.cm_ids.begin(), world.cm_ids.end(), [](auto* id) { return id->listens; });
        return it == world.cm_ids.end() ? nullptr : *it;
    }
    void is_given_up_after_five_seconds()
    {
        run_for(400);
        EXPECT_EQ(connections(), 1U);
        run_for(200);
        EXPECT_EQ(connections(), 0U);
        EXPECT_TRUE(logged("RX drain timing out"));
        // The poll might have held a completion of the queue pair.
        EXPECT_EQ(world.polls_at_destruction, 1U);
        EXPECT_EQ(world.polls_enabled, 2U);
        world.mute = false;
    }
    std::vector<std::uint8_t> message(std::size_t payload)
    {
        std::vector<std::uint8_t> bytes(4 + payload);
        bytes[0] = 0x08;
        for (std::size_t i = 4; i < bytes.size(); ++i)
            bytes[i] = static_cast<std::uint8_t>(i * 7);
        return bytes;
    }
    // Messages up to 256 bytes are copied; longer ones have their first bytes in a page and the rest in large pieces.
    void receive_all_sizes(ib_qp* qp)
    {
        constexpr std::size_t first_bytes = 4096 - 64 - 20 - 320;
        const std::size_t sizes[] = {1,    20,   251,   252,   253,   3687,  3688,  3689,
                                     4092, 8188, 20071, 20072, 20073, 36456, 36457, 65520};
        for (const std::size_t size : sizes) {
            const auto bytes = message(size);
            ASSERT_TRUE(world.receive_message(*qp, bytes));
            ASSERT_FALSE(world.received.empty());
            const sk_buff* skb = world.received.back();
            ASSERT_EQ(shim_skb_len(skb), size);
            EXPECT_EQ(std::memcmp(shim_skb_data(skb), bytes.data() + 4, size), 0) << size;
            EXPECT_EQ(skb->protocol, 0x0800);
            EXPECT_EQ(skb->mac_header.size(), 24U);
            EXPECT_EQ(skb->mac_header[20], 0x08);
            const std::size_t rest = size + 4 > first_bytes ? size + 4 - first_bytes : 0;
            const std::size_t pages = size + 4 <= 256 ? 0 : 1 + (rest + 16383) / 16384;
            EXPECT_EQ(skb->pages.size() + (skb->buffer != nullptr), pages) << size;
        }
        EXPECT_EQ(statistics().rx_packets, std::size(sizes));
    }
    // The queue pair of a connection that a peer made.
    ib_qp* accept(std::uint8_t port, std::uint32_t qpn)
    {
        id = world.request(gid(port), qpn);
        return id ? world.qps.back() : nullptr;
    }
    ib_cm_id* id = nullptr;
};

} // namespace ipoib
