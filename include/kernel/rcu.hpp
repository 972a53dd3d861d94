// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// RCU read sections.
#pragma once
#include <shim/sync.h>

namespace kernel {

class [[nodiscard]] RcuGuard {
public:
    RcuGuard() { shim_rcu_read_lock(); }
    ~RcuGuard() { shim_rcu_read_unlock(); }
    RcuGuard(const RcuGuard&) = delete;
    RcuGuard& operator=(const RcuGuard&) = delete;
};

} // namespace kernel
