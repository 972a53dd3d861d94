// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Management packets that a node's agents accept: SMPs from QP0 alone, other MADs with the Q_Key of QP1.
#include "fabric_fixture.hpp"

namespace soft_ib {
namespace {

class ManagementTest : public FabricTest {
protected:
    void SetUp() override
    {
        FabricTest::SetUp();
        activate(0, 1);
        activate(1, 2);
    }
    // An SMP that disables the switch's port 2, as a program's queue pair sends it, and on a connection.
    static std::array<fabric_headers, 4> forged(std::uint16_t dlid)
    {
        std::array<fabric_headers, 4> all;
        all.fill(smp_headers(1, dlid));
        all[0].source_qpn = 0x100;
        all[1].source_qpn = 1;
        all[2].opcode = FABRIC_RC_SEND_ONLY;
        all[3].opcode = FABRIC_UC | FABRIC_RC_SEND_ONLY;
        return all;
    }
};

TEST_F(ManagementTest, frames_to_qp0_from_other_queue_pairs_have_no_route)
{
    for (const std::uint16_t dlid : {1, 2, 0xc005, 0xffff})
        for (const fabric_headers& h : forged(dlid)) {
            route = fabric_route_frame(f(), 0, &h);
            EXPECT_EQ(route.hcas, 0U) << dlid << " by " << h.source_qpn << ", opcode " << int(h.opcode);
            EXPECT_EQ(route.to_switch, 0U) << dlid;
            EXPECT_EQ(route.sent_words, 0U) << dlid;
            EXPECT_FALSE(fabric_accepts(f(), h.dlid == 2 ? 1 : 0, &h)) << dlid;
        }
    const fabric_headers smp = smp_headers(1, 2);
    EXPECT_EQ(fabric_route_frame(f(), 0, &smp).hcas, std::uint64_t(1) << 1);
    EXPECT_TRUE(fabric_accepts(f(), 1, &smp));
}

TEST_F(ManagementTest, switch_takes_smps_of_qp0_alone)
{
    MadBytes mad = directed(Method::set, port_info, 2, {});
    mad[64 + 33] = disabled << 4;
    for (fabric_headers h : forged(FABRIC_PERMISSIVE_LID)) {
        MadBytes sent = mad;
        EXPECT_FALSE(fabric_switch_mad(f(), 0, &h, sent.data(), &route)) << h.source_qpn << " " << int(h.opcode);
        EXPECT_FALSE(fabric_unsettled(f()));
    }
    fabric_headers h = smp_headers();
    EXPECT_TRUE(fabric_switch_mad(f(), 0, &h, mad.data(), &route));
    EXPECT_TRUE(fabric_unsettled(f()));
}

TEST_F(ManagementTest, switch_takes_other_mads_by_their_queue_key_and_transport)
{
    const MadBytes request = performance(Method::get, 0x12, 2);
    MadBytes mad = request;
    fabric_headers h = gmp_headers(1, 7);
    h.qkey = 0x11111111;
    EXPECT_FALSE(fabric_switch_mad(f(), 0, &h, mad.data(), &route));
    h = gmp_headers(1, 7);
    h.opcode = FABRIC_RC_SEND_ONLY;
    EXPECT_FALSE(fabric_switch_mad(f(), 0, &h, mad.data(), &route));
    h = gmp_headers(1, 7);
    h.source_qpn = 0x100;
    EXPECT_TRUE(fabric_switch_mad(f(), 0, &h, mad.data(), &route)) << "any queue pair that has the key";
}

} // namespace
} // namespace soft_ib
