// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "arguments.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <getopt.h>
#include <stdexcept>
#include <string>
#include <vector>

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

[[noreturn]] void refuse(const std::string& why)
{
    std::fprintf(stderr, "%s%s", why.c_str(), usage);
    std::exit(2);
}

template <class Number>
void read(Number& number, const std::string& text)
{
    const char* const end = text.data() + text.size();
    if (const auto [at, error] = std::from_chars(text.data(), end, number); error != std::errc() || at != end)
        throw std::invalid_argument(text);
}

void read(bool& flag, const std::string& text)
{
    unsigned int number;
    read(number, text);
    flag = number != 0;
}

void read_hours(double& hours, const std::string& text)
{
    read(hours, text);
    if (!(hours > 0 && hours < 1e6))
        throw std::invalid_argument(text);
}

void read_seed(Arguments& arguments, const std::string& text)
{
    arguments.single = true;
    read(arguments.first, text);
}

void read_service(Time& service, const std::string& text)
{
    read(service, text);
    service *= microsecond;
}

void read_faults(Options& options, const std::string& list)
{
    options.some_only = true;
    for (std::size_t at = 0; list != "none" && at < list.size();) {
        const std::size_t comma = std::min(list.find(',', at), list.size());
        std::size_t fault;
        read(fault, list.substr(at, comma - at));
        options.only.insert(fault);
        at = comma + 1;
    }
}

constexpr struct {
    const char* name;
    void (*read)(Arguments& arguments, const std::string& text);
} known[] = {
    {"seeds", [](Arguments& all, const std::string& text) { read(all.seeds, text); }},
    {"first", [](Arguments& all, const std::string& text) { read(all.first, text); }},
    {"seed", read_seed},
    {"hours", [](Arguments& all, const std::string& text) { read_hours(all.options.hours, text); }},
    {"faults", [](Arguments& all, const std::string& text) { read_faults(all.options, text); }},
    {"salt", [](Arguments& all, const std::string& text) { read(all.options.salt, text); }},
    {"jobs", [](Arguments& all, const std::string& text) { read(all.jobs, text); }},
    {"minutes", [](Arguments& all, const std::string& text) { read(all.minutes, text); }},
    {"stop", [](Arguments& all, const std::string& text) { read(all.stop, text); }},
    {"shrink", [](Arguments& all, const std::string& text) { read(all.shrink, text); }},
    {"nodes", [](Arguments& all, const std::string& text) { read(all.scale.nodes, text); }},
    {"peers", [](Arguments& all, const std::string& text) { read(all.scale.peers, text); }},
    {"sa-us", [](Arguments& all, const std::string& text) { read_service(all.scale.service, text); }},
};

} // namespace

Arguments read_arguments(int count, char** words)
{
    std::vector<option> options;
    for (const auto& one : known)
        options.push_back({one.name, required_argument, nullptr, 0});
    options.push_back({"help", no_argument, nullptr, 'h'});
    options.push_back({});
    Arguments arguments;
    int index;
    for (int found; (found = getopt_long(count, words, "", options.data(), &index)) != -1;) {
        if (found == 'h') {
            std::fputs(usage, stdout);
            std::exit(0);
        }
        // getopt_long() has said what is wrong.
        if (found == '?')
            refuse("");
        try {
            if (*optarg)
                known[index].read(arguments, optarg);
        } catch (const std::logic_error&) {
            refuse(std::string("not a number: ") + optarg + "\n");
        }
    }
    if (optind < count)
        refuse(std::string("not an option: ") + words[optind] + "\n");
    return arguments;
}

} // namespace sim
