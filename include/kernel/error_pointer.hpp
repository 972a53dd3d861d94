// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Kernel calls that return an object or an errno in one pointer.
#pragma once
#include <kernel/result.hpp>
#include <shim/lib.h>

namespace kernel {

// Returns the object, or the error in the pointer.
template <class T>
Result<T*> check(T* pointer)
{
    if (const Status status = shim_ptr_err_or_zero(pointer); !status.ok())
        return status;
    return pointer;
}

} // namespace kernel
