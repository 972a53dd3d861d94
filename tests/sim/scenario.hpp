// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Scenario of a seed: faults and their times, actions of users, then quiet, in which all parties must reach each other,
// then the end, after which nothing may be left. The list of faults is drawn before the run, so that a failing run can
// be repeated with fewer of them.
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
    busy_flows,
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
    // Faults of the plan to run; empty: all.
    std::set<std::size_t> only;
    bool some_only = false;
    // Seed for another order of events: with fewer faults the order cannot be the same.
    std::uint64_t salt = 0;
};

// Faults of a seed.
std::vector<Planned> plan(std::uint64_t seed, const Options& options);
// Runs a seed from start to end. Returns, or ends the program with a failure.
void run_seed(std::uint64_t seed, const Options& options);

} // namespace sim
