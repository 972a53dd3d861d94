// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Start of the module and arrival of an HCA: parameters out of range, and requests that the kernel refuses, after which
// nothing is left.
#include "driver_test.hpp"

namespace ipoib {
namespace {

class ModuleTest : public testing::Test {
protected:
    void refuse(const char* call, unsigned int granted = 0)
    {
        world.refused = call;
        world.granted = granted;
    }
    void is_started_without_interface()
    {
        world.start();
        EXPECT_TRUE(world.netdevs.empty());
        EXPECT_EQ(world.state, nullptr);
        world.stop();
        EXPECT_TRUE(world.memory.empty());
        EXPECT_EQ(world.work_queues, 0U);
    }
    World world;
};

TEST_F(ModuleTest, failed_start_leaves_nothing_registered)
{
    // For work queues, the second creation fails.
    for (const char* call : {"workqueue_create", "debugfs", "link", "client"}) {
        SCOPED_TRACE(call);
        refuse(call, std::strcmp(call, "workqueue_create") == 0);
        EXPECT_EQ(ipoib_start(), -12);
        EXPECT_TRUE(world.registered.empty());
        EXPECT_EQ(world.work_queues, 0U);
    }
    refuse("");
    world.start();
    EXPECT_EQ(world.netdevs.size(), 1U);
    world.stop();
}

TEST_F(ModuleTest, hca_without_infiniband_ports_gets_no_interface)
{
    world.ca.infiniband = false;
    is_started_without_interface();
}

TEST_F(ModuleTest, failed_interface_creation_leaks_nothing)
{
    // The module itself has two work queues.
    for (const auto& [call, granted] : {std::pair{"netdev_create", 0U},
                                        {"workqueue_create", 2U},
                                        {"hash_init", 0U},
                                        {"hash_init", 1U},
                                        {"hash_init", 2U},
                                        {"pd_create", 0U},
                                        {"cq_create", 0U},
                                        {"cq_create", 1U},
                                        {"ib_query_port", 0U}}) {
        SCOPED_TRACE(call);
        refuse(call, granted);
        is_started_without_interface();
    }
}

TEST_F(ModuleTest, failed_hca_creation_leaks_nothing)
{
    for (int nth = 1; nth < 6; ++nth) {
        SCOPED_TRACE(nth);
        world.fail_allocation = nth;
        is_started_without_interface();
        EXPECT_EQ(world.fail_allocation, 0);
    }
}

TEST(Module, parameters_out_of_range_are_clamped)
{
    World world;
    shim_parameters.send_queue_size = 1;
    shim_parameters.recv_queue_size = 100000;
    shim_parameters.max_nonsrq_conn_qp = -1;
    shim_parameters.ipoib_enhanced = 2;
    world.start();
    EXPECT_EQ(shim_parameters.send_queue_size, 128);
    EXPECT_EQ(shim_parameters.recv_queue_size, 8192);
    EXPECT_EQ(shim_parameters.max_nonsrq_conn_qp, 0);
    EXPECT_EQ(shim_parameters.ipoib_enhanced, 1);
    world.stop();
}

} // namespace
} // namespace ipoib
