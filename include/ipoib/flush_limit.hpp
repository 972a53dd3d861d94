// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The time that an HCA is given to complete the work requests of a queue pair in ERROR (IBA 10.3.1).
#pragma once

namespace ipoib {

inline constexpr unsigned int flush_limit_s = 5;

} // namespace ipoib
