// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Life of the driver on the unit tests' fakes, directed by an input: operations of the fabric, the HCA, the stack and
// users, one after the other. The invariants are checked after each; at the end nothing may be left.
#pragma once
#include <deque>
#include <map>
#include <span>
#include <string>

#include <fakes.hpp>
#include <ipoib/interface.hpp>

#include "input.hpp"

namespace ipoib::fuzz {

// Ends the program unless the condition is true, so that the fuzzer keeps the input.
void require(bool condition, const char* what);

struct Operation;

class Session {
public:
    // The first byte sets the HCA's features and the user's settings.
    explicit Session(Input& input);
    // Stops the driver and checks that nothing is left.
    ~Session();
    Session(const Session&) = delete;

    // Opens the interface and joins the broadcast group.
    void bring_up();
    // Runs operations of the table, as the input names them, until it ends.
    void play(std::span<const Operation> operations);

    // Arriving and sent packets (session_traffic.cpp).
    void receive_datagram();
    void receive_segment();
    void receive_message();
    void receive_message_on_ours();
    void receive_bogus_completion();
    void send();
    void send_segments();
    void complete();
    void poll();

    // The fabric (session_fabric.cpp).
    void answer_path();
    void answer_join();
    void forget_membership();
    void answer_when_cancelled();
    void raise_event();
    void change_port();
    void request();
    void reply();
    void say();
    void change_cm();

    // Users and the kernel (session_users.cpp).
    void open();
    void close();
    void create_link();
    void change_link();
    void delete_link();
    void store();
    void store_word();
    void show();
    void change_mtu();
    void change_rings();
    void change_moderation();
    void change_address();
    void change_groups();
    void change_offloads();
    void change_flags();
    void find();
    void time_out();
    void work();
    void pass_time();
    void lack_memory();
    void unplug();

private:
    // Counters of a netdev: packets handed over and delivered.
    struct Count {
        std::uint64_t handed = 0, received = 0;
        struct Frame {
            std::size_t bytes;
            std::vector<std::uint8_t> begins_with;
        };
        // Frames that the HCA wrote and reported without error, oldest first, behind the encapsulation.
        std::deque<Frame> arrived;
    };

    net_device* device();
    static Interface& of(net_device* dev) { return Interface::of(dev); }
    static bool in_service(const ib_qp* qp) { return qp && (qp->state == "rtr" || qp->state == "rts"); }
    ib_qp* connection(bool receives);
    void message_on(ib_qp* qp);
    HwAddr destination();
    sk_buff* packet(net_device* dev, std::size_t payload);
    void transmit(sk_buff* skb, bool more);
    void send_one(net_device* dev, std::uint8_t kind, bool more);
    // Writes bytes into the oldest posted receive, and reports this length.
    bool arrive(net_device* dev, std::deque<shim_recv_wr>& receives, const std::vector<std::uint8_t>& bytes,
                Completion done, std::size_t before_payload);
    void datagram(net_device* dev, const std::vector<std::uint8_t>& payload, std::size_t reported);
    int status();
    int deliver(ib_cm_id* id, shim_cm_message& message);
    ib_cm_id* identifier();
    void pass(unsigned long ticks);
    bool no_time_left();
    void bring_down(net_device* dev);
    void take_received();
    void take(sk_buff& skb);
    void look(net_device* dev);
    void look_at_all();
    void have_everything();

    Input& input_;
    World world_;
    std::map<net_device*, Count> counts_;
    unsigned long ends_at_;
};

// Runs the operation and prints its name if FUZZ_TELL=1.
struct Operation {
    const char* name;
    void (Session::*perform)();
};

// RTNL, held by callers of the driver; unregistered netdevs end with its release.
class Rtnl {
public:
    Rtnl() { shim_rtnl_lock(); }
    ~Rtnl() { shim_rtnl_unlock(); }
    Rtnl(const Rtnl&) = delete;
};

} // namespace ipoib::fuzz
