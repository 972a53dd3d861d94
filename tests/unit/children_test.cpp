// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// P_Key children, created through sysfs and rtnetlink, with equal behaviour afterwards; refused requests and their
// messages.
#include "driver_test.hpp"

namespace ipoib {
namespace {

class ChildrenTest : public DriverTest {
protected:
    void SetUp() override
    {
        DriverTest::SetUp();
        world.pkeys_found = {0xffff, 0x8001, 0x0002};
    }
    long write(ipoib_attribute attribute, const char* text)
    {
        return world.store(&world.dev(), attribute, text, std::strlen(text));
    }
    long create(const char* text) { return write(IPOIB_ATTRIBUTE_CREATE_CHILD, text); }
    long remove(const char* text) { return write(IPOIB_ATTRIBUTE_DELETE_CHILD, text); }
    static std::string read(net_device* dev, ipoib_attribute attribute)
    {
        char text[4096];
        const long bytes = ipoib_attribute_show(dev, attribute, text);
        return bytes > 0 ? std::string(text, static_cast<std::size_t>(bytes)) : "";
    }
    // Creates a netdev as the kernel does for `ip link add`.
    int add_link(const shim_link_request& request, const char* name = "child")
    {
        auto* dev = new net_device;
        dev->name = name;
        dev->mtu = initial_mtu;
        world.rtnl = true;
        world.netdevs.push_back(dev);
        const int error = ipoib_newlink(dev, &request, nullptr);
        if (error && !dev->registered && std::erase(world.netdevs, dev))
            delete dev;
        shim_rtnl_unlock();
        return error;
    }
    shim_link_request request(std::uint16_t pkey)
    {
        return {.link = &world.dev(),
                .has_link = true,
                .has_pkey = true,
                .has_mode = false,
                .has_umcast = false,
                .pkey = pkey,
                .mode = 0,
                .umcast = 0};
    }
    net_device* child(std::size_t n = 0) { return world.netdevs.at(n + 1); }
    std::size_t children() const { return world.netdevs.size() - 1; }
    void bring(net_device* dev, bool up)
    {
        world.rtnl = true;
        shim_dev_change_flags(dev, up);
        shim_rtnl_unlock();
        world.run_work();
    }
    unsigned int initial_mtu = 0;
};

TEST_F(ChildrenTest, interfaces_of_an_hca_are_spread_over_its_completion_vectors)
{
    using Vectors = std::pair<unsigned int, unsigned int>;
    const auto vectors_of = [](const net_device* dev) {
        const Interface& one = Interface::of(dev);
        return Vectors(one.rx[0].cq()->vector, one.tx[0].cq()->vector);
    };
    world.stop();
    world.ca.comp_vectors = 4;
    world.start();
    const unsigned int first = vectors_of(&world.dev()).first;
    for (const std::uint16_t pkey : {0x8001, 0x8002, 0x8001, 0x8002, 0x8001})
        ASSERT_EQ(add_link(request(pkey)), 0);
    for (unsigned int i = 0; i < children(); ++i) {
        const unsigned int receives = (first + i + 1) % 4;
        EXPECT_EQ(vectors_of(child(i)), Vectors(receives, (receives + 2) % 4)) << i;
    }
    // Changed rings keep their vectors.
    const Vectors before = vectors_of(child(1));
    world.rtnl = true;
    EXPECT_TRUE(Interface::of(child(1)).settings.set_ring_sizes({256, 256}).ok());
    world.rtnl = false;
    EXPECT_EQ(vectors_of(child(1)), before);
}

// The kernel frees a netdev without RTNL: meanwhile the HCA may be removed, whose driver's rdma_netdev the child uses.
// The HCA's removal waits until the parent has no reference.
TEST_F(ChildrenTest, parent_is_held_until_the_child_is_freed)
{
    ASSERT_EQ(add_link(request(0x8001)), 0);
    EXPECT_EQ(world.dev().holds, 1U);
    world.rtnl = true;
    ipoib_dellink(child(), nullptr);
    EXPECT_EQ(children(), 0U);
    EXPECT_EQ(world.dev().holds, 1U);
    shim_rtnl_unlock();
    EXPECT_EQ(world.dev().holds, 0U);
    world.refused = "workqueue_create";
    EXPECT_NE(add_link(request(0x8001)), 0);
    EXPECT_EQ(world.dev().holds, 0U);
}

TEST_F(ChildrenTest, one_completion_vector_serves_all_interfaces)
{
    for (const unsigned int vectors : {1U, 0U}) {
        world.ca.comp_vectors = vectors;
        ASSERT_EQ(add_link(request(0x8001)), 0);
        EXPECT_EQ(Interface::of(child(children() - 1)).rx[0].cq()->vector, 0U);
        EXPECT_EQ(Interface::of(child(children() - 1)).tx[0].cq()->vector, 0U);
    }
}

TEST_F(ChildrenTest, first_completion_vector_follows_those_of_earlier_ports)
{
    world.stop();
    world.ca.comp_vectors = 64;
    world.start();
    const unsigned int before = interface().rx[0].cq()->vector;
    ASSERT_EQ(add_link(request(0x8001)), 0);
    world.stop();
    world.start();
    EXPECT_EQ(interface().rx[0].cq()->vector, (before + 1) % 64);
}

TEST_F(ChildrenTest, create_child_names_the_child_after_the_written_pkey)
{
    EXPECT_EQ(create("0x8001\n"), 7);
    EXPECT_EQ(create("2\n"), 2);
    ASSERT_EQ(children(), 2U);
    EXPECT_EQ(child(0)->name, "ib0.8001");
    EXPECT_EQ(child(1)->name, "ib0.0002");
    EXPECT_EQ(read(child(1), IPOIB_ATTRIBUTE_PKEY), "0x8002\n");
    EXPECT_EQ(read(child(1), IPOIB_ATTRIBUTE_PARENT), "ib0\n");
    EXPECT_EQ(child(0)->broadcast[8], 0x80);
    EXPECT_EQ(child(0)->broadcast[9], 0x01);
}

TEST_F(ChildrenTest, invalid_and_duplicate_pkeys_are_refused)
{
    for (const char* wrong : {"0", "0x8000", "-1", "65536", "0x18001"})
        EXPECT_EQ(create(wrong), -22) << wrong;
    for (const char* wrong : {"", "x", "key"})
        EXPECT_EQ(create(wrong), -22) << wrong;
    EXPECT_EQ(create("0xffff"), -76) << "the parent's own";
    EXPECT_EQ(create("0x7fff"), -76) << "in the same partition";
    EXPECT_EQ(create("0x8001"), 6);
    EXPECT_EQ(create("0x8001"), -76);
    EXPECT_EQ(create("1"), -76) << "1 and 0x8001 are one partition";
    world.administrator = false;
    EXPECT_EQ(create("0x8002"), -1);
    EXPECT_EQ(remove("0x8001"), -1);
    world.administrator = true;
    EXPECT_EQ(children(), 1U);
}

TEST_F(ChildrenTest, delete_child_deletes_only_children_of_create_child)
{
    EXPECT_EQ(create("0x8001"), 6);
    ASSERT_EQ(add_link(request(0x8002)), 0);
    EXPECT_EQ(remove("0x8003"), -19);
    EXPECT_EQ(remove("0x8002"), -19) << "made by rtnetlink";
    EXPECT_EQ(remove("0x10000"), -22);
    EXPECT_EQ(remove("1"), 1);
    EXPECT_EQ(children(), 1U);
}

TEST_F(ChildrenTest, child_has_no_children)
{
    EXPECT_EQ(create("0x8001"), 6);
    for (const auto attribute : {IPOIB_ATTRIBUTE_CREATE_CHILD, IPOIB_ATTRIBUTE_DELETE_CHILD})
        EXPECT_EQ(world.store(child(), attribute, "2", 1), -22);
    EXPECT_EQ(children(), 1U);
}

TEST_F(ChildrenTest, sysfs_files_match_parent_or_child)
{
    EXPECT_EQ(create("0x8001"), 6);
    ASSERT_EQ(add_link(request(0x8002)), 0);
    EXPECT_TRUE(child(0)->child);
    EXPECT_TRUE(child(1)->child);
    EXPECT_FALSE(world.dev().child);
}

TEST_F(ChildrenTest, rtnetlink_creates_several_children_of_one_pkey_and_of_the_parents)
{
    ASSERT_EQ(add_link(request(0x8001), "a"), 0);
    ASSERT_EQ(add_link(request(0x8001), "b"), 0);
    auto same = request(0);
    same.has_pkey = false;
    ASSERT_EQ(add_link(same, "c"), 0);
    shim_link_info info;
    ipoib_link_info(child(2), &info);
    EXPECT_EQ(info.pkey, 0xffff);
    EXPECT_EQ(ipoib_link_parent(child(2)), &world.dev());
    EXPECT_EQ(ipoib_link_parent(&world.dev()), &world.dev());
}

TEST_F(ChildrenTest, rtnetlink_errors_have_extack_messages)
{
    auto wrong = request(0x8001);
    wrong.has_link = false;
    EXPECT_EQ(add_link(wrong), -22);
    EXPECT_EQ(world.extack, "an ipoib child needs a parent: link DEVICE");
    wrong = request(0x8001);
    wrong.link = nullptr;
    EXPECT_EQ(add_link(wrong), -19);
    EXPECT_EQ(world.extack, "the parent does not exist");
    for (const std::uint16_t pkey : {0, 0x8000}) {
        EXPECT_EQ(add_link(request(pkey)), -22);
        EXPECT_NE(world.extack.find("is invalid"), std::string::npos);
    }
    net_device other;
    other.name = "bond0";
    other.ours = false;
    wrong = request(0x8001);
    wrong.link = &other;
    EXPECT_EQ(add_link(wrong), -19);
    EXPECT_EQ(world.extack, "bond0 is not an ipoib interface");
    ASSERT_EQ(add_link(request(0x8001)), 0);
    wrong.link = child();
    EXPECT_EQ(add_link(wrong), -22);
    EXPECT_EQ(world.extack, "child is a child itself");
    wrong = request(0x8002);
    wrong.has_mode = true;
    wrong.mode = 2;
    EXPECT_EQ(add_link(wrong), -22);
    EXPECT_EQ(world.extack, "mode 2 is neither datagram (0) nor connected (1)");
    EXPECT_EQ(children(), 1U);
}

TEST_F(ChildrenTest, rtnetlink_sets_and_shows_mode_and_umcast)
{
    auto wanted = request(0x8001);
    wanted.has_mode = wanted.has_umcast = true;
    wanted.mode = wanted.umcast = 1;
    ASSERT_EQ(add_link(wanted), 0);
    shim_link_info info;
    ipoib_link_info(child(), &info);
    EXPECT_EQ(info.pkey, 0x8001);
    EXPECT_EQ(info.mode, 1);
    EXPECT_EQ(info.umcast, 1);
    EXPECT_EQ(child()->mtu, 65520U);
    wanted.umcast = 2;
    world.rtnl = true;
    EXPECT_EQ(ipoib_changelink(child(), &wanted, nullptr), 0);
    world.rtnl = false;
    ipoib_link_info(child(), &info);
    EXPECT_EQ(info.umcast, 1);
    wanted.mode = wanted.umcast = 0;
    // A child keeps its P_Key.
    wanted.pkey = 0x8002;
    world.rtnl = true;
    EXPECT_EQ(ipoib_changelink(child(), &wanted, nullptr), 0);
    wanted.mode = 7;
    EXPECT_EQ(ipoib_changelink(child(), &wanted, nullptr), -22);
    world.rtnl = false;
    ipoib_link_info(child(), &info);
    EXPECT_EQ(info.mode, 0);
    EXPECT_EQ(info.umcast, 0);
    EXPECT_EQ(info.pkey, 0x8001);
}

TEST_F(ChildrenTest, mtu_given_at_creation_is_kept_within_bounds)
{
    initial_mtu = 1500;
    ASSERT_EQ(add_link(request(0x8001), "a"), 0);
    EXPECT_EQ(child(0)->mtu, 1500U);
    initial_mtu = 9000;
    ASSERT_EQ(add_link(request(0x8001), "b"), 0);
    EXPECT_EQ(child(1)->mtu, 4092U);
    initial_mtu = 71;
    ASSERT_EQ(add_link(request(0x8001), "c"), 0);
    EXPECT_EQ(child(2)->mtu, 72U);
}

TEST_F(ChildrenTest, dellink_deletes_children_and_ignores_parents)
{
    ASSERT_EQ(add_link(request(0x8001)), 0);
    world.rtnl = true;
    ipoib_dellink(&world.dev(), nullptr);
    ipoib_dellink(child(), nullptr);
    shim_rtnl_unlock();
    EXPECT_EQ(children(), 0U);
    EXPECT_EQ(world.netdevs.size(), 1U);
}

TEST_F(ChildrenTest, children_go_up_and_down_with_their_parent)
{
    EXPECT_EQ(create("0x8001"), 6);
    open();
    EXPECT_TRUE(child()->up);
    EXPECT_NE(world.join_of(broadcast_gid(PKey(0x8001))), nullptr);
    close();
    EXPECT_FALSE(child()->up);
}

TEST_F(ChildrenTest, child_joins_when_its_pkey_appears_and_leaves_when_the_pkey_goes)
{
    EXPECT_EQ(create("0x8009"), 6);
    bring(child(), true);
    EXPECT_EQ(world.join_of(broadcast_gid(PKey(0x8009))), nullptr);
    EXPECT_EQ(read(child(), IPOIB_ATTRIBUTE_PKEY), "0x8009\n");
    world.pkeys_found.push_back(0x0009);
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    EXPECT_NE(world.join_of(broadcast_gid(PKey(0x8009))), nullptr);
    world.pkeys_found.pop_back();
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    EXPECT_EQ(world.join_of(broadcast_gid(PKey(0x8009))), nullptr);
}

TEST_F(ChildrenTest, pkey_that_moves_in_the_table_restarts_the_queues)
{
    EXPECT_EQ(create("0x8001"), 6);
    bring(child(), true);
    const unsigned int joins = world.join_requests;
    world.pkeys_found = {0xffff, 0x0002, 0x8001};
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    world.run_work();
    EXPECT_GT(world.join_requests, joins);
}

TEST_F(ChildrenTest, children_end_with_their_parent)
{
    EXPECT_EQ(create("0x8001"), 6);
    ASSERT_EQ(add_link(request(0x8001)), 0);
    open();
    world.event(SHIM_IB_EVENT_PKEY_CHANGE);
    // TearDown removes the HCA; the World checks that nothing is left.
}

TEST_F(ChildrenTest, failed_child_creation_leaks_nothing)
{
    int nth = 0;
    do {
        world.fail_allocation = ++nth;
        const long created = create("0x8001");
        EXPECT_EQ(created, world.fail_allocation ? 6 : -12) << nth;
        EXPECT_EQ(children(), created > 0 ? 1U : 0U) << nth;
    } while (world.fail_allocation == 0);
    EXPECT_GT(nth, 5);
    world.fail_allocation = 0;
    EXPECT_EQ(remove("0x8001"), 6);
}

TEST_F(ChildrenTest, umcast_ignores_groups_joined_by_user_space)
{
    EXPECT_EQ(write(IPOIB_ATTRIBUTE_UMCAST, "1\n"), 2);
    EXPECT_EQ(read(&world.dev(), IPOIB_ATTRIBUTE_UMCAST), "1\n");
    open();
    world.known_groups.insert(std::string(reinterpret_cast<const char*>(group(7).bytes), 16));
    set_groups({7, 8});
    EXPECT_EQ(world.join_of(group(7)), nullptr);
    EXPECT_NE(world.join_of(group(8)), nullptr);
    EXPECT_EQ(write(IPOIB_ATTRIBUTE_UMCAST, "nonsense"), 8);
    EXPECT_EQ(read(&world.dev(), IPOIB_ATTRIBUTE_UMCAST), "0\n");
    set_groups({7, 8});
    EXPECT_NE(world.join_of(group(7)), nullptr);
}

TEST_F(ChildrenTest, create_child_fails_without_memory_for_a_netdev)
{
    world.refused = "netdev_create_child";
    EXPECT_EQ(create("0x8001"), -12);
    EXPECT_EQ(children(), 0U);
    world.refused.clear();
    EXPECT_EQ(create("0x8001"), 6);
}

TEST_F(ChildrenTest, work_queued_before_unregister_is_a_no_op)
{
    EXPECT_EQ(create("0x8001"), 6);
    open();
    for (const unsigned int event :
         {SHIM_IB_EVENT_CLIENT_REREGISTER, SHIM_IB_EVENT_LID_CHANGE, SHIM_IB_EVENT_PKEY_CHANGE})
        world.event(event);
    ipoib_ndo_tx_timeout(child(), 0);
    world.rtnl = true;
    ipoib_dellink(child(), nullptr);
    // The lock is released, and taken by another, before the interface ends.
    world.rtnl = false;
    const auto going = std::exchange(world.going, {});
    ASSERT_EQ(going.size(), 1U);
    world.trace.clear();
    world.advance(10);
    EXPECT_EQ(std::count_if(world.trace.begin(), world.trace.end(),
                            [](const std::string& line) { return line.starts_with("flush "); }),
              3)
        << "the parent's alone";
    world.going = going;
}

TEST_F(ChildrenTest, child_deleted_before_its_carrier_comes_leaves_no_work)
{
    ASSERT_EQ(add_link(request(0x8001)), 0);
    bring(child(), true);
    // The work item that brings the carrier waits for RTNL.
    world.rtnl = true;
    world.answer_join(world.join_of(broadcast_gid(PKey(0x8001))));
    world.run_work();
    EXPECT_FALSE(child()->carrier);
    ipoib_dellink(child(), nullptr);
    shim_rtnl_unlock();
    world.run_work();
    EXPECT_EQ(children(), 0U);
}

TEST_F(ChildrenTest, queue_pair_uses_the_index_of_its_pkey)
{
    EXPECT_EQ(create("2"), 1);
    open();
    EXPECT_EQ(world.qp().pkey_index, 0);
    EXPECT_EQ(Interface::of(child()).queues.qp()->pkey_index, 2);
}

TEST_F(ChildrenTest, parent_and_children_are_unregistered_in_one_batch)
{
    ASSERT_EQ(create("0x8001"), 6);
    ASSERT_EQ(add_link(request(0x0002)), 0);
    world.stop();
    EXPECT_EQ(world.batches, std::vector<std::size_t>{3});
    EXPECT_TRUE(world.netdevs.empty());
    world.start();
}

} // namespace
} // namespace ipoib
