// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Addresses, encapsulation and multicast mapping: pure values.
#include <gtest/gtest.h>

#include <ipoib/address.hpp>
#include <ipoib/encapsulation.hpp>
#include <ipoib/mgid.hpp>

namespace ipoib {
namespace {

TEST(HwAddr, carries_flags_qpn_and_gid)
{
    Gid gid;
    for (unsigned int i = 0; i < Gid::size; ++i)
        gid.bytes[i] = static_cast<std::uint8_t>(0xa0 + i);
    const HwAddr address = HwAddr::of(HwAddr::flag_rc, 0x123456, gid);
    const std::uint8_t head[] = {0x80, 0x12, 0x34, 0x56, 0xa0};
    EXPECT_EQ(std::memcmp(address.bytes, head, sizeof(head)), 0);
    EXPECT_EQ(address.qpn(), 0x123456U);
    EXPECT_EQ(address.gid(), gid);
    EXPECT_TRUE(address.connected_capable());
    EXPECT_FALSE(address.multicast());
}

TEST(HwAddr, keeps_24_bit_qpn)
{
    EXPECT_EQ(HwAddr::of(0, 0xff123456, {}).qpn(), 0x123456U);
    EXPECT_EQ(HwAddr::of(0, HwAddr::multicast_qpn, {}).qpn(), 0xffffffU);
}

TEST(PKey, zero_and_0x8000_are_invalid)
{
    EXPECT_FALSE(PKey(0).valid());
    EXPECT_FALSE(PKey(0x8000).valid());
    EXPECT_TRUE(PKey(1).valid());
    EXPECT_TRUE(PKey(0xffff).valid());
}

TEST(PKey, full_member_bit_is_set)
{
    EXPECT_EQ(PKey(0x0001).as_full_member().value(), 0x8001);
    EXPECT_EQ(PKey(0xffff).as_full_member().value(), 0xffff);
}

TEST(Gid, compares_interface_ids)
{
    Gid a{{1, 2}}, b{{3, 4}};
    a.bytes[15] = b.bytes[15] = 9;
    EXPECT_TRUE(a.same_interface_id(b));
    EXPECT_NE(a, b);
    b.bytes[8] = 1;
    EXPECT_FALSE(a.same_interface_id(b));
}

TEST(Mgid, broadcast_group_matches_rfc_4391)
{
    const Gid expected{{0xff, 0x12, 0x40, 0x1b, 0x80, 0x01, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}};
    EXPECT_EQ(broadcast_gid(PKey(0x0001)), expected);
    EXPECT_EQ(broadcast_gid(PKey(0x8001)), expected);
}

TEST(Mgid, set_pkey_writes_the_full_member_pkey)
{
    Gid group = broadcast_gid(PKey(0xffff));
    set_pkey(group, PKey(0x1234));
    EXPECT_EQ(group.bytes[4], 0x92);
    EXPECT_EQ(group.bytes[5], 0x34);
}

HwAddr group_of(const char* kind, PKey pkey)
{
    Gid gid = broadcast_gid(pkey);
    if (kind[0] == '6')
        gid.bytes[2] = 0x60;
    gid.bytes[15] = 1;
    return HwAddr::of(0, HwAddr::multicast_qpn, gid);
}

TEST(Mgid, groups_with_the_links_signature_and_scope_belong_to_the_link)
{
    const HwAddr broadcast = HwAddr::of(0, HwAddr::multicast_qpn, broadcast_gid(PKey(0xffff)));
    EXPECT_TRUE(belongs_to_link(group_of("4", PKey(0xffff)), broadcast));
    EXPECT_TRUE(belongs_to_link(group_of("6", PKey(0xffff)), broadcast));
    // Addresses from before a change of the link's P_Key.
    EXPECT_TRUE(belongs_to_link(group_of("4", PKey(0x8001)), broadcast));
}

TEST(Mgid, other_addresses_do_not_belong_to_the_link)
{
    const HwAddr broadcast = HwAddr::of(0, HwAddr::multicast_qpn, broadcast_gid(PKey(0xffff)));
    for (unsigned int byte = 0; byte < 6; ++byte) {
        HwAddr wrong = group_of("4", PKey(0xffff));
        wrong.bytes[byte] ^= 0x40;
        EXPECT_FALSE(belongs_to_link(wrong, broadcast)) << "byte " << byte;
    }
}

TEST(BigEndian, fields_are_read_from_the_highest_byte_on)
{
    const std::uint8_t wire[] = {0x12, 0x34, 0x56, 0x78};
    kernel::Be32 four;
    std::memcpy(&four, wire, sizeof(four));
    EXPECT_EQ(four.value(), 0x12345678U);
    kernel::Be16 two;
    std::memcpy(&two, wire, sizeof(two));
    EXPECT_EQ(two.value(), 0x1234);
}

TEST(Encapsulation, is_four_bytes_on_the_wire)
{
    const Encapsulation header{kernel::Be16(0x86dd), kernel::Be16(0)};
    const std::uint8_t wire[] = {0x86, 0xdd, 0, 0};
    EXPECT_EQ(std::memcmp(&header, wire, sizeof(wire)), 0);
    EXPECT_EQ(header.type.value(), 0x86dd);
}

TEST(Encapsulation, carries_ip_arp_rarp_and_tipc_only)
{
    for (unsigned int type = 0; type <= 0xffff; ++type) {
        const bool expected = type == 0x0800 || type == 0x86dd || type == 0x0806 || type == 0x8035 || type == 0x88ca;
        ASSERT_EQ(carried(static_cast<std::uint16_t>(type)), expected) << std::hex << type;
    }
}

TEST(Encapsulation, takes_four_bytes_of_the_mtu)
{
    EXPECT_EQ(ip_mtu(2048), 2044U);
    EXPECT_EQ(ip_mtu(4096), 4092U);
}

} // namespace
} // namespace ipoib
