// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Fixture of tests of groups.
#pragma once

#include "driver_test.hpp"

namespace ipoib {

class MulticastTest : public DriverTest {
protected:
    // Opens the interface and answers nothing yet.
    void open_only()
    {
        world.rtnl = true;
        ASSERT_EQ(ipoib_ndo_open(&world.dev()), 0);
        world.rtnl = false;
        world.run_work();
    }
};

} // namespace ipoib
