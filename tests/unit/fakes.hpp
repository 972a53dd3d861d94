// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Scripted kernel for the driver's sources: the third implementation of include/shim/. Nothing runs on its own:
// run_work() runs work, run_polls() polls, advance() moves the time, and the test answers for the subnet administrator.
// Created objects are counted, and must be gone when the World ends.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <generated/layout.h>
#include <ipoib/address.hpp>
#include <ipoib/connected.hpp>
#include <shim/ah.h>
#include <shim/client.h>
#include <shim/cm.h>
#include <shim/cq.h>
#include <shim/debugfs.h>
#include <shim/device.h>
#include <shim/dim.h>
#include <shim/dma.h>
#include <shim/ethtool.h>
#include <shim/hash.h>
#include <shim/header_ops.h>
#include <shim/lib.h>
#include <shim/memory.h>
#include <shim/module.h>
#include <shim/napi.h>
#include <shim/ndo.h>
#include <shim/netdevice.h>
#include <shim/netlink.h>
#include <shim/page_pool.h>
#include <shim/qp.h>
#include <shim/rc_qp.h>
#include <shim/rdma_netdev.h>
#include <shim/sa.h>
#include <shim/skbuff.h>
#include <shim/srq.h>
#include <shim/sync.h>
#include <shim/sysfs.h>
#include <shim/trace.h>
#include <shim/tso.h>
#include <shim/tx_queue.h>
#include <shim/work.h>
#include <stand_ins/work_requests.hpp>

#include "fakes_packet.hpp"

struct TransmitQueue {
    bool stopped = true;
    // Bytes that byte queue limits were given and that have not completed; their minimum limit; bytes in the qdisc.
    int queued_bytes = 0;
    unsigned int min_limit = 0, backlog = 0;
    // More packets follow the last one, says the driver.
    bool more = false;
};

struct net_device {
    std::string name = "ib0";
    void* owner = nullptr;
    // Calls to the HCA's rdma_netdev, by name.
    std::vector<std::string> lower;
    bool in_lower = false;
    unsigned int rdma_netdev_mtu = 0;
    // Index of the P_Key that the rdma_netdev was opened with.
    std::uint16_t rdma_netdev_pkey_index = 0;
    // Transmit queues in use, and receive queues; 0: unchanged. Bits of shim_feature.
    unsigned int tx_queues = 0, rx_queues = 0, features = 0;
    // NAPI contexts of the receive queues.
    std::array<const shim_napi*, SHIM_MAX_RX_QUEUES> napis{};
    // All contexts, and their lock.
    std::set<const shim_napi*> contexts;
    bool napis_locked = false;
    std::array<std::uint8_t, 20> address{}, broadcast{};
    unsigned int mtu = 0;
    bool registered = false, carrier = false, up = false, ours = true, child = false;
    // An rdma_netdev may have more than the interface uses.
    std::array<TransmitQueue, 16> transmit_queues{};
    // Those of the first queue.
    bool& stopped = transmit_queues[0].stopped;
    int& queued_bytes = transmit_queues[0].queued_bytes;
    std::vector<ipoib::HwAddr> multicast;
    bool rx_checksum = true, gro_hw = true, address_given = false, bonded = false;
    const sockaddr* ip = nullptr;
    unsigned int holds = 0;
    // The rdma_netdev requested the ops lock; the lock is held.
    bool ops_lock = false, ops_locked = false;
    // Number of times that the queue was woken.
    unsigned int wakes = 0;
    // Byte queue limits have stopped the queue.
    bool limited = false;
    // GSO packets: gso_max_segs, and the driver's limits of segments and of bytes.
    unsigned int max_segments = 65535, segments_limit = 65535, max_gso_bytes = 65536;
    unsigned int feature_updates = 0, address_changes = 0, announcements = 0;
};

struct Sent {
    std::uint64_t id;
    ib_ah* ah;
    std::uint32_t qpn, qkey;
    bool signaled;
    std::vector<std::uint8_t> bytes;
    bool checksum = false;
    unsigned int segment_bytes = 0;
    std::vector<std::uint8_t> headers;
    std::vector<std::uint64_t> addresses;
};

struct Completion {
    std::uint64_t id;
    int status;
    unsigned int bytes;
    std::uint32_t source_qpn;
    std::uint16_t slid;
    bool grh;
    ib_qp* qp = nullptr;
    bool verified = false;
};

struct ib_cq {
    void (*completed)(ib_cq*, void*);
    void* context;
    std::deque<Completion> entries;
    bool armed = false;
    unsigned int size = 0, vector = 0, usecs = 0, frames = 0;
    void push(const Completion& entry)
    {
        entries.push_back(entry);
        if (armed) {
            armed = false;
            completed(this, context);
        }
    }
};

struct ib_qp {
    unsigned int send_wrs = 0, recv_wrs = 0, recv_sges = 1;
    std::uint32_t create_flags = 0;
    std::uint16_t pkey_index = 0;
    ib_cq* send_cq;
    ib_cq* recv_cq;
    std::string state = "reset";
    std::uint32_t qkey = 0;
    std::deque<Sent> outstanding;
    std::deque<shim_recv_wr> receives;
    std::set<std::pair<std::string, std::uint16_t>> attached;
    // The queue pair belongs to a connection.
    bool connected = false;
    void* context = nullptr;
    ib_srq* srq = nullptr;
    std::uint32_t number = 0x48;
    std::uint8_t rnr_timer = 0, max_timeout = 0, max_rnr_retries = 0;
};

struct ib_srq {
    unsigned int sges;
    std::deque<shim_recv_wr> receives;
};

// Messages that the driver sent on the CM id, by name, and the fields of a REQ and a REP.
struct ib_cm_id {
    shim_cm_endpoint* endpoint = nullptr;
    std::uint64_t listens = 0;
    std::vector<std::string> sent;
    std::uint64_t service_id = 0;
    std::uint32_t qpn = 0, dlid = 0;
    std::vector<std::uint8_t> private_data;
    unsigned int reason = 0;
    std::uint8_t rnr_retries = 0;
    // Number in order of creation.
    unsigned int number = 0;
};

struct shim_dim {
    void (*apply)(void* context, unsigned int usecs, unsigned int frames);
    void* context;
};

struct shim_rdma_netdev {
    net_device* dev;
};

struct ib_pd {
    ib_device* ca;
};

struct dentry {
    std::string name;
};

struct ib_ah {
    std::uint16_t dlid;
};

struct sa_path_rec {
    std::uint16_t dlid;
};

struct ib_device {
    shim_port port{true, 3, 4096, 2048, 4, 2, false};
    int moderation_error = 0;
    unsigned int moderated_entries = 0, moderated_usecs = 0;
    std::uint16_t pkey = 0xffff;
    shim_gid gid{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0, 0, 0x10}};
    // GIDs after the first.
    std::vector<shim_gid> gids;
    // The HCA does not report changes of the first GID, so that ib_core keeps the former one until the change is
    // reported, and time passes.
    bool silent = false;
    shim_gid known_gid = gid;
    unsigned int gid_reports = 0;
    // Readings that find no GID in ib_core's table, which is being updated; their error: EINVAL before 6.5, ENOENT
    // since.
    unsigned int updating_gid = 0;
    int absent_gid = -2;
    bool infiniband = true, omni_path = false;
    unsigned int comp_vectors = 2;
    // Elements that a send may have; capabilities besides those of World::features.
    unsigned int send_sges = 18, flags = 0, kernel_flags = 0;
    struct Handler {
        void (*on_event)(void*, unsigned int, std::uint32_t);
        void* context;
    };
    std::map<shim_event_handler*, Handler> handlers;
};

struct PathQuery {
    int id;
    shim_path_query asked;
    unsigned int limit_ms;
    void (*answered)(int, sa_path_rec*, void*);
    void* context;
    bool open = true;
    bool cancelled = false;
};

struct ib_sa_multicast {
    shim_mcmember asked;
    bool with_parameters;
    int (*answered)(int, const shim_mcmember*, void*);
    void* context;
};

// Everything that the driver requested and the test decides on. One World at a time.
class World {
public:
    World();
    ~World();
    World(const World&) = delete;
    static World& get();

    // Starts and stops the driver with one HCA.
    void start();
    void stop();

    net_device& dev() { return *netdevs.front(); }
    ib_qp& qp() { return *qps.front(); }

    void run_work();
    void run_polls();
    // Delivers the responses of cancelled queries, as ib_core does in a work item.
    void answer_cancelled_paths();
    void advance(unsigned long ticks);
    void event(unsigned int event, std::uint32_t port = 1);
    // Writes an attribute as sysfs does.
    long store(net_device* dev, ipoib_attribute attribute, const char* text, std::size_t bytes);

    // A packet as the stack hands it over, to the first netdev unless its dev says another: hard header and payload.
    sk_buff* packet(const ipoib::HwAddr& to, std::uint16_t type = 0x0800, std::size_t payload = 60);
    // Transmits the packet; more: others follow at once.
    // On the queue that the driver selects, or on this one.
    void transmit(sk_buff* skb, bool more = false);
    void transmit_on(unsigned int queue, sk_buff* skb, bool more = false);
    // Arriving packets have checksums that the HCA verified; polls wait for run_polls().
    bool verified = false, polls_later = false;
    // A poll is running.
    bool polling = false;
    static constexpr int poll_budget = 64;
    // Completes the first count outstanding sends, the last with status; only signalled and failed ones report.
    // finish_sends(): the HCA has sent count datagrams; complete_sends(): and their completions are handled.
    void finish_sends(std::size_t count, int status = 0);
    void complete_sends(std::size_t count, int status = 0);
    // Delivers a datagram as the HCA writes it. Returns false if no receive was posted.
    bool receive(const std::vector<std::uint8_t>& payload, bool grh = false, const ipoib::Gid& dgid = {},
                 std::uint32_t source_qpn = 99, std::uint16_t slid = 9, int status = 0);

    // Connected mode. Unanswered REQs, oldest first; responses to one.
    std::vector<ib_cm_id*> asked;
    ib_cm_id* take_request();
    void reply(ib_cm_id* id, std::uint32_t mtu = 65524, ipoib::IcrcOffer offer = {});
    void message(ib_cm_id* id, unsigned int event, unsigned int reason = 0);
    // Delivers a REQ; nullptr: the driver rejected it, for the reason in reject_reason.
    ib_cm_id* request(const ipoib::Gid& from, std::uint32_t qpn, std::uint32_t mtu = 65524, bool reliable = true,
                      ipoib::IcrcOffer offer = {});
    unsigned int reject_reason = 0;
    // Source LID and packet life time of the REQ.
    std::uint32_t peer_lid = 9, peer_life_time = 18;
    ib_cm_id* new_cm_id(shim_cm_endpoint* endpoint);
    ib_qp* connection(std::size_t n) { return qps.at(n + 1); }
    // Delivers a message on the connection. Returns false if no receive was posted.
    bool receive_message(ib_qp& on, const std::vector<std::uint8_t>& bytes, int status = 0);
    void complete_messages(ib_qp& on, std::size_t count, int status = 0);
    std::set<ib_cm_id*> cm_ids;
    unsigned int cm_ids_made = 0;
    std::set<ib_srq*> srqs;
    std::set<page*> loose_pages;
    // Pages in use, by the address of their memory.
    std::map<const std::uint8_t*, page*> pages;
    unsigned int page_size = 4096;
    bool have_srq = true, refuse_srq = false;
    unsigned int srq_sges = 30;
    unsigned int features = SHIM_FEATURE_SG | SHIM_FEATURE_IP_CSUM | SHIM_FEATURE_TSO;
    int fail_cm = 0;
    // Time that it takes to send a REQ.
    unsigned long request_ticks = 0;
    // Peers end the exchange of messages before the queue pair has its attributes, or after it.
    bool cm_withdrawn = false, cm_withdrawn_late = false;
    // Calls of the boundary with this name fail, after the first granted ones.
    std::string refused;
    unsigned int granted = 0;
    bool refuses(const char* call);
    // Actions of other processors just before the next barrier or spinlock, and before napi_disable() takes effect.
    std::function<void()> meanwhile, before_napi_disable;
    // Run while a queue pair is moved to its error state, and before one is moved to RTR.
    std::function<void()> moves_to_error;
    std::function<void(ib_qp&)> moves_to_rtr;
    void let_others_run();
    // Run each time that bottom halves are enabled again.
    std::function<void()> softirqs;
    void run_softirqs();
    // Objects registered with the kernel, in order of registration.
    std::vector<std::string> registered;
    unsigned int work_queues = 0;
    // Number of work requests accepted before a chain is refused from there on; -1: no refusal.
    int sends_until_failure = -1, receives_until_failure = -1;
    // A queue pair in its error state reports nothing, and flushes nothing.
    bool mute = false;
    // Polls that may run, now and when the last queue pair was destroyed.
    unsigned int polls_enabled = 0, polls_at_destruction = 0;
    // Number of times that a completion queue was polled.
    unsigned int polled = 0;
    std::vector<unsigned int> rejected_mtus, updated_pmtus;
    std::string seq_text;
    std::set<dentry*> debug_files;
    std::set<std::string> names_of_debug_files() const;

    // Answers pending queries, oldest first.
    void answer_path(int status = 0, std::uint16_t dlid = 5);
    std::size_t open_paths() const;
    // Pending joins.
    std::vector<ib_sa_multicast*> open_joins;
    void answer_join(ib_sa_multicast* join, int status = 0, std::uint16_t mlid = 0xc001);
    ib_sa_multicast* join_of(const ipoib::Gid& mgid);
    // Answers the join of a broadcast group with an MTU of 2048 bytes, or of the given code.
    void answer_broadcast(int status = 0, std::uint8_t mtu = 4);
    // Opens the interface, joins the broadcast group, sets the carrier.
    void bring_up();

    std::deque<PathQuery> paths;
    // The first of these have all been answered.
    std::size_t answered_paths = 0;
    std::vector<ib_sa_multicast*> memberships;
    struct Move {
        std::uint64_t flows;
        unsigned int from, to;
    };
    std::vector<Move> moves;
    unsigned int path_queries = 0, join_requests = 0, leaves = 0;
    std::vector<net_device*> netdevs, going;
    bool administrator = true;
    std::vector<std::uint16_t> pkeys_found{0xffff};
    // Number of P_Key queries that the HCA answered.
    unsigned int pkey_queries = 0;
    std::set<std::string> known_groups;
    std::string extack;
    std::vector<ib_qp*> qps;
    ib_device ca;
    void* state = nullptr;

    std::vector<sk_buff*> received;
    // Number of packets that bypassed GRO; and whether GRO holds packets.
    unsigned int unmerged = 0;
    bool gro_holds_packets = false;
    unsigned int doorbells = 0, receive_posts = 0, drops = 0;
    std::vector<Sent> sent;
    std::set<sk_buff*> skbs;
    std::set<ib_ah*> ahs;
    std::set<void*> memory;
    std::multiset<std::uint64_t> mappings;
    // The mapping with this number from now on fails.
    int fail_mapping = 0;
    std::set<page_pool*> pools;
    std::vector<std::string> log, trace;
    std::set<shim_drop> reasons;

    // In jiffies; and the length of a grace period.
    unsigned long now, grace_ticks = 0;
    unsigned int processors = 1;
    // Value of the next random number, in percent of its range.
    std::uint32_t chance = 50;
    // Samples passed to the DIM library, and the object that passed them.
    struct DimSample {
        std::uint16_t events;
        std::uint64_t packets, bytes;
        bool operator==(const DimSample&) const = default;
    };
    std::vector<DimSample> dim_samples;
    shim_dim* dim = nullptr;
    bool more = false;
    int spinning = 0;
    // Number of RCU read sections that are not left.
    int reading = 0;
    bool rtnl = false;
    // Netdevs to be unregistered together; and the size of each past batch.
    std::vector<net_device*> batch;
    std::vector<std::size_t> batches;
    // The nth allocation, or arming of a completion queue, from now fails; 0: none does.
    int fail_allocation = 0, fail_arming = 0;
    // Fail all pages, or those of an order above 0.
    bool fail_pages = false, fail_large_pages = false;
    // Names of allocations that may start I/O; and the number of guards that forbid I/O.
    std::vector<std::string> allocations_with_io;
    unsigned int no_io = 0;
    // Each disabled poll has completions that it did not see.
    bool completes_without_end = false;
    // The HCA has an rdma_netdev, which sets this MTU at its start (0: none); number in use.
    bool have_rdma_netdev = false, rdma_netdev_needs_ops_lock = false;
    unsigned int rdma_netdev_max_mtu = 0;
    // The rdma_netdev filters the driver's queues: its operations call theirs.
    bool rdma_netdev_filters = false;
    int rdma_netdevs = 0;
    // Queue pairs created so far, and the number of the next creations that fail.
    unsigned int qps_made = 0, fail_qps = 0, connections_made = 0;
    // Status that a cancelled query is answered with: -EINTR, or that of a pending response.
    int status_of_cancelled = -4;
    // No subnet manager is known; a join's response arrives during its leave.
    bool sa_unknown = false, answer_while_leaving = false;
    std::uint8_t group_mtu = 4;
    std::uint32_t group_qkey = 0xb1b;

    struct Queued {
        shim_work* work;
        unsigned long due;
        workqueue_struct* queue;
    };
    std::vector<Queued> queued;
    // Work queues whose items sleep, so that others run.
    std::vector<workqueue_struct*> busy_queues;
    unsigned int dim_cancels = 0;
    std::vector<shim_napi*> scheduled;
    // Sleep of the driver's drain, during which polls run.
    void sleep();
};
