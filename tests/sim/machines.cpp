// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// include/shim/trace.h.
#include "machines.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "watched.hpp"
#include "world.hpp"

using namespace sim;

namespace {

constexpr unsigned int active = Machines::active, passive = Machines::passive;

// State machines of state-machines.md in the order of enum shim_trace_machine, and the interface's.
constexpr const char* machine_names[] = {"path", "group", "active", "passive", "interface"};
constexpr const char* state_names[][8] = {
    {"unknown", "querying", "known", "stale", "refreshing"},
    {"idle", "joining", "backoff", "joined"},
    {"idle", "wanted", "requested", "established", "recovering", "refused", "closing", "gone"},
    {"accepting", "established", "flushing", "draining", "done"},
    {"closed", "waiting", "starting", "running"},
};
struct Edge {
    unsigned int machine;
    const char *before, *after;
};
constexpr Edge all_edges[] = {
    {0, "unknown", "querying"},      {0, "querying", "known"},       {0, "querying", "unknown"},
    {0, "known", "stale"},           {0, "stale", "refreshing"},     {0, "refreshing", "known"},
    {0, "refreshing", "stale"},      {0, "refreshing", "unknown"},   {1, "idle", "joining"},
    {1, "joining", "joined"},        {1, "joining", "backoff"},      {1, "joining", "idle"},
    {1, "backoff", "joining"},       {1, "joined", "joining"},       {2, "idle", "wanted"},
    {2, "wanted", "requested"},      {2, "wanted", "refused"},       {2, "requested", "established"},
    {2, "requested", "refused"},     {2, "requested", "recovering"}, {2, "established", "recovering"},
    {2, "recovering", "idle"},       {2, "refused", "idle"},         {2, "idle", "closing"},
    {2, "wanted", "closing"},        {2, "requested", "closing"},    {2, "established", "closing"},
    {2, "recovering", "closing"},    {2, "refused", "closing"},      {2, "closing", "gone"},
    {3, "accepting", "established"}, {3, "accepting", "flushing"},   {3, "established", "flushing"},
    {3, "accepting", "draining"},    {3, "established", "draining"}, {3, "flushing", "draining"},
    {3, "flushing", "done"},         {3, "draining", "done"},        {4, "closed", "starting"},
    {4, "closed", "waiting"},        {4, "waiting", "starting"},     {4, "waiting", "closed"},
    {4, "starting", "running"},      {4, "running", "starting"},     {4, "starting", "closed"},
    {4, "running", "closed"},        {4, "starting", "waiting"},     {4, "running", "waiting"},
};

// Longest stay of a connection in a state: the timeouts that state-machines.md names, the 16 times 4.3 s of a REQ or
// REP among them, with a margin for a busy HCA and processor.
struct Limit {
    unsigned int machine;
    const char* state;
    Time longest;
};
constexpr Limit limits[] = {
    {active, "wanted", second},         {active, "requested", 100 * second}, {active, "recovering", 20 * second},
    {active, "refused", 130 * second},  {active, "closing", 20 * second},    {passive, "accepting", 100 * second},
    {passive, "flushing", 20 * second}, {passive, "draining", 20 * second},
};

unsigned int state_of(unsigned int machine, const char* name)
{
    for (unsigned int i = 0; i < 8 && state_names[machine][i]; ++i)
        if (std::strcmp(state_names[machine][i], name) == 0)
            return i;
    fail("%s has a state %s that is not known here", machine_names[machine], name);
}

// 0: none.
Time max_stay(unsigned int machine, const char* state)
{
    for (const Limit& limit : limits)
        if (limit.machine == machine && std::strcmp(limit.state, state) == 0)
            return limit.longest;
    return 0;
}

} // namespace

namespace sim {

void Machines::step(const net_device* dev, unsigned int machine, const std::uint8_t* gid, const char* before,
                    const char* after)
{
    const unsigned int from = state_of(machine, before), to = state_of(machine, after);
    ++watched->edges[machine][from][to];
    ++moves_[machine];
    last_move_[machine] = dev->name + ": " + before + " -> " + after;
    if (!gid)
        return;
    const bool left = max_stay(machine, before), entered = max_stay(machine, after);
    if (!left && !entered)
        return;
    auto& stays = stays_[{dev, machine, std::string(reinterpret_cast<const char*>(gid), sizeof(shim_gid))}];
    // Two connections of one peer have the same key: the first to arrive is taken for the first to leave.
    if (const auto it = std::find_if(stays.begin(), stays.end(), [from](const Stay& one) { return one.state == from; });
        it != stays.end()) {
        stays.erase(it);
        --stays_of_[dev];
    }
    if (entered)
        stays.push_back({to, world->scheduler.now(), stays_of_[dev]++});
}

void Machines::check() const
{
    // An interface takes its connections one after the other, each for up to this time on a busy processor, and walks
    // the list of all for each, where it may be interrupted at every step. Later ones may come first.
    constexpr Time turn = 100 * millisecond, walk_of_one = 100 * microsecond;
    for (const auto& [key, stays] : stays_) {
        const auto& [dev, machine, gid] = key;
        for (const Stay& stay : stays) {
            const char* const state = state_names[machine][stay.state];
            const std::size_t stays_then = std::max(stay.before + 1, stays_of_.at(dev));
            const Time limit = max_stay(machine, state) + stays_then * (turn + stays_then * walk_of_one);
            SIM_CHECK(world->scheduler.now() - stay.since < limit,
                      "%s: a connection (%s, peer ..%02x%02x) stays in state %s for %llu s", dev->name.c_str(),
                      machine_names[machine], static_cast<std::uint8_t>(gid[14]), static_cast<std::uint8_t>(gid[15]),
                      state, static_cast<unsigned long long>(limit / second));
        }
    }
}

void print_edges(bool all)
{
    unsigned int covered = 0;
    std::string missing;
    for (const Edge& edge : all_edges) {
        const auto count =
            watched->edges[edge.machine][state_of(edge.machine, edge.before)][state_of(edge.machine, edge.after)]
                .load();
        covered += count > 0;
        if (count == 0)
            missing += std::string(missing.empty() ? "" : ", ") + machine_names[edge.machine] + " " + edge.before +
                       " -> " + edge.after;
        if (all)
            std::printf("  %-9s %-11s -> %-11s %10llu\n", machine_names[edge.machine], edge.before, edge.after,
                        static_cast<unsigned long long>(count));
    }
    std::printf("edges: %u of %zu%s%s\n", covered, std::size(all_edges),
                missing.empty() ? "" : "; not seen: ", missing.c_str());
}

} // namespace sim

void shim_trace_step(const net_device* dev, shim_trace_machine machine, const std::uint8_t* gid, const char* before,
                     const char* after)
{
    world->machines.step(dev, machine, gid, before, after);
    if (machine == SHIM_TRACE_ACTIVE)
        world->stack.connection_changed(dev, gid, before, after);
    SIM_NOTE("%s: %s ..%02x%02x: %s -> %s", dev->name.c_str(), machine_names[machine], gid[14], gid[15], before, after);
}
void shim_trace_interface(const net_device* dev, const char* before, const char* after)
{
    world->machines.step(dev, Machines::interface, nullptr, before, after);
    SIM_NOTE("%s: %s -> %s", dev->name.c_str(), before, after);
}
void shim_trace_flush(const net_device* dev, const char* level) { SIM_NOTE("%s: flush, %s", dev->name.c_str(), level); }
void shim_trace_flows(const net_device* dev, const std::uint8_t*, std::uint64_t flows, unsigned int from,
                      unsigned int to)
{
    SIM_NOTE("%s: flows %#llx move from queue %u to %u", dev->name.c_str(), static_cast<unsigned long long>(flows),
             from, to);
}
void shim_trace_ring(const net_device* dev, const char* ring, const char* what, unsigned int used, unsigned int size)
{
    SIM_CHECK(used <= size, "%s ring: %u of %u are used", ring, used, size);
    SIM_NOTE("%s: %s ring %s, %u of %u", dev->name.c_str(), ring, what, used, size);
}
