// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The communication managers of all nodes (IBA 12): identifiers with their states, messages that are lost and sent
// again, stale connections, time wait. A message is told to the driver in process context, one at a time for each
// identifier, and an identifier's destruction waits for that.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include <shim/cm.h>

#include "verbs.hpp"

namespace sim {

class Cm {
public:
    unsigned int loss_one_in = 0;

    ib_cm_id* create(ib_device* ca, void* context);
    void destroy(ib_cm_id* id);
    int listen(ib_cm_id* id, std::uint64_t service);
    int send_req(ib_cm_id* id, const shim_cm_request& request);
    int send_rep(ib_cm_id* id, const shim_cm_reply& reply);
    int send_rtu(ib_cm_id* id);
    int send_drep(ib_cm_id* id);
    void send_rej(ib_cm_id* id, unsigned int reason);
    bool may_get_ready(const ib_cm_id* id) const;
    void remote_of(const ib_cm_id* id, unsigned int& node, std::uint32_t& qpn) const;

private:
    enum class Kind { req, rep, rtu, rej, dreq, drep };
    struct Mad {
        Kind kind;
        unsigned int from, to;
        std::uint64_t from_id, to_id;
        std::uint64_t service = 0;
        std::uint32_t qpn = 0;
        unsigned int reason = 0;
        bool answers_req = false;
        std::vector<std::uint8_t> data{};
    };

    ib_cm_id* find(std::uint64_t serial) const;
    void send(const Mad& mad);
    void arrive(const Mad& mad);
    void arrive_req(const Mad& mad);
    // Sends it again until the identifier has left this state, or patience.
    void keep_sending(ib_cm_id* id, const Mad& mad, shim_cm_event given_up);
    void tell(ib_cm_id* id, shim_cm_event event, const Mad* mad);
    void run(std::uint64_t serial);
    void enter_time_wait(ib_cm_id* id);
    void disconnect(ib_cm_id* id, bool again);
    void end(ib_cm_id* id);

    std::map<std::uint64_t, ib_cm_id*> ids_;
    // Of a node: whose queue pairs (node, number) it has connections with.
    std::map<std::pair<unsigned int, std::pair<unsigned int, std::uint32_t>>, std::uint64_t> remote_qps_;
};

} // namespace sim
