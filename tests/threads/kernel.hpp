// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Small kernel of real threads for the driver's sources: the fourth implementation of include/shim/, as far as these
// tests call it. Two threads are the processors that run NAPI polls, one is the HCA, one the subnet administrator and
// the communication manager, and each work queue has its own. The orderings of the kernel (a lock, a grace period, the
// bit of a scheduled poll, the HCA between a doorbell and a completion) exist here too, and no others: the data path's
// shims take no locks, so that ThreadSanitizer sees the accesses that the driver itself leaves unordered.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <generated/layout.h>
#include <ipoib/address.hpp>
#include <kernel/time.hpp>
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

// Jobs for one thread, in the order of their time.
class Worker {
public:
    Worker();
    // Runs the jobs that are due by then, and drops the rest.
    ~Worker();
    struct Job {
        // Key by which jobs are cancelled.
        const void* owner;
        void (*run)(void* context);
        void* context;
        unsigned long due;
    };
    // Returns false if the owner has a job waiting, which is kept.
    bool add(const Job& job);
    // The owner's jobs neither wait nor run afterwards. On the worker's own thread, only waiting jobs are dropped.
    void cancel(const void* owner);
    // Removes the owner's waiting job; returns false if there is none.
    bool take(const void* owner);

private:
    void work();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::list<Job> jobs_;
    const void* running_ = nullptr;
    bool ending_ = false;
    std::thread thread_;
};

// Bounded queue for one producer and one consumer at a time; the consumer sees everything that the producer wrote
// before.
template <class T, unsigned int size>
class Fifo {
public:
    bool push(const T& entry)
    {
        const unsigned int head = head_.load(std::memory_order_relaxed);
        if (head - tail_.load(std::memory_order_acquire) == size)
            return false;
        entries_[head % size] = entry;
        head_.store(head + 1, std::memory_order_release);
        return true;
    }
    bool pop(T& entry)
    {
        const unsigned int tail = tail_.load(std::memory_order_relaxed);
        if (head_.load(std::memory_order_acquire) == tail)
            return false;
        entry = entries_[tail % size];
        tail_.store(tail + 1, std::memory_order_release);
        return true;
    }
    bool empty() const { return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_relaxed); }

private:
    std::atomic<unsigned int> head_{0}, tail_{0};
    T entries_[size];
};

struct shim_wc {
    std::uint64_t id;
    ib_qp* qp;
    int status;
    unsigned int bytes;
    std::uint32_t source_qpn;
    std::uint16_t slid;
    bool grh;
};
static_assert(sizeof(shim_wc) <= SHIM_SIZEOF_WC);

struct ib_ah {
    bool multicast;
};

struct sa_path_rec {
    shim_gid dgid;
};
static_assert(sizeof(sa_path_rec) <= SHIM_SIZEOF_PATH_RECORD);

struct ib_pd {};

struct ib_cq {
    void (*completed)(ib_cq*, void*);
    void* context;
    std::atomic<bool> armed{false};
    Fifo<shim_wc, 4096> entries;
};

struct PostedSend {
    std::uint64_t id;
    std::uint32_t qpn;
    const ib_ah* ah;
    bool signaled;
    unsigned int count;
    shim_sge sges[18];
};

struct PostedReceive {
    std::uint64_t id;
    unsigned int count;
    shim_sge sges[18];
};

struct ib_srq {
    Fifo<PostedReceive, 1024> receives;
};

struct ib_qp {
    enum State { reset, ready, error };
    std::atomic<State> state{reset};
    std::uint32_t number = 0;
    ib_cq* send_cq;
    ib_cq* recv_cq;
    ib_srq* srq = nullptr;
    void* context = nullptr;
    std::atomic<bool> connected{false};
    // QPN at the other end of a connection.
    std::atomic<std::uint32_t> remote{0};
    Fifo<PostedSend, 1024> sends;
    Fifo<PostedReceive, 1024> receives;
};

struct sk_buff {
    std::uint8_t* memory;
    std::uint8_t* data;
    unsigned int len;
    sk_buff* next;
    net_device* dev;
    unsigned int note;
    // Pages owned by the packet; the first holds the data if memory is null.
    unsigned int page_count;
    void* pages[18];
    unsigned int tx_queue = 0;
};

// The transmit lock, and whether the driver stopped the queue.
struct TransmitQueue {
    std::mutex lock;
    std::atomic<bool> stopped{true};
};

struct net_device {
    void* owner = nullptr;
    std::uint8_t address[20] = {}, broadcast[20] = {};
    std::atomic<unsigned int> mtu{0};
    std::atomic<bool> carrier{false}, up{false};
    TransmitQueue queues[SHIM_MAX_TX_QUEUES];
    // Those in use.
    std::atomic<unsigned int> real_queues{1};
    std::atomic<unsigned long> received{0};
};

// The HCA and all other single objects.
struct ib_device {
    std::mutex lock;
    // Queue pairs of this HCA, for the HCA's thread.
    std::vector<ib_qp*> qps;
    std::uint32_t next_qpn = 0x48;
    shim_gid gid{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0, 0, 0x10}};
    void (*on_event)(void*, unsigned int, std::uint32_t) = nullptr;
    void* event_context = nullptr;
};

class Machine {
public:
    Machine();
    ~Machine();
    static Machine& get();

    net_device& dev() { return *netdev; }
    // Opens the interface, and waits for its carrier.
    void open();
    void close();

    ib_device ca;
    net_device* netdev = nullptr;
    void* state = nullptr;
    // The netdev was unregistered; its destructor runs when RTNL is dropped.
    bool going = false;
    Worker* fabric = nullptr;
    // Times that the driver found its sends stalled.
    std::atomic<unsigned int> stalls{0};

private:
    void run_hca();
    void run_processor();

    std::atomic<bool> ending_{false};
    std::vector<std::thread> threads_;
};

ib_qp* create_qp(ib_cq* send_cq, ib_cq* recv_cq, ib_srq* srq, void* context);
// A packet as the stack hands it over.
sk_buff* make_packet(net_device& dev, const ipoib::HwAddr& to, unsigned int payload = 60);
void free_packet(sk_buff* skb);
// As dev_hard_start_xmit() does; false: the queue is stopped, and the packet is the caller's. more: this thread
// transmits another packet next, on the same queue.
bool transmit(sk_buff* skb, bool more = false);
// Transmits the packet as soon as the queue runs; false: the queue stays stopped for seconds.
bool transmit_soon(sk_buff* skb, bool more = false);
void full_barrier();
// Yields the processor to other threads; after 16 idle rounds in a row, sleeps for 50 us.
void rest(unsigned int times);
// Limit of waits that end early without a fault; long, since threads wait for a processor on a busy machine.
constexpr unsigned long patience_ms = 60000;
// One poll of every NAPI context that is scheduled, on the calling thread.
bool poll_all();
