// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Groups: membership, sends, leaves.
#include "multicast_test.hpp"

namespace ipoib {
namespace {

TEST_F(MulticastTest, joins_broadcast_group_before_others)
{
    world.dev().multicast = {to_group(1)};
    open_only();
    ASSERT_EQ(world.open_joins.size(), 1U);
    EXPECT_EQ(Gid::from(world.open_joins[0]->asked.mgid), broadcast_gid(PKey(0xffff)));
    world.answer_broadcast();
    world.run_work();
    ASSERT_EQ(world.open_joins.size(), 1U);
    EXPECT_EQ(Gid::from(world.open_joins[0]->asked.mgid), group(1));
}

// "ip maddr add" takes any address.
TEST_F(MulticastTest, broadcast_group_in_the_stacks_list_is_joined_as_broadcast_group)
{
    world.dev().multicast = {HwAddr::of(0, HwAddr::multicast_qpn, broadcast_gid(PKey(0xffff)))};
    open_only();
    ASSERT_EQ(world.open_joins.size(), 1U);
    EXPECT_FALSE(world.open_joins[0]->with_parameters);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
    EXPECT_TRUE(world.open_joins.empty());
}

TEST_F(MulticastTest, never_creates_the_broadcast_group)
{
    open_only();
    EXPECT_FALSE(world.open_joins[0]->with_parameters);
    EXPECT_EQ(world.open_joins[0]->asked.join_state, 1);
}

TEST_F(MulticastTest, other_groups_get_the_broadcast_groups_parameters)
{
    open();
    set_groups({1});
    const auto* join = world.join_of(group(1));
    ASSERT_NE(join, nullptr);
    EXPECT_TRUE(join->with_parameters);
    EXPECT_EQ(join->asked.qkey, 0xb1bU);
    EXPECT_EQ(join->asked.mtu, 4);
    EXPECT_EQ(join->asked.rate, 3);
    EXPECT_EQ(join->asked.sl, 1);
    EXPECT_EQ(join->asked.traffic_class, 2);
    EXPECT_EQ(join->asked.hop_limit, 3);
    EXPECT_EQ(join->asked.flow_label, 4U);
    EXPECT_EQ(join->asked.join_state, 1);
}

TEST_F(MulticastTest, full_members_are_attached_and_send_only_ones_are_not)
{
    open();
    set_groups({1});
    world.answer_join(world.join_of(group(1)));
    EXPECT_EQ(world.qp().attached.size(), 2U);
    world.transmit(world.packet(to_group(2)));
    world.run_work();
    world.answer_join(world.join_of(group(2)));
    EXPECT_EQ(world.qp().attached.size(), 2U);
}

TEST_F(MulticastTest, sender_joins_send_only_and_waiting_packets_are_sent)
{
    open();
    for (int i = 0; i < 3; ++i)
        world.transmit(world.packet(to_group(2)));
    world.run_work();
    auto* join = world.join_of(group(2));
    ASSERT_NE(join, nullptr);
    EXPECT_EQ(join->asked.join_state, 8);
    world.answer_join(join, 0, 0xc055);
    ASSERT_EQ(world.sent.size(), 3U);
    EXPECT_EQ(world.sent[0].ah->dlid, 0xc055);
    EXPECT_EQ(world.sent[0].qpn, HwAddr::multicast_qpn);
}

TEST_F(MulticastTest, packet_is_sent_if_its_group_joins_during_the_lookup)
{
    open();
    world.transmit(world.packet(to_group(7)));
    world.run_work();
    // The lookup found no address handle.
    world.meanwhile = [&] { world.answer_join(world.join_of(group(7))); };
    world.transmit(world.packet(to_group(7)));
    EXPECT_EQ(world.qp().outstanding.size(), 2U);
    world.complete_sends(2);
}

TEST_F(MulticastTest, address_resolution_is_sent_to_the_broadcast_group)
{
    open();
    for (const std::uint16_t type : {0x0806, 0x8035}) {
        world.transmit(world.packet(HwAddr::from(world.dev().broadcast.data()), type));
        ASSERT_EQ(world.qp().outstanding.size(), 1U);
        EXPECT_EQ(world.sent.back().qpn, HwAddr::multicast_qpn);
        EXPECT_EQ(world.sent.back().ah->dlid, 0xc000);
        world.complete_sends(1);
    }
    EXPECT_EQ(world.path_queries, 0U);
}

TEST_F(MulticastTest, at_most_64_packets_wait_for_a_group)
{
    open();
    for (int i = 0; i < 70; ++i)
        world.transmit(world.packet(to_group(2)));
    EXPECT_EQ(world.drops, 6U);
    EXPECT_EQ(statistics().tx_dropped, 6U);
}

TEST_F(MulticastTest, packets_wait_at_most_a_minute_for_a_group)
{
    open();
    reregister();
    // The broadcast group is not rejoined, so other groups wait.
    set_groups({1});
    world.transmit(world.packet(to_group(1)));
    world.advance(5900);
    EXPECT_EQ(world.drops, 0U);
    world.advance(200);
    world.transmit(world.packet(to_group(1)));
    EXPECT_EQ(world.drops, 1U) << "another packet looks";
    world.advance(9100);
    EXPECT_EQ(world.drops, 2U) << "the collector looks";
}

TEST_F(MulticastTest, send_only_group_drops_its_packets_after_the_second_refusal)
{
    open();
    world.transmit(world.packet(to_group(2)));
    world.run_work();
    world.answer_join(world.join_of(group(2)), -22);
    EXPECT_EQ(world.drops, 0U);
    world.advance(110);
    world.answer_join(world.join_of(group(2)), -22);
    EXPECT_EQ(world.drops, 1U);
    world.advance(5000);
    EXPECT_TRUE(world.open_joins.empty());
}

TEST_F(MulticastTest, net_reset_keeps_the_membership)
{
    open();
    auto* broadcast = world.memberships.front();
    world.answer_join(broadcast, -102);
    world.run_work();
    EXPECT_EQ(world.memberships.size(), 1U);
    EXPECT_TRUE(world.dev().carrier);
    EXPECT_EQ(world.leaves, 0U);
}

TEST_F(MulticastTest, reregistration_rejoins_all_groups_and_keeps_sending)
{
    open();
    set_groups({1});
    world.answer_join(world.join_of(group(1)), 0, 0xc010);
    world.run_work();
    reregister();
    EXPECT_TRUE(world.dev().carrier);
    world.transmit(world.packet(to_group(1)));
    EXPECT_EQ(world.sent.back().ah->dlid, 0xc010);
    world.answer_broadcast();
    world.run_work();
    world.answer_join(world.join_of(group(1)), 0, 0xc020);
    world.transmit(world.packet(to_group(1)));
    EXPECT_EQ(world.sent.back().ah->dlid, 0xc020);
    // The queue pair is attached once to the group's new LID.
    EXPECT_EQ(world.qp().attached.size(), 2U);
    EXPECT_EQ(world.leaves, 2U);
    EXPECT_EQ(world.drops, 0U);
}

class SendOnlyTest : public MulticastTest {
protected:
    // The membership was granted by a former subnet manager.
    void SetUp() override
    {
        MulticastTest::SetUp();
        open();
        world.transmit(world.packet(to_group(2)));
        world.run_work();
        world.answer_join(world.join_of(group(2)), 0, 0xc010);
        reregister();
        world.answer_broadcast();
        world.run_work();
    }
};

TEST_F(SendOnlyTest, refused_group_is_joined_again_by_the_next_packet)
{
    world.answer_join(world.join_of(group(2)), -22);
    world.advance(110);
    world.answer_join(world.join_of(group(2)), -22);
    world.run_work();
    const std::size_t sent = world.sent.size();
    world.transmit(world.packet(to_group(2)));
    world.run_work();
    EXPECT_EQ(world.sent.size(), sent) << "to a multicast LID that may be another group's";
    ASSERT_NE(world.join_of(group(2)), nullptr);
    world.answer_join(world.join_of(group(2)), 0, 0xc020);
    EXPECT_EQ(world.sent.back().ah->dlid, 0xc020);
    EXPECT_EQ(world.drops, 0U);
}

TEST_F(SendOnlyTest, unanswered_rejoin_is_retried_and_packets_use_the_old_record)
{
    for (const unsigned int seconds : {1U, 2U, 4U, 8U}) {
        world.answer_join(world.join_of(group(2)), -110);
        world.transmit(world.packet(to_group(2)));
        EXPECT_EQ(world.sent.back().ah->dlid, 0xc010);
        world.complete_sends(world.qp().outstanding.size());
        world.advance(seconds * 100 + 10);
    }
    ASSERT_NE(world.join_of(group(2)), nullptr);
    world.answer_join(world.join_of(group(2)), 0, 0xc020);
    world.transmit(world.packet(to_group(2)));
    EXPECT_EQ(world.sent.back().ah->dlid, 0xc020);
    EXPECT_EQ(world.drops, 0U);
}

TEST_F(MulticastTest, carrier_waits_for_the_broadcast_groups_attachment)
{
    world.refused = "qp_attach";
    open_only();
    world.answer_broadcast();
    world.run_work();
    EXPECT_FALSE(world.dev().carrier);
    world.refused.clear();
    world.advance(110);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
}

TEST_F(MulticastTest, reregistration_during_a_join_joins_again)
{
    open();
    set_groups({1});
    auto* join = world.join_of(group(1));
    reregister();
    world.answer_broadcast();
    world.run_work();
    // The membership may have been granted by a subnet manager that has lost it since.
    world.answer_join(join);
    world.run_work();
    ASSERT_EQ(world.open_joins.size(), 1U);
    world.answer_join(world.join_of(group(1)));
    world.run_work();
    EXPECT_TRUE(world.open_joins.empty());
    EXPECT_EQ(world.qp().attached.size(), 2U);
}

TEST_F(MulticastTest, listed_groups_are_joined_again_with_a_new_pkey)
{
    open();
    set_groups({1});
    world.answer_join(world.join_of(group(1)));
    world.run_work();
    world.ca.pkey = 0x8001;
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    world.answer_broadcast();
    world.run_work();
    Gid mgid = group(1);
    set_pkey(mgid, PKey(0x8001));
    EXPECT_NE(world.join_of(mgid), nullptr);
}

TEST_F(MulticastTest, group_removed_from_the_list_is_left)
{
    open();
    set_groups({1, 2});
    world.answer_join(world.join_of(group(1)));
    world.run_work();
    world.answer_join(world.join_of(group(2)));
    set_groups({2});
    EXPECT_EQ(world.leaves, 1U);
    EXPECT_EQ(world.memberships.size(), 2U);
}

TEST_F(MulticastTest, send_only_group_becomes_a_full_member)
{
    open();
    world.transmit(world.packet(to_group(1)));
    world.run_work();
    world.answer_join(world.join_of(group(1)));
    set_groups({1});
    auto* join = world.join_of(group(1));
    ASSERT_NE(join, nullptr);
    EXPECT_EQ(join->asked.join_state, 1);
    EXPECT_EQ(world.leaves, 1U);
}

TEST_F(MulticastTest, address_of_another_link_is_never_joined)
{
    open();
    HwAddr wrong = to_group(1);
    wrong.bytes[7] ^= 1;
    world.dev().multicast = {wrong};
    ipoib_ndo_set_rx_mode(&world.dev());
    world.run_work();
    EXPECT_TRUE(world.open_joins.empty());
}

TEST_F(MulticastTest, unused_send_only_group_is_left)
{
    open();
    world.transmit(world.packet(to_group(2)));
    world.run_work();
    world.answer_join(world.join_of(group(2)));
    world.complete_sends(1);
    world.advance(3 * 3000 + 10);
    EXPECT_EQ(world.leaves, 1U);
}

TEST_F(MulticastTest, used_send_only_group_is_kept)
{
    open();
    world.transmit(world.packet(to_group(2)));
    world.run_work();
    world.answer_join(world.join_of(group(2)));
    for (int i = 0; i < 10; ++i) {
        world.advance(1000);
        world.transmit(world.packet(to_group(2)));
        world.complete_sends(world.qp().outstanding.size());
    }
    EXPECT_EQ(world.leaves, 0U);
}

TEST_F(MulticastTest, send_only_group_used_during_garbage_collection_is_kept)
{
    open();
    world.transmit(world.packet(to_group(2)));
    world.run_work();
    world.answer_join(world.join_of(group(2)));
    // Another processor sends in the tick after the collector has read the clock.
    world.meanwhile = [&] {
        ++world.now;
        world.transmit(world.packet(to_group(2)));
    };
    interface().groups.collect_garbage(2 * 3000);
    EXPECT_EQ(world.leaves, 0U);
}

TEST_F(MulticastTest, limit_of_send_only_groups_evicts_unused_ones)
{
    open();
    const std::size_t before = world.memory.size();
    for (std::uint16_t i = 0; i < GroupSet::max_send_only; ++i)
        world.transmit(world.packet(to_group(i + 2)));
    EXPECT_EQ(world.drops, 0U);
    const HwAddr one_more = to_group(GroupSet::max_send_only + 2);
    world.transmit(world.packet(one_more));
    EXPECT_EQ(world.drops, 1U);
    EXPECT_EQ(world.reasons, std::set{SHIM_DROP_NEIGH_CREATEFAIL});
    // Groups of the stack's list do not count toward the limit.
    set_groups({1});
    EXPECT_NE(world.join_of(group(1)), nullptr);
    set_groups({});
    world.advance(3 * 3000 + 10);
    EXPECT_EQ(world.drops, 1U + GroupSet::max_send_only) << "with their groups";
    EXPECT_EQ(world.memory.size(), before);
    world.transmit(world.packet(one_more));
    EXPECT_EQ(world.drops, 1U + GroupSet::max_send_only);
}

TEST_F(MulticastTest, multicast_packet_gets_the_links_pkey)
{
    open();
    HwAddr other = to_group(3);
    other.bytes[8] = 0x80;
    other.bytes[9] = 0x01;
    world.transmit(world.packet(other));
    world.run_work();
    EXPECT_NE(world.join_of(group(3)), nullptr);
}

TEST_F(MulticastTest, group_that_fails_to_attach_is_joined_again)
{
    open();
    world.refused = "qp_attach";
    set_groups({1});
    world.answer_join(world.join_of(group(1)));
    EXPECT_EQ(world.memberships.size(), 1U) << "the broadcast group's";
    world.refused.clear();
    world.advance(100);
    world.answer_join(world.join_of(group(1)));
    EXPECT_EQ(world.memberships.size(), 2U);
    EXPECT_EQ(world.qp().attached.size(), 2U);
}

} // namespace
} // namespace ipoib
