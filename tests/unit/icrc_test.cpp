// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The invariant CRC in place of checksums: the flag, the offers in REQ and REP, and packets without checksums.
#include "connected_test.hpp"

#include <shim/ethtool.h>

namespace ipoib {
namespace {

class IcrcTest : public ConnectedTest {
protected:
    void trust(bool wanted)
    {
        world.rtnl = true;
        EXPECT_EQ(ipoib_ethtool_set_flags(&world.dev(), wanted ? IPOIB_FLAG_ICRC_AS_CHECKSUM : 0), 0);
        world.rtnl = false;
        world.run_work();
    }
    // Returns whether a packet to the peer is sent without checksum, on a connection with this offer of the peer.
    bool sent_without_checksum(IcrcOffer offer)
    {
        world.reply(ask(capable(1)), 65524, offer);
        ib_qp* qp = world.qps.back();
        world.complete_messages(*qp, qp->outstanding.size());
        sk_buff* skb = world.packet(capable(1), 0x0800, 100);
        skb->wants_checksum = true;
        world.transmit(skb);
        const bool without = skb->wants_checksum;
        world.complete_messages(*qp, 1);
        return without;
    }
    // Returns whether a message from a peer with this offer is marked as verified for the stack.
    bool taken_as_verified(IcrcOffer offer)
    {
        world.request(gid(2), 0x200, 65524, true, offer);
        std::vector<std::uint8_t> bytes(104);
        bytes[0] = 0x08;
        EXPECT_TRUE(world.receive_message(*world.qps.back(), bytes));
        return world.received.back()->verified;
    }
    static IcrcOffer offer(std::uint16_t signature, std::uint16_t capabilities)
    {
        return {kernel::Be16(signature), kernel::Be16(capabilities)};
    }
};

TEST_F(IcrcTest, flag_is_off_by_default)
{
    EXPECT_EQ(ipoib_ethtool_get_flags(&world.dev()), 0U);
    EXPECT_FALSE(ipoib_offers_checksums(&world.dev()));
    EXPECT_FALSE(sent_without_checksum(IcrcOffer::make()));
    EXPECT_FALSE(taken_as_verified(IcrcOffer::make()));
}

TEST_F(IcrcTest, flag_has_a_name)
{
    std::vector<char> names(std::size_t{IPOIB_FLAGS} * SHIM_ETHTOOL_NAME_BYTES);
    ipoib_ethtool_flag_names(names.data());
    EXPECT_STREQ(names.data(), "icrc-as-checksum");
    trust(true);
    EXPECT_EQ(ipoib_ethtool_get_flags(&world.dev()), 1U);
}

TEST_F(IcrcTest, req_and_rep_carry_the_offer)
{
    trust(true);
    EXPECT_TRUE(ipoib_offers_checksums(&world.dev()));
    const std::vector<std::uint8_t> data{0, 0, 0, 0x48, 0, 0, 0xff, 0xf4, 0x22, 0x11, 0x10, 0x01};
    EXPECT_EQ(ask(capable(1))->private_data, data);
    EXPECT_EQ(world.request(gid(2), 0x200, 65524, true, IcrcOffer::make())->private_data, data);
    // A peer without an offer gets no offer in the REP.
    EXPECT_EQ(world.request(gid(3), 0x300)->private_data.size(), 8U);
}

TEST_F(IcrcTest, checksums_are_omitted_if_both_ends_offer)
{
    trust(true);
    EXPECT_TRUE(sent_without_checksum(IcrcOffer::make()));
    EXPECT_TRUE(taken_as_verified(IcrcOffer::make()));
    EXPECT_TRUE(shows("icrc"));
}

TEST_F(IcrcTest, peer_without_an_offer_gets_checksums)
{
    trust(true);
    EXPECT_FALSE(sent_without_checksum({}));
    EXPECT_FALSE(taken_as_verified({}));
    EXPECT_FALSE(shows("icrc"));
}

TEST_F(IcrcTest, offer_needs_signature_version_and_bit)
{
    EXPECT_TRUE(offer(0x2211, 0x1ff1).valid());
    EXPECT_FALSE(offer(0x1122, 0x1001).valid());
    EXPECT_FALSE(offer(0x2211, 0x2001).valid());
    EXPECT_FALSE(offer(0x2211, 0x3001).valid());
    EXPECT_FALSE(offer(0x2211, 0x1002).valid());
}

TEST_F(IcrcTest, flag_change_ends_connections)
{
    connect(capable(1));
    world.request(gid(2), 0x200);
    EXPECT_EQ(connections(), 2U);
    trust(true);
    EXPECT_EQ(connections(), 0U);
    EXPECT_TRUE(sent_without_checksum(IcrcOffer::make()));
    trust(false);
    EXPECT_EQ(connections(), 0U);
    EXPECT_FALSE(sent_without_checksum(IcrcOffer::make()));
}

TEST_F(IcrcTest, datagrams_have_checksums)
{
    trust(true);
    meet(peer(1));
    sk_buff* skb = world.packet(peer(1), 0x0800, 100);
    skb->wants_checksum = true;
    world.transmit(skb);
    EXPECT_TRUE(!skb->wants_checksum || world.sent.back().checksum);
}

} // namespace
} // namespace ipoib
