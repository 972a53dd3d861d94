// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Start and end of each fault.
#pragma once
#include <functional>

#include "netdevice.hpp"
#include "scenario.hpp"
#include "verbs.hpp"
#include "world.hpp"

namespace sim {

inline Random& dice() { return world->scheduler.random(); }
inline void wait_for(Time time) { world->scheduler.sleep(time); }

class Faults {
public:
    void schedule(const Planned& planned);
    // Ends all faults.
    void all_over();
    // Waits for faults in progress, and does the administrator's part: plugs in, brings up. CONTEXT: process.
    void recover();
    // Sends packets of all sizes to any party. CONTEXT: process.
    void chat(net_device* dev);

private:
    void perform(const Planned& planned);
    void perform_on_sm(const Planned& planned);
    void perform_on_hca(const Planned& planned, ib_device& ca);
    void perform_on_port(const Planned& planned, ib_device& ca);
    void perform_on_interface(const Planned& planned);
    void perform_repeatedly(const Planned& planned, Party party);
    void perform_on_children(const Planned& planned);

    void link(ib_device& ca, bool up);
    void flap(const Planned& planned, ib_device& ca);
    void change_lid(ib_device& ca);
    void restart_sm(Time lasts);
    void change_pkeys(const Planned& planned, ib_device& ca);
    // Forged CM messages: of all kinds, or endless REQs.
    void attack(const Planned& planned);
    void unplug(ib_device& ca, Time lasts);
    void reload(Time lasts);
    void down_up(Party party, Time lasts);
    void change_mtu(Party party, unsigned int mtu);
    void change_mode(Party party, bool connected, bool by_file);
    long store(Party party, ipoib_attribute attribute, const std::string& text);
    void set_rings(Party party);
    void create_child(unsigned int node, bool by_file);
    void delete_child(unsigned int node);
    void change_memberships(Party party);
    void burst(const Planned& planned);
    // For some seconds three flows to one peer keep several connections to it busy, in connected mode.
    void send_busy_flows(const Planned& planned);
    // Changes by ethtool: merging and receive checksums; interrupt moderation.
    void switch_offloads(Party party, std::uint64_t number);
    void moderate(Party party, std::uint64_t number);
    // Sends packets continuously while the fault begins.
    void pester(unsigned int node);
    void read_everything(unsigned int node);
    void bring_up(Party party);
    // Excuses failures of checks at one node or at all, until they have recovered from a fault that ends then.
    static void excuse(ib_device& ca, Time until);
    static void excuse_all(Time until);
    // Sets a value for the duration of the fault.
    void set_for(unsigned int& setting, unsigned int value, Time lasts);

    unsigned int in_progress_ = 0;
    unsigned int links_down_[16] = {};
    bool child_busy_[16] = {};
    bool reloading_ = false;
};

} // namespace sim
