// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Fixture of interface tests: an interface that is not open yet.
#pragma once

#include "driver_test.hpp"

namespace ipoib {

using InterfaceTest = DriverTest;

} // namespace ipoib
