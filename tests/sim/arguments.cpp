// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "arguments.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <getopt.h>
#include <stdexcept>
#include <string>

namespace sim {

namespace {

constexpr const char* usage = R"(usage: simulator [OPTION VALUE]...
Runs the driver on a simulated kernel and fabric; one seed determines a run.
  --seeds N     number of seeds (200)
  --first N     first seed (1)
  --seed N      this seed alone, with all events printed
  --hours H     simulated hours of a seed (1)
  --faults LIST the seed's faults with these numbers alone: 3,17; none: no fault
  --salt N      other schedules of the same seeds (0)
  --jobs N      processes (1)
  --minutes N   end after this time (0: when all seeds have run)
  --stop 1      end after the first failure
  --shrink 0    do not look for a shorter run that fails
  --nodes N     measure a fabric of N nodes without faults instead
  --peers N     peers of each of these nodes (1)
  --sa-us N     time that its SA takes for a request, in us (40)
)";

enum Option : int {
    seeds = 1,
    first,
    seed,
    hours,
    faults,
    salt,
    jobs,
    minutes,
    stop,
    shrink,
    nodes,
    peers,
    sa_us,
    help
};

constexpr option options[] = {{"seeds", required_argument, nullptr, seeds},
                              {"first", required_argument, nullptr, first},
                              {"seed", required_argument, nullptr, seed},
                              {"hours", required_argument, nullptr, hours},
                              {"faults", required_argument, nullptr, faults},
                              {"salt", required_argument, nullptr, salt},
                              {"jobs", required_argument, nullptr, jobs},
                              {"minutes", required_argument, nullptr, minutes},
                              {"stop", required_argument, nullptr, stop},
                              {"shrink", required_argument, nullptr, shrink},
                              {"nodes", required_argument, nullptr, nodes},
                              {"peers", required_argument, nullptr, peers},
                              {"sa-us", required_argument, nullptr, sa_us},
                              {"help", no_argument, nullptr, help},
                              {}};

[[noreturn]] void refuse(const std::string& why)
{
    std::fprintf(stderr, "%s%s", why.c_str(), usage);
    std::exit(2);
}

template <class Number = std::uint64_t>
Number number(const std::string& text)
{
    Number value{};
    const char* const end = text.data() + text.size();
    if (const auto [at, error] = std::from_chars(text.data(), end, value); error != std::errc() || at != end)
        throw std::invalid_argument(text);
    return value;
}

void select_faults(Options& options, const std::string& list)
{
    options.some_only = true;
    for (std::size_t at = 0; list != "none" && at < list.size();) {
        const std::size_t comma = std::min(list.find(',', at), list.size());
        options.only.insert(number(list.substr(at, comma - at)));
        at = comma + 1;
    }
}

void set(Arguments& arguments, int name, const std::string& value)
{
    switch (name) {
    case seed:
        arguments.single = true;
        [[fallthrough]];
    case first:
        arguments.first = number(value);
        break;
    case seeds:
        arguments.seeds = number(value);
        break;
    case hours:
        arguments.options.hours = number<double>(value);
        if (!(arguments.options.hours > 0 && arguments.options.hours < 1e6))
            throw std::invalid_argument(value);
        break;
    case faults:
        select_faults(arguments.options, value);
        break;
    case salt:
        arguments.options.salt = number(value);
        break;
    case jobs:
        arguments.jobs = number<unsigned int>(value);
        break;
    case minutes:
        arguments.minutes = number<unsigned int>(value);
        break;
    case stop:
        arguments.stop = number(value);
        break;
    case shrink:
        arguments.shrink = number(value);
        break;
    case nodes:
        arguments.scale.nodes = number<unsigned int>(value);
        break;
    case peers:
        arguments.scale.peers = number<unsigned int>(value);
        break;
    case sa_us:
        arguments.scale.service = number(value) * microsecond;
        break;
    }
}

} // namespace

Arguments read_arguments(int count, char** words)
{
    Arguments arguments;
    for (int name; (name = getopt_long(count, words, "", options, nullptr)) != -1;) {
        if (name == help) {
            std::fputs(usage, stdout);
            std::exit(0);
        }
        // getopt_long() has said what is wrong.
        if (name == '?')
            refuse("");
        try {
            if (*optarg)
                set(arguments, name, optarg);
        } catch (const std::logic_error&) {
            refuse(std::string("not a number: ") + optarg + "\n");
        }
    }
    if (optind < count)
        refuse(std::string("not an option: ") + words[optind] + "\n");
    return arguments;
}

} // namespace sim
