// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Fuzz targets: each runs one input from the driver's start to its end. README.md says what each covers.
#pragma once
#include "input.hpp"

namespace ipoib::fuzz {

void frame(Input& input);
void cm(Input& input);
void sa(Input& input);
void netlink(Input& input);
void sysfs(Input& input);
void operations(Input& input);

inline constexpr struct Target {
    const char* name;
    void (*play)(Input& input);
} targets[] = {{"frame", frame},     {"cm", cm},       {"sa", sa},
               {"netlink", netlink}, {"sysfs", sysfs}, {"operations", operations}};

} // namespace ipoib::fuzz
