// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// path_lock: the lock of an interface's paths, neighbours and connections, for thread-safety attributes.
#pragma once
#include <kernel/lock.hpp>

namespace ipoib {

// Stands for PathTable's lock in classes that PathTable's header depends on. Held through PathTable::Guard.
class TA_CAPABILITY("mutex") PathLock {};
inline PathLock path_lock TA_ACQUIRED_AFTER(kernel::rtnl, kernel::transmit_lock);

} // namespace ipoib
