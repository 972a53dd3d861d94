// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Error numbers match the kernel's, which differ between processors; those of sparc are checked as an example.
#include <gtest/gtest.h>

#include <generated/layout.h>

#undef SHIM_EOPNOTSUPP
#undef SHIM_ETIMEDOUT
#undef SHIM_ENETRESET
#undef SHIM_ENOTUNIQ
#define SHIM_EOPNOTSUPP 45
#define SHIM_ETIMEDOUT 60
#define SHIM_ENETRESET 52
#define SHIM_ENOTUNIQ 115

namespace sparc {
#include <kernel/result.hpp>
} // namespace sparc

TEST(Errno, numbers_match_the_kernels)
{
    EXPECT_EQ(sparc::kernel::not_supported, -45);
    EXPECT_EQ(sparc::kernel::timed_out, -60);
    EXPECT_EQ(sparc::kernel::net_reset, -52);
    EXPECT_EQ(sparc::kernel::not_unique, -115);
    EXPECT_EQ(sparc::kernel::no_memory, -12);
}
