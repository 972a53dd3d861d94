// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Checks of a fabric in which nothing has failed for a while: everybody reaches everybody, nothing is lost, and nobody
// asks for what it has.
#pragma once

namespace sim {

// Everybody has a carrier, reaches all others by unicast and by group, in the way that the modes call for; and the
// traffic of a minute costs no packets and next to no questions.
void judge_quiet();
// Each pair of interfaces with carrier exchanges packets within a while.
void check_pairs();
// Nothing in use is forgotten or asked for again during two minutes of traffic.
void check_nothing_moves();
// A connection that breaks is made again at once, though the peer takes the first REQ for a stale one.
void check_reconnection();

} // namespace sim
