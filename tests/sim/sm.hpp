// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Subnet manager and subnet administrator, and ib_core's part in talking to them: path queries, memberships. The SA
// responds late, refuses, is silent, or loses its state, as the scenario says.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <shim/sa.h>

#include "verbs.hpp"

struct sa_path_rec {
    shim_gid dgid;
    std::uint16_t dlid;
};

struct ib_sa_query {
    ib_device* ca;
    shim_path_query asked;
    void (*answered)(int, sa_path_rec*, void*);
    void* context;
    bool answering = false;
};

namespace sim {

class Sm {
public:
    // Until then the SA is silent, refuses, is slow.
    Time silent_until = 0, refuses_until = 0, slow_until = 0;
    // Until then responses are invalid.
    Time lies_until = 0;
    bool lies();
    // Whether responses were invalid until recently.
    bool lied() const;
    // Service time of each request, one after the other; 0: random, whatever the load.
    Time service = 0;
    // Requests received, including repeated ones; and those not answered in time.
    std::uint64_t requests = 0, unanswered = 0;
    // Path queries and joins of hosts. A repeated one counts once.
    std::uint64_t queries = 0, joins = 0;

    // Creates the broadcast groups of the partitions.
    void begin();
    // MTU of the broadcast groups from the administrator's next restart on.
    void change_mtu(std::uint8_t code) { link_mtu_ = code; }
    unsigned int link_mtu() const { return 128U << link_mtu_; }
    // Loses all memberships, or those of one port.
    void forget(ib_device* only);
    // Ports of a group; recipients of a packet from a port.
    std::vector<ib_device*> listeners(std::uint16_t mlid, const ib_device& from) const;
    // ib_core ends memberships of a port.
    void on_event(ib_device& ca, unsigned int event);

    int query_path(ib_device* ca, const shim_path_query& wanted, unsigned int timeout_ms,
                   void (*answered)(int, sa_path_rec*, void*), void* context, ib_sa_query** query);
    void cancel(int id, const ib_sa_query* query);
    ib_sa_multicast* join(ib_device* ca, const shim_mcmember& member, bool with_parameters,
                          int (*answered)(int, const shim_mcmember*, void*), void* context);
    void leave(ib_sa_multicast* membership);
    bool knows(const ib_device& ca, const shim_gid& mgid) const;
    void wait_for_all();
    // Granted memberships of all ports; and number of full members of a group.
    std::size_t joined() const;
    std::size_t members(const shim_gid& mgid) const;

private:
    struct Group {
        shim_mcmember terms;
        std::set<unsigned int> nodes;
        std::set<unsigned int> senders;
    };
    void delete_unused_groups();
    bool silent();
    static void spoil(sa_path_rec& record);
    static void spoil(shim_mcmember& member);
    // Delay until the response.
    Time delay();
    // ib_core's repetitions of each request within its time limit.
    static constexpr unsigned int repetitions = 10;
    // Service time of a request's repetitions while open() is true.
    void repeat(Time limit, const std::function<bool()>& open);
    Time busy_until_ = 0, believed_until_ = 0;
    void send(int id, Time pause, unsigned int more);
    void answer(int id, int status);
    int grant(ib_device& ca, const shim_mcmember& asked, bool with_parameters, shim_mcmember& granted);
    void decide(ib_sa_multicast* membership);
    void call(ib_sa_multicast* membership, int status, const shim_mcmember& member);

    std::map<std::string, Group> groups_;
    std::uint16_t next_mlid_ = 0xc000;
    std::uint8_t link_mtu_ = 0;
    std::map<int, std::unique_ptr<ib_sa_query>> queries_;
    // By node and serial.
    std::map<std::pair<unsigned int, std::uint64_t>, ib_sa_multicast*> memberships_;
    std::vector<ib_sa_multicast*> memberships_of(const ib_device& ca) const;
    int next_id_ = 0;
    long outstanding_ = 0;
    std::map<std::pair<unsigned int, std::string>, Time> last_;
};

} // namespace sim
