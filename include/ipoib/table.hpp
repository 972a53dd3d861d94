// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the tables of paths and of groups have in common when debugfs shows them: the order of GIDs, and their text.
#pragma once
#include <ipoib/address.hpp>
#include <kernel/list.hpp>
#include <shim/debugfs.h>

namespace ipoib {

// The element with the lowest key of all, or of those behind a key; nullptr: none. Under the list's lock.
template <class T>
T* next_in_order(kernel::List<T>& list, const Gid* before)
{
    T* next = nullptr;
    for (T& one : list)
        if ((!before || *before < one.key()) && (!next || one.key() < next->key()))
            next = &one;
    return next;
}

inline void show_gid(seq_file* file, const Gid& gid)
{
    shim_seq_printf(file, "GID: %x:%x:%x:%x:%x:%x:%x:%x\n", gid.group(0), gid.group(1), gid.group(2), gid.group(3),
                    gid.group(4), gid.group(5), gid.group(6), gid.group(7));
}

} // namespace ipoib
