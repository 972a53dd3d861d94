// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Status: 0 or a negative errno. Result<T>: a T or a negative errno. TRY: the value, or a return from the function.
#pragma once
#include <utility>

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
    connection_reset = -SHIM_ECONNRESET,
    try_again = -SHIM_EAGAIN,
};

class [[nodiscard]] Status {
public:
    constexpr Status() = default;
    // NOLINTNEXTLINE(google-explicit-constructor): what the kernel returns is a Status.
    constexpr Status(int code) : code_(code) {}
    constexpr bool ok() const { return code_ == 0; }
    constexpr int code() const { return code_; }
    // For TRY, as those of Result.
    constexpr Status status() const { return *this; }
    constexpr void take() const {}

private:
    int code_ = 0;
};

// A T, or the negative errno for which there is none. T is empty by default, as pointers and owners are.
template <class T>
class [[nodiscard]] Result {
public:
    // NOLINTBEGIN(google-explicit-constructor): a function returns its value, or an error, as a Result.
    Result(T value) : value_(std::move(value)) {}
    Result(Status error) : status_(error) {}
    Result(Errno error) : status_(error) {}
    // NOLINTEND(google-explicit-constructor)
    bool ok() const { return status_.ok(); }
    Status status() const { return status_; }
    // Moves the value out; the empty T if there is none.
    T take() { return std::move(value_); }

private:
    Status status_;
    T value_{};
};

// The operand of TRY: a kernel function's int is a Status.
inline Status as_result(Status status) { return status; }
template <class T>
Result<T> as_result(Result<T> result)
{
    return result;
}

} // namespace kernel

// Returns an error from the calling function; otherwise yields the value of a Result.
#define TRY(expression)                                                                                                \
    ({                                                                                                                 \
        auto try_result = ::kernel::as_result(expression);                                                             \
        if (!try_result.ok())                                                                                          \
            return try_result.status();                                                                                \
        try_result.take();                                                                                             \
    })
