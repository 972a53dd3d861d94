// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The targets as a libFuzzer program, which runs the target named by argv[0]. A failed expectation of the fakes ends
// the program, so that the input is kept.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <gtest/gtest.h>

#include "targets.hpp"

namespace {

const ipoib::fuzz::Target* target;

class EndAtFailure : public testing::EmptyTestEventListener {
    void OnTestPartResult(const testing::TestPartResult& result) override
    {
        if (!result.failed())
            return;
        std::fprintf(stderr, "FAILED: %s:%d: %s\n", result.file_name(), result.line_number(), result.message());
        std::abort();
    }
};

} // namespace

// Short stacks of allocations for speed; ASAN_OPTIONS=malloc_context_size=30 restores them for a finding.
extern "C" const char* __asan_default_options() { return "quarantine_size_mb=8:malloc_context_size=3"; }

extern "C" int LLVMFuzzerInitialize(int*, char*** arguments)
{
    const char* const slash = std::strrchr(**arguments, '/');
    const char* const name = slash ? slash + 1 : **arguments;
    for (const auto& one : ipoib::fuzz::targets)
        if (std::strcmp(one.name, name) == 0)
            target = &one;
    if (!target) {
        std::fprintf(stderr, "%s is no target\n", name);
        std::exit(1);
    }
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new EndAtFailure);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count)
{
    ipoib::fuzz::Input input(bytes, count);
    target->play(input);
    return 0;
}
