// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Failure as a value: a Status is 0 or a negative errno that nobody may ignore.
#pragma once

namespace kernel {

enum Errno : int {
    not_permitted = -1,
    no_device = -19,
    no_memory = -12,
    busy = -16,
    invalid = -22,
    not_unique = -76,
    not_supported = -95,
    timed_out = -110,
    interrupted = -4,
    net_reset = -102,
    try_again = -11,
    network_down = -100,
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

// Passes a failure on to the caller; a success continues with the next line.
#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        if (::kernel::Status try_status = (expression); !try_status.ok())                                              \
            return try_status;                                                                                         \
    } while (0)
