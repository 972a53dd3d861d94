// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Copies of the tables of paths, groups and connections for debugfs, and the text of GIDs there.
#pragma once
#include <algorithm>

#include <ipoib/address.hpp>
#include <kernel/memory.hpp>
#include <shim/debugfs.h>

namespace ipoib {

// Rows are copied in one walk under the table's lock, and put in order and printed without it. CONTEXT: process.
template <class Row>
class Snapshot {
public:
    // Allocates space for rows. False: no memory.
    [[nodiscard]] bool allocate(std::size_t rows)
    {
        room_ = rows;
        return rows == 0 || rows_.allocate(rows);
    }
    // Ignores rows beyond that: they were added to the table after it was counted.
    void add(const Row& row)
    {
        if (used_ < room_)
            rows_[used_++] = row;
    }
    // Sorts by Row::operator<.
    void sort() { std::sort(begin(), end()); }
    Row* begin() const { return used_ ? &rows_[0] : nullptr; }
    Row* end() const { return begin() + used_; }

private:
    kernel::Array<Row> rows_;
    std::size_t room_ = 0, used_ = 0;
};

inline void show_gid(seq_file* file, const Gid& gid)
{
    shim_seq_printf(file, "GID: %x:%x:%x:%x:%x:%x:%x:%x\n", gid.group(0), gid.group(1), gid.group(2), gid.group(3),
                    gid.group(4), gid.group(5), gid.group(6), gid.group(7));
}

} // namespace ipoib
