// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Checks of a fabric without recent failures: all interfaces reach each other, no packet is lost, and nothing is
// requested that is known.
#pragma once

namespace sim {

// Each interface has carrier, reaches all others by unicast and multicast, in the way that the modes require; and the
// traffic of a minute loses no packets and causes almost no queries.
void judge_quiet();
// Each pair of interfaces with carrier exchanges packets within a while.
void check_pairs();
// No path or active connection in use is removed or requested again during two minutes of traffic.
void check_nothing_moves();
// A broken connection is reestablished at once, though the peer rejects the first REQ as stale.
void check_reconnection();

} // namespace sim
