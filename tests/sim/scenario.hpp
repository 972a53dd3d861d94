// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A seed's story: what goes wrong when, what users do meanwhile, then quiet, in which everybody must reach everybody,
// then the end, after which nothing may be left. The list of faults is drawn before it begins, so that a failing run
// can be told again with fewer of them.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base.hpp"

namespace sim {

enum class Fault {
    link_down,
    link_flaps,
    lid_change,
    sm_restart,
    reregister_storm,
    sa_silence,
    sa_refusal,
    sa_slowness,
    pkey_lost,
    pkey_moved,
    gid_event,
    unplug,
    down_up,
    down_up_storm,
    mode_change,
    mode_storm,
    child_by_file,
    child_by_netlink,
    child_gone,
    rings,
    memory_pressure,
    loss,
    send_errors,
    receive_errors,
    no_queue_pairs,
    post_errors,
    stall,
    mute,
    cm_loss,
    memberships,
    mtu,
    umcast,
    icrc_as_checksum,
    burst,
    groups_burst,
    reads,
    reload,
    all_down_up,
    offloads,
    moderation,
    link_mtu,
    hostile_sa,
    hostile_cm,
    count
};
const char* name_of(Fault fault);

struct Planned {
    Time when = 0;
    Fault fault = Fault::count;
    unsigned int node = 0;
    Time lasts = 0;
    std::uint64_t number = 0;
};

struct Options {
    double hours = 1;
    // Of the plan, only these.
    std::set<std::size_t> only;
    bool some_only = false;
    // The same story with another order of everything: as with fewer faults there is no going back to the same.
    std::uint64_t salt = 0;
};

// The faults of a seed.
std::vector<Planned> plan(std::uint64_t seed, const Options& options);
// One run, from nothing to nothing. Returns, or fails.
void run_seed(std::uint64_t seed, const Options& options);

} // namespace sim
