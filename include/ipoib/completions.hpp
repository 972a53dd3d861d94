// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Completions taken from a queue at a time. Part of a poll's object, not on the stack, where the compiler zeroes
// them in each call (CONFIG_INIT_STACK_ALL_ZERO).
#pragma once

#include <kernel/opaque.hpp>
#include <shim/cq.h>

namespace ipoib {

class Completions {
public:
    static constexpr int max = 16;
    shim_wc* first() { return storage_.get(); }
    const shim_wc* at(int index) { return shim_wc_at(first(), index); }

private:
    kernel::Opaque<shim_wc, max> storage_{};
};

} // namespace ipoib
