// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Kernel calls that return an object or an errno in one pointer.
#pragma once
#include <kernel/result.hpp>
#include <shim/lib.h>

namespace kernel {

// Returns the error in a pointer as a Status, and sets the pointer to nullptr in that case.
template <class T>
Status check(T*& pointer)
{
    const int error = shim_ptr_err_or_zero(pointer);
    if (error)
        pointer = nullptr;
    return error;
}

} // namespace kernel
