// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Unreliable connections: messages arrive whole, or not at all.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include <connections.h>

namespace {

constexpr std::uint32_t mtu = 1024;

fabric_headers packet(std::uint8_t opcode, std::uint32_t psn, std::uint32_t bytes = mtu, std::uint32_t announced = 0)
{
    fabric_headers h{};
    h.opcode = FABRIC_UC | opcode;
    h.psn = psn & FABRIC_PSN_MASK;
    h.payload_bytes = bytes;
    h.remote_bytes = announced;
    return h;
}

class UcResponder : public testing::Test {
protected:
    void SetUp() override { fabric_responder_start(&r, 10); }
    bool takes(const fabric_headers& h)
    {
        const fabric_verdict verdict = fabric_responder_look_unreliable(&r, &h, mtu);
        EXPECT_TRUE(verdict == FABRIC_TAKE || verdict == FABRIC_DISCARD);
        if (verdict == FABRIC_TAKE)
            fabric_responder_take(&r, &h);
        return verdict == FABRIC_TAKE;
    }
    fabric_responder r{};
};

TEST_F(UcResponder, packets_in_order_are_accepted)
{
    EXPECT_TRUE(takes(packet(FABRIC_RC_SEND_FIRST, 10)));
    EXPECT_TRUE(takes(packet(FABRIC_RC_SEND_MIDDLE, 11)));
    EXPECT_EQ(r.received, 2 * mtu);
    EXPECT_TRUE(takes(packet(FABRIC_RC_SEND_LAST_IMMEDIATE, 12, 1)));
    EXPECT_FALSE(r.in_message);
    EXPECT_TRUE(takes(packet(FABRIC_RC_SEND_ONLY, 13, 0)));
    EXPECT_EQ(r.messages, 2U);
}

TEST_F(UcResponder, missing_packet_drops_the_whole_message)
{
    EXPECT_TRUE(takes(packet(FABRIC_RC_SEND_FIRST, 10)));
    EXPECT_FALSE(takes(packet(FABRIC_RC_SEND_MIDDLE, 12)));
    EXPECT_FALSE(takes(packet(FABRIC_RC_SEND_MIDDLE, 11))) << "too late";
    EXPECT_FALSE(takes(packet(FABRIC_RC_SEND_LAST, 13)));
    EXPECT_EQ(r.messages, 0U);
    EXPECT_TRUE(takes(packet(FABRIC_RC_SEND_ONLY, 14))) << "the next one";
}

TEST_F(UcResponder, missing_end_is_noticed_at_the_next_message)
{
    EXPECT_TRUE(takes(packet(FABRIC_RC_SEND_FIRST, 10)));
    EXPECT_TRUE(takes(packet(FABRIC_RC_SEND_FIRST, 12)));
    EXPECT_EQ(r.received, mtu);
    EXPECT_TRUE(takes(packet(FABRIC_RC_SEND_LAST, 13)));
    EXPECT_EQ(r.messages, 1U);
}

TEST_F(UcResponder, missing_beginning_drops_the_rest)
{
    EXPECT_FALSE(takes(packet(FABRIC_RC_SEND_MIDDLE, 11)));
    EXPECT_FALSE(takes(packet(FABRIC_RC_SEND_LAST, 12)));
    EXPECT_FALSE(takes(packet(FABRIC_RC_SEND_LAST, 10))) << "nothing to end";
    EXPECT_TRUE(takes(packet(FABRIC_RC_SEND_ONLY, 13)));
}

TEST_F(UcResponder, writes_must_have_their_announced_length)
{
    EXPECT_TRUE(takes(packet(FABRIC_RC_WRITE_FIRST, 10, mtu, mtu + 5)));
    EXPECT_FALSE(takes(packet(FABRIC_RC_WRITE_LAST, 11, 6)));
    EXPECT_TRUE(takes(packet(FABRIC_RC_WRITE_FIRST, 12, mtu, mtu + 5)));
    EXPECT_TRUE(takes(packet(FABRIC_RC_WRITE_LAST_IMMEDIATE, 13, 5)));
    EXPECT_FALSE(takes(packet(FABRIC_RC_WRITE_ONLY, 14, 4, 5)));
}

TEST_F(UcResponder, kinds_of_messages_do_not_mix)
{
    EXPECT_TRUE(takes(packet(FABRIC_RC_WRITE_FIRST, 10, mtu, 2 * mtu)));
    EXPECT_FALSE(takes(packet(FABRIC_RC_SEND_LAST, 11)));
    EXPECT_FALSE(takes(packet(FABRIC_RC_WRITE_LAST, 11))) << "dropped";
    EXPECT_FALSE(takes(packet(FABRIC_RC_READ_REQUEST, 12, 0, 4)));
}

TEST_F(UcResponder, dropped_message_is_not_continued)
{
    EXPECT_TRUE(takes(packet(FABRIC_RC_SEND_FIRST, 10)));
    fabric_responder_drop(&r);
    EXPECT_FALSE(takes(packet(FABRIC_RC_SEND_LAST, 11)));
}

// Messages of all sizes: those without a lost packet arrive, and no other.
TEST(UcConnection, complete_messages_arrive_despite_loss)
{
    for (unsigned int seed = 1; seed <= 20; ++seed) {
        std::mt19937 random(seed);
        fabric_responder r{};
        fabric_responder_start(&r, 0xffff00);
        std::uint32_t psn = 0xffff00, expected = 0;
        for (int message = 0; message < 500; ++message) {
            const std::uint32_t packets = 1 + random() % 5;
            bool whole = true;
            for (std::uint32_t i = 0; i < packets; ++i, ++psn) {
                const std::uint8_t opcode = packets == 1      ? FABRIC_RC_SEND_ONLY
                                            : i == 0          ? FABRIC_RC_SEND_FIRST
                                            : i < packets - 1 ? FABRIC_RC_SEND_MIDDLE
                                                              : FABRIC_RC_SEND_LAST;
                if (random() % 8 == 0) {
                    whole = false;
                    continue;
                }
                const auto h = packet(opcode, psn);
                if (fabric_responder_look_unreliable(&r, &h, mtu) == FABRIC_TAKE)
                    fabric_responder_take(&r, &h);
            }
            expected += whole;
        }
        EXPECT_EQ(r.messages, expected) << seed;
        EXPECT_GT(expected, 100U);
    }
}

} // namespace
