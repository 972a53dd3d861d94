// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The subnet manager with its administrator, and ib_core's part in talking to it: path queries, memberships. It
// answers late, refuses, says nothing, or forgets, as the scenario has it.
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
    // Until then it says nothing, refuses, is slow.
    Time silent_until = 0, refuses_until = 0, slow_until = 0;
    // Answers are invalid until then.
    Time lies_until = 0;
    bool lies();
    // Not long ago.
    bool lied() const;
    unsigned int loss_one_in = 0;
    // What a request takes it, one after the other; 0: it takes as long as chance has it, however many there are.
    Time service = 0;
    // Requests that came, those that were repeated for want of an answer too; and those that it did not answer in time.
    std::uint64_t requests = 0, unanswered = 0;
    // Questions for paths and joins of hosts. A repeated one counts once.
    std::uint64_t questions = 0, joins = 0;

    // The broadcast groups of the partitions, which it makes itself.
    void begin();
    // MTU of the broadcast groups from the administrator's next restart on.
    void change_mtu(std::uint8_t code) { link_mtu_ = code; }
    unsigned int link_mtu() const { return shim_ib_mtu_enum_to_int(link_mtu_); }
    // Everybody's memberships, or one's.
    void forget(ib_device* only);
    // Ports of a group; whom a packet of from goes to.
    std::vector<ib_device*> listeners(std::uint16_t mlid, const ib_device& from) const;
    // ib_core ends memberships of a port.
    void on_event(ib_device& ca, shim_event event);

    int ask(ib_device* ca, const shim_path_query& question, unsigned int timeout_ms,
            void (*answered)(int, sa_path_rec*, void*), void* context, ib_sa_query** query);
    void cancel(int id, const ib_sa_query* query);
    ib_sa_multicast* join(ib_device* ca, const shim_mcmember& member, bool with_parameters,
                          int (*answered)(int, const shim_mcmember*, void*), void* context);
    void leave(ib_sa_multicast* membership);
    bool knows(const ib_device& ca, const shim_gid& mgid) const;
    void wait_for_all();
    // Memberships of all ports that were granted; and how many ports are full members of a group.
    std::size_t joined() const;
    std::size_t members(const shim_gid& mgid) const;

private:
    struct Group {
        shim_mcmember terms;
        std::set<unsigned int> nodes;
        std::set<unsigned int> senders;
    };
    bool silent();
    static void spoil(sa_path_rec& record);
    static void spoil(shim_mcmember& member);
    // Until its answer is there.
    Time delay();
    // ib_core sends each request so many times within its limit.
    static constexpr unsigned int repetitions = 10;
    // The service that repetitions of a request take, as long as open() says so.
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
    std::map<int, std::unique_ptr<ib_sa_query>> questions_;
    // By node and serial.
    std::map<std::pair<unsigned int, std::uint64_t>, ib_sa_multicast*> memberships_;
    std::vector<ib_sa_multicast*> memberships_of(const ib_device& ca) const;
    int next_id_ = 0;
    long outstanding_ = 0;
    std::map<std::pair<unsigned int, std::string>, Time> last_;
};

} // namespace sim
