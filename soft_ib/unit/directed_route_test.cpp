// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// SMPs whose route has parts by LID before or after the directed one (IBA 14.2.2). HCA i has LID i + 1.
#include "fabric_fixture.hpp"

namespace soft_ib {
namespace {

class DirectedRouteTest : public FabricTest {
protected:
    static constexpr std::uint16_t switch_lid = 7;

    void SetUp() override
    {
        FabricTest::SetUp();
        for (unsigned int i = 0; i < hcas; ++i)
            activate(i, static_cast<std::uint16_t>(i + 1));
        std::array<std::uint8_t, 64> data{};
        store(data.data() + 8, default_subnet_prefix);
        store(data.data() + 16, switch_lid);
        store<std::uint16_t>(data.data() + 18, 1);
        ASSERT_TRUE(set_on_switch(port_info, 0, data));
    }
    // A request for NodeInfo with this path and its hop pointer.
    static MadBytes request(std::uint8_t pointer, std::initializer_list<std::uint8_t> path, std::uint16_t directed_slid,
                            std::uint16_t directed_dlid)
    {
        MadBytes mad = directed(Method::get, node_info, 0, {});
        mad[6] = pointer;
        mad[7] = static_cast<std::uint8_t>(path.size());
        std::copy(path.begin(), path.end(), mad.begin() + 128 + 1);
        store(mad.data() + 32, directed_slid);
        store(mad.data() + 34, directed_dlid);
        return mad;
    }
    bool pass(MadBytes& mad, unsigned int ingress, std::uint16_t slid, std::uint16_t dlid)
    {
        h = smp_headers(slid, dlid);
        return fabric_switch_mad(f(), ingress, &h, mad.data(), &route);
    }
    bool leaves_to(unsigned int hca, std::uint16_t slid, std::uint16_t dlid) const
    {
        return route.hcas == std::uint64_t(1) << hca && h.slid == slid && h.dlid == dlid;
    }

    fabric_headers h = smp_headers();
    static constexpr std::uint16_t permissive = FABRIC_PERMISSIVE_LID;
};

TEST_F(DirectedRouteTest, directed_part_begins_where_the_part_by_lid_ends)
{
    MadBytes mad = request(0, {3}, 1, permissive);
    ASSERT_TRUE(pass(mad, 0, 1, switch_lid));
    EXPECT_TRUE(leaves_to(2, permissive, permissive));
    EXPECT_EQ(mad[6], 1);
    // The HCA's answer.
    mad[4] = 0x80;
    ASSERT_TRUE(pass(mad, 2, permissive, permissive));
    EXPECT_TRUE(leaves_to(0, switch_lid, 1)) << "by LID to DrSLID";
    EXPECT_EQ(mad[6], 0);
}

TEST_F(DirectedRouteTest, route_by_lid_alone_gets_an_answer_by_lid)
{
    MadBytes mad = request(0, {}, 1, permissive);
    ASSERT_TRUE(pass(mad, 0, 1, switch_lid));
    EXPECT_TRUE(leaves_to(0, switch_lid, 1));
    EXPECT_EQ(mad[3], 0x81);
    EXPECT_EQ(mad[64 + 2], 2) << "a switch";
    EXPECT_EQ(mad[6], 0);
}

TEST_F(DirectedRouteTest, part_by_lid_begins_where_the_directed_part_ends)
{
    MadBytes mad = request(1, {1}, permissive, 3);
    ASSERT_TRUE(pass(mad, 0, permissive, permissive));
    EXPECT_TRUE(leaves_to(2, switch_lid, 3));
    EXPECT_EQ(mad[6], 2);
    EXPECT_EQ(mad[192 + 1], 1) << "received by port 1";
    mad[4] = 0x80;
    ASSERT_TRUE(pass(mad, 2, 3, switch_lid));
    EXPECT_TRUE(leaves_to(0, permissive, permissive));
    EXPECT_EQ(mad[6], 1);
}

TEST_F(DirectedRouteTest, answer_to_a_request_whose_route_ends_by_lid_returns_by_lid)
{
    MadBytes mad = request(2, {1}, permissive, switch_lid);
    ASSERT_TRUE(pass(mad, 1, 2, switch_lid));
    EXPECT_TRUE(leaves_to(1, switch_lid, 2));
    EXPECT_EQ(mad[6], 2) << "to be decremented by the switch where the directed part ended";
    EXPECT_EQ(mad[3], 0x81);
}

TEST_F(DirectedRouteTest, wrong_paths_and_pointers_are_discarded)
{
    MadBytes mad = request(0, {9}, 1, permissive);
    EXPECT_FALSE(pass(mad, 0, 1, switch_lid)) << "there is no port 9";
    mad = request(3, {1}, 1, permissive);
    EXPECT_FALSE(pass(mad, 0, 1, switch_lid)) << "behind the end";
    mad = request(1, {1}, permissive, 0x1234);
    EXPECT_FALSE(pass(mad, 0, permissive, permissive)) << "no route to DrDLID";
    for (const std::uint8_t pointer : {0, 1, 3}) {
        mad = request(pointer, {1}, permissive, permissive);
        mad[4] = 0x80;
        EXPECT_FALSE(pass(mad, 0, permissive, permissive)) << "a response, " << int(pointer);
    }
    mad = request(64, {}, 1, permissive);
    mad[7] = 64;
    EXPECT_FALSE(pass(mad, 0, 1, switch_lid)) << "a path has at most 63 hops";
}

} // namespace
} // namespace soft_ib
