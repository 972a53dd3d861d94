// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A Status is 0 or a negative errno; [[nodiscard]].
#pragma once
#include <generated/layout.h>

namespace kernel {

// The kernel's numbers, which differ between architectures.
enum Errno : int {
    not_permitted = -SHIM_EPERM,
    no_entry = -SHIM_ENOENT,
    no_device = -SHIM_ENODEV,
    no_memory = -SHIM_ENOMEM,
    busy = -SHIM_EBUSY,
    invalid = -SHIM_EINVAL,
    not_unique = -SHIM_ENOTUNIQ,
    not_supported = -SHIM_EOPNOTSUPP,
    timed_out = -SHIM_ETIMEDOUT,
    interrupted = -SHIM_EINTR,
    net_reset = -SHIM_ENETRESET,
    try_again = -SHIM_EAGAIN,
    network_down = -SHIM_ENETDOWN,
};

class [[nodiscard]] Status {
public:
    constexpr Status() = default;
    // NOLINTNEXTLINE(google-explicit-constructor): what the kernel returns is a Status.
    constexpr Status(int code) : code_(code) {}
    constexpr bool ok() const { return code_ == 0; }
    constexpr int code() const { return code_; }

private:
    int code_ = 0;
};

} // namespace kernel

// Returns a failure from the calling function.
#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        if (::kernel::Status try_status = (expression); !try_status.ok())                                              \
            return try_status;                                                                                         \
    } while (0)
