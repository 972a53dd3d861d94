// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Replays each kept input without a fuzzer, as a regression test. Part of the unit tests.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "targets.hpp"

namespace ipoib::fuzz {
namespace {

class Corpus : public testing::TestWithParam<Target> {};

TEST_P(Corpus, replays_without_a_finding)
{
    unsigned int played = 0;
    for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(CORPUS) / GetParam().name)) {
        SCOPED_TRACE(file.path());
        std::ifstream stream(file.path(), std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
        Input input(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        GetParam().play(input);
        ++played;
    }
    EXPECT_GT(played, 0U);
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(targets),
                         [](const auto& info) { return std::string(info.param.name); });

} // namespace
} // namespace ipoib::fuzz
