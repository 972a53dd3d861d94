// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Identity of an interface: a GUID set by the administrator, and the interface that rdma_cm finds.
#include "driver_test.hpp"

struct sockaddr {
    int which;
};

namespace ipoib {
namespace {

class IdentityTest : public DriverTest {
protected:
    static shim_gid with_guid(shim_gid gid, std::uint8_t last)
    {
        gid.raw[15] = last;
        return gid;
    }
    int set_guid(net_device& dev, std::uint8_t last)
    {
        HwAddr address = HwAddr::from(dev.address.data());
        address.bytes[19] = last;
        world.rtnl = true;
        const int error = ipoib_ndo_set_address(&dev, address.bytes);
        world.rtnl = false;
        return error;
    }
    void open_dev(net_device& dev)
    {
        world.rtnl = true;
        dev.up = true;
        EXPECT_EQ(ipoib_ndo_open(&dev), 0);
        world.rtnl = false;
        world.run_work();
    }
    Interface& child(std::uint16_t pkey)
    {
        world.rtnl = true;
        world.pkeys_found.push_back(pkey);
        EXPECT_TRUE(interface().children.create(pkey).ok());
        world.rtnl = false;
        world.run_work();
        return Interface::of(world.netdevs.back());
    }
    net_device* find(std::uint16_t pkey, const Gid* gid, const sockaddr* address)
    {
        const shim_gid native = gid ? gid->native() : shim_gid{};
        return ipoib_find_netdev(world.state, 1, pkey, gid ? &native : nullptr, address);
    }
};

TEST_F(IdentityTest, only_the_guid_can_be_set)
{
    HwAddr address = HwAddr::from(world.dev().address.data());
    for (std::size_t byte = 0; byte < 12; ++byte) {
        HwAddr wrong = address;
        wrong.bytes[byte] ^= 1;
        EXPECT_EQ(ipoib_ndo_set_address(&world.dev(), wrong.bytes), -22) << byte;
    }
    HwAddr none = address;
    std::memset(none.bytes + 12, 0, 8);
    EXPECT_EQ(ipoib_ndo_set_address(&world.dev(), none.bytes), -22);
    EXPECT_EQ(HwAddr::from(world.dev().address.data()), address);
    EXPECT_EQ(set_guid(world.dev(), 0x77), 0);
    EXPECT_EQ(world.dev().address[19], 0x77);
    EXPECT_EQ(interface().identity.gid().bytes[15], 0x77);
    world.dev().up = true;
    EXPECT_EQ(set_guid(world.dev(), 0x78), -16);
    world.dev().up = false;
}

TEST_F(IdentityTest, joins_wait_until_the_port_has_the_guid)
{
    EXPECT_EQ(set_guid(world.dev(), 0x77), 0);
    open_dev(world.dev());
    EXPECT_TRUE(world.open_joins.empty());
    EXPECT_FALSE(world.log.empty());
    world.advance(10 * shim_hz());
    world.run_work();
    EXPECT_TRUE(world.open_joins.empty());
    // The change raises no event.
    world.ca.gids.push_back(with_guid(world.ca.gid, 0x77));
    world.advance(2 * shim_hz());
    world.run_work();
    ASSERT_EQ(world.open_joins.size(), 1U);
    EXPECT_EQ(world.open_joins[0]->asked.port_gid.raw[15], 0x77);
    world.answer_broadcast();
    world.run_work();
    EXPECT_TRUE(world.dev().carrier);
    close();
}

TEST_F(IdentityTest, set_guid_survives_changes_of_the_gid_table)
{
    EXPECT_EQ(set_guid(world.dev(), 0x77), 0);
    world.ca.gids.push_back(with_guid(world.ca.gid, 0x77));
    world.ca.gid.raw[0] = 0xfd;
    reregister();
    // The prefix is the subnet's.
    EXPECT_EQ(world.dev().address[4], 0xfd);
    EXPECT_EQ(world.dev().address[19], 0x77);
    // With the port's own GUID set again, the address follows the port.
    EXPECT_EQ(set_guid(world.dev(), world.ca.gid.raw[15]), 0);
    world.ca.gid.raw[15] = 0x99;
    reregister();
    EXPECT_EQ(world.dev().address[19], 0x99);
}

TEST_F(IdentityTest, children_have_their_parents_guid)
{
    Interface& before = child(0x8001);
    EXPECT_EQ(set_guid(world.dev(), 0x77), 0);
    EXPECT_EQ(before.identity.gid().bytes[15], 0x77);
    EXPECT_EQ(before.dev()->address[19], 0x77);
    EXPECT_EQ(before.dev()->address_changes, 1U);
    Interface& after = child(0x8002);
    EXPECT_EQ(after.identity.gid().bytes[15], 0x77);
    // The subnet gets another prefix.
    world.ca.gid.raw[0] = 0xfd;
    reregister();
    for (const Interface* one : {&before, &after}) {
        EXPECT_EQ(one->dev()->address[4], 0xfd);
        EXPECT_EQ(one->dev()->address[19], 0x77);
    }
}

TEST_F(IdentityTest, open_child_joins_again_with_its_parents_new_guid)
{
    Interface& blue = child(0x8001);
    open_dev(*blue.dev());
    world.answer_join(world.join_of(broadcast_gid(PKey(0x8001))));
    world.run_work();
    ASSERT_TRUE(blue.dev()->carrier);
    world.ca.gids.push_back(with_guid(world.ca.gid, 0x77));
    EXPECT_EQ(set_guid(world.dev(), 0x77), 0);
    world.run_work();
    ASSERT_EQ(world.open_joins.size(), 1U);
    EXPECT_EQ(world.open_joins[0]->asked.port_gid.raw[15], 0x77);
}

TEST_F(IdentityTest, limited_members_pkey_is_used_as_a_full_members)
{
    world.stop();
    world.ca.pkey = 0x0001;
    world.start();
    EXPECT_EQ(interface().identity.pkey().value(), 0x8001);
    EXPECT_EQ(HwAddr::from(world.dev().broadcast.data()).gid(), broadcast_gid(PKey(0x8001)));
}

TEST_F(IdentityTest, child_can_be_created_with_its_own_guid)
{
    world.rtnl = true;
    const auto make = [&](const HwAddr& address) -> Interface& {
        auto* dev = shim_helper_alloc_child_netdev(&world.ca, 1, &world.dev(), "given");
        dev->address_given = true;
        std::memcpy(dev->address.data(), address.bytes, HwAddr::size);
        EXPECT_TRUE(interface().children.adopt(kernel::make_owned<Interface>(dev, interface(), PKey(0x8001))).ok());
        return Interface::of(dev);
    };
    HwAddr address = HwAddr::from(world.dev().address.data());
    address.bytes[19] = 0x66;
    world.ca.gids.push_back(with_guid(world.ca.gid, 0x66));
    EXPECT_EQ(make(address).identity.gid().bytes[15], 0x66);
    // A GUID that the port does not have.
    HwAddr made_up = address;
    std::memset(made_up.bytes + 12, 0x5a, 8);
    EXPECT_EQ(make(made_up).identity.gid(), interface().identity.gid());
    EXPECT_FALSE(world.log.empty());
    EXPECT_EQ(Gid::from(world.netdevs.back()->address.data() + 4), interface().identity.gid());
    world.rtnl = false;
}

// The query of the HCA fails, but ib_core has the GID.
TEST_F(IdentityTest, cached_gid_is_used_if_the_hcas_query_fails)
{
    world.stop();
    world.refused = "ib_ask_gid";
    world.start();
    EXPECT_EQ(interface().identity.gid(), Gid::from(world.ca.gid));
    world.run_work();
    world.rtnl = true;
    auto* dev = shim_helper_alloc_child_netdev(&world.ca, 1, &world.dev(), "given");
    HwAddr address = HwAddr::from(world.dev().address.data());
    address.bytes[19] = 0x66;
    world.ca.gids.push_back(with_guid(world.ca.gid, 0x66));
    dev->address_given = true;
    std::memcpy(dev->address.data(), address.bytes, HwAddr::size);
    EXPECT_TRUE(interface().children.adopt(kernel::make_owned<Interface>(dev, interface(), PKey(0x8001))).ok());
    EXPECT_EQ(Interface::of(dev).identity.gid().bytes[15], 0x66);
    world.rtnl = false;
    world.refused.clear();
}

TEST_F(IdentityTest, unreadable_guid_is_read_later)
{
    world.stop();
    world.refused = "ib_query_gid";
    world.start();
    world.run_work();
    Interface& while_unread = child(0x8001);
    world.refused.clear();
    Interface& afterwards = child(0x8002);
    EXPECT_EQ(afterwards.identity.gid(), Gid::from(world.ca.gid)) << "its parent has none yet";
    world.advance(500);
    EXPECT_EQ(interface().identity.gid(), Gid::from(world.ca.gid));
    EXPECT_EQ(while_unread.identity.gid(), Gid::from(world.ca.gid));
    EXPECT_EQ(afterwards.identity.gid(), Gid::from(world.ca.gid));
}

TEST_F(IdentityTest, gid_is_awaited_while_its_table_is_updated)
{
    world.run_work();
    const auto warnings = world.log.size();
    const auto heavy = [this] { return std::count(world.trace.begin(), world.trace.end(), "flush heavy"); };
    const auto before = heavy();
    world.ca.gid.raw[0] = 0xfd;
    world.ca.updating_gid = 3;
    reregister();
    EXPECT_EQ(interface().identity.gid(), Gid::from(world.ca.gid));
    world.ca.updating_gid = 3;
    EXPECT_EQ(set_guid(world.dev(), 0x77), 0);
    world.advance(500);
    EXPECT_EQ(heavy(), before) << "the reading did not fail";
    EXPECT_EQ(world.log.size(), warnings);
}

TEST_F(IdentityTest, gid_is_awaited_on_kernels_that_call_an_absent_entry_invalid)
{
    world.ca.absent_gid = -22;
    world.ca.updating_gid = 3;
    EXPECT_EQ(set_guid(world.dev(), 0x77), 0);
}

TEST_F(IdentityTest, missing_gid_is_an_error_after_a_time)
{
    world.ca.updating_gid = 1000;
    EXPECT_EQ(set_guid(world.dev(), 0x77), -2);
    EXPECT_GE(world.ca.updating_gid, 900U) << "the table was read too often";
    ASSERT_FALSE(world.log.empty());
    EXPECT_EQ(world.log.back(), "failed to read %s of port %u, error %d");
}

TEST_F(IdentityTest, guid_is_refused_while_the_gid_table_is_unreadable)
{
    const Gid before = interface().identity.gid();
    world.refused = "ib_query_gid";
    EXPECT_EQ(set_guid(world.dev(), 0x77), -5);
    world.refused.clear();
    EXPECT_EQ(interface().identity.gid(), before);
    reregister();
    EXPECT_EQ(interface().identity.gid(), before);
}

TEST_F(IdentityTest, parent_dispatches_an_unreported_gid_change)
{
    Interface& blue = child(0x8001);
    world.ca.silent = true;
    world.ca.gid.raw[0] = 0xfd;
    reregister();
    EXPECT_EQ(world.ca.gid_reports, 1U);
    world.advance(110);
    EXPECT_EQ(interface().identity.gid(), Gid::from(world.ca.gid));
    EXPECT_EQ(blue.identity.gid(), Gid::from(world.ca.gid));
    EXPECT_EQ(world.ca.gid_reports, 1U);
}

TEST_F(IdentityTest, interface_is_found_by_pkey_and_gid)
{
    child(0x8001);
    net_device* const blue = world.netdevs.back();
    const Gid own = interface().identity.gid(), other = gid(9);
    EXPECT_EQ(find(0xffff, nullptr, nullptr), &world.dev());
    EXPECT_EQ(find(0xffff, &own, nullptr), &world.dev());
    EXPECT_EQ(find(0x8001, &own, nullptr), blue);
    EXPECT_EQ(blue->holds, 1U);
    EXPECT_EQ(find(0xffff, &other, nullptr), nullptr);
    EXPECT_EQ(find(0x8055, &own, nullptr), nullptr);
    EXPECT_EQ(ipoib_find_netdev(world.state, 2, 0xffff, nullptr, nullptr), nullptr);
}

TEST_F(IdentityTest, interface_without_its_pkey_is_not_found)
{
    Interface& blue = child(0x8001);
    world.pkeys_found = {0xffff};
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    ASSERT_FALSE(blue.identity.has_pkey());
    EXPECT_EQ(find(0xffff, nullptr, nullptr), &world.dev());
    EXPECT_EQ(find(0x8001, nullptr, nullptr), nullptr);
}

// The RDMA core has the table, and rdma_cm asks with each REQ that comes to the HCA.
TEST_F(IdentityTest, interface_lookup_does_not_query_the_hca)
{
    const unsigned int before = world.pkey_queries;
    EXPECT_EQ(find(0xffff, nullptr, nullptr), &world.dev());
    EXPECT_EQ(find(0x8055, nullptr, nullptr), nullptr);
    EXPECT_EQ(world.pkey_queries, before);
}

TEST_F(IdentityTest, ip_address_selects_among_several_interfaces)
{
    child(0x8001);
    world.rtnl = true;
    auto* dev = shim_helper_alloc_child_netdev(&world.ca, 1, &world.dev(), "two");
    EXPECT_TRUE(interface().children.adopt(kernel::make_owned<Interface>(dev, interface(), PKey(0x8001))).ok());
    world.rtnl = false;
    const sockaddr first_ip{1}, second_ip{2}, neither{3};
    world.netdevs[1]->ip = &first_ip;
    world.netdevs[2]->ip = &second_ip;
    EXPECT_EQ(find(0x8001, nullptr, &first_ip), world.netdevs[1]);
    EXPECT_FALSE(logged("duplicate IP address detected"));
    EXPECT_EQ(find(0x8001, nullptr, &second_ip), world.netdevs[2]);
    EXPECT_EQ(find(0x8001, nullptr, &neither), nullptr);
    EXPECT_NE(find(0x8001, nullptr, nullptr), nullptr);
    // A single interface with the P_Key is found whatever its addresses.
    EXPECT_EQ(find(0xffff, nullptr, &neither), &world.dev());
    world.netdevs[2]->ip = &first_ip;
    EXPECT_EQ(find(0x8001, nullptr, &first_ip), world.netdevs[1]);
    EXPECT_TRUE(logged("duplicate IP address detected"));
}

} // namespace
} // namespace ipoib
