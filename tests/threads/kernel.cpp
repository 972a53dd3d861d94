// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Memory, locks, RCU, work queues, time and hash tables.
#include "kernel.hpp"

#include <chrono>
#include <cstdlib>
#include <new>

// memory.h

void* shim_kzalloc(std::size_t bytes) { return std::calloc(1, bytes); }
void* shim_kzalloc_atomic(std::size_t bytes) { return std::calloc(1, bytes); }
void* shim_kvcalloc(std::size_t count, std::size_t bytes) { return std::calloc(count, bytes); }
unsigned int shim_memalloc_noio_save() { return 0; }
void shim_memalloc_noio_restore(unsigned int) {}
void shim_kvfree(void* memory) { std::free(memory); }

// sync.h

struct shim_spinlock {
    std::mutex mutex;
};
static_assert(sizeof(shim_spinlock) <= SHIM_SIZEOF_SPINLOCK);
struct shim_mutex {
    std::mutex mutex;
};
static_assert(sizeof(shim_mutex) <= SHIM_SIZEOF_MUTEX);
struct shim_completion {
    std::atomic<bool> done;
};

void shim_helper_spinlock_init(shim_spinlock* lock, shim_lock_class*, const char*) { new (lock) shim_spinlock; }
// As in the kernel, the holder is an RCU reader too.
void shim_spin_lock_bh(shim_spinlock* lock)
{
    shim_rcu_read_lock();
    lock->mutex.lock();
}
void shim_spin_unlock_bh(shim_spinlock* lock)
{
    lock->mutex.unlock();
    shim_rcu_read_unlock();
}
void shim_mutex_init(shim_mutex* mutex, shim_lock_class*, const char*) { new (mutex) shim_mutex; }
void shim_mutex_lock(shim_mutex* mutex) { mutex->mutex.lock(); }
void shim_mutex_unlock(shim_mutex* mutex) { mutex->mutex.unlock(); }
void shim_mutex_destroy(shim_mutex* mutex) { mutex->~shim_mutex(); }

void shim_init_completion(shim_completion* completion) { new (completion) shim_completion{false}; }
void shim_complete(shim_completion* completion) { completion->done.store(true); }
void shim_wait_for_completion(shim_completion* completion)
{
    // Each wait consumes what one shim_complete() left.
    while (!completion->done.exchange(false))
        std::this_thread::yield();
}

void shim_smp_mb() { full_barrier(); }
void shim_atomic64_add(std::uint64_t* value, std::uint64_t amount)
{
    __atomic_fetch_add(value, amount, __ATOMIC_RELAXED);
}
// ThreadSanitizer does not model fences: for it this orders nothing.
void full_barrier() { std::atomic_thread_fence(std::memory_order_seq_cst); }

// RCU: each thread counts its read sides in a counter of its own; odd: inside a read section.
namespace {

constexpr unsigned int max_readers = 1024;
std::atomic<std::uint64_t> readers[max_readers];
std::atomic<unsigned int> reader_count{0};
thread_local std::atomic<std::uint64_t>* reader = nullptr;
thread_local unsigned int depth = 0;

} // namespace

void shim_rcu_read_lock()
{
    if (depth++)
        return;
    if (!reader)
        reader = &readers[reader_count.fetch_add(1)];
    reader->store(reader->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    full_barrier();
}
void shim_rcu_read_unlock()
{
    if (--depth)
        return;
    reader->store(reader->load(std::memory_order_relaxed) + 1, std::memory_order_release);
}
void shim_synchronize_net()
{
    full_barrier();
    for (unsigned int i = 0; i < reader_count.load(); ++i) {
        const std::uint64_t seen = readers[i].load(std::memory_order_acquire);
        while (seen % 2 && readers[i].load(std::memory_order_acquire) == seen)
            std::this_thread::yield();
    }
}
void shim_local_bh_disable() { shim_rcu_read_lock(); }
void shim_local_bh_enable() { shim_rcu_read_unlock(); }

unsigned int shim_num_online_cpus() { return 2; }
unsigned long shim_jiffies()
{
    using namespace std::chrono;
    return static_cast<unsigned long>(duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count());
}
unsigned long shim_hz() { return 1000; }
std::uint32_t shim_get_random_u32_below(std::uint32_t limit) { return limit / 2; }
std::uint32_t shim_get_random_u32() { return 4; }
void rest(unsigned int times)
{
    if (times < 16)
        std::this_thread::yield();
    else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
}
void shim_msleep(unsigned int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

// work.h

Worker::Worker() : thread_([this] { work(); }) {}

Worker::~Worker()
{
    {
        std::lock_guard guard(mutex_);
        ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

bool Worker::add(const Job& job)
{
    {
        std::lock_guard guard(mutex_);
        auto place = jobs_.begin();
        for (auto it = jobs_.begin(); it != jobs_.end(); ++it) {
            if (job.owner && it->owner == job.owner)
                return false;
            if (static_cast<long>(job.due - it->due) >= 0)
                place = std::next(it);
        }
        jobs_.insert(place, job);
    }
    changed_.notify_all();
    return true;
}

bool Worker::take(const void* owner)
{
    std::lock_guard guard(mutex_);
    return jobs_.remove_if([owner](const Job& job) { return job.owner == owner; }) != 0;
}

void Worker::cancel(const void* owner)
{
    std::unique_lock guard(mutex_);
    do {
        jobs_.remove_if([owner](const Job& job) { return job.owner == owner; });
        if (running_ != owner || thread_.get_id() == std::this_thread::get_id())
            return;
        changed_.wait(guard);
    } while (true);
}

void Worker::work()
{
    std::unique_lock guard(mutex_);
    while (true) {
        if (jobs_.empty() || static_cast<long>(jobs_.front().due - shim_jiffies()) > 0) {
            if (ending_)
                return;
            changed_.wait_for(guard, std::chrono::milliseconds(1));
            continue;
        }
        const Job job = jobs_.front();
        jobs_.pop_front();
        running_ = job.owner;
        guard.unlock();
        job.run(job.context);
        guard.lock();
        running_ = nullptr;
        changed_.notify_all();
    }
}

struct workqueue_struct {
    Worker worker;
};
struct shim_work {
    void (*run)(void*);
    void* context;
    std::atomic<workqueue_struct*> queue;
};
static_assert(sizeof(shim_work) <= SHIM_SIZEOF_WORK);

workqueue_struct* shim_alloc_ordered_workqueue(const char*, bool) { return new workqueue_struct; }
void shim_destroy_workqueue(workqueue_struct* queue) { delete queue; }
void shim_helper_work_init(shim_work* work, void (*run)(void*), void* context, shim_lock_class*, const char*)
{
    new (work) shim_work{run, context, nullptr};
}
void shim_queue_delayed_work(workqueue_struct* queue, shim_work* work, unsigned long delay)
{
    work->queue.store(queue);
    (void)queue->worker.add({work, work->run, work->context, shim_jiffies() + delay});
}
void shim_mod_delayed_work(workqueue_struct* queue, shim_work* work)
{
    work->queue.store(queue);
    (void)queue->worker.take(work);
    (void)queue->worker.add({work, work->run, work->context, shim_jiffies()});
}
void shim_cancel_delayed_work_sync(shim_work* work)
{
    if (workqueue_struct* queue = work->queue.load())
        queue->worker.cancel(work);
}

// hash.h: chains that readers walk while one writer at a time changes them.

struct shim_hash_node {
    std::atomic<shim_hash_node*> next;
};
static_assert(sizeof(shim_hash_node) == SHIM_SIZEOF_HASH_NODE);

namespace {

constexpr unsigned int buckets = 256;

const std::uint8_t* key_of(const shim_hash_node* node)
{
    return reinterpret_cast<const std::uint8_t*>(node) + SHIM_SIZEOF_HASH_NODE;
}

} // namespace

struct shim_hash {
    std::atomic<shim_hash_node*>* chains;
    // The chain of a key.
    std::atomic<shim_hash_node*>& chain(const void* key, std::uint16_t bytes)
    {
        return chains[static_cast<const std::uint8_t*>(key)[bytes - 1]];
    }
};

int shim_rhashtable_init(shim_hash* hash, std::uint16_t)
{
    hash->chains = new std::atomic<shim_hash_node*>[buckets] {};
    return 0;
}
void shim_rhashtable_destroy(shim_hash* hash) { delete[] hash->chains; }
shim_hash_node* shim_rhashtable_lookup(shim_hash* hash, const void* key, std::uint16_t bytes)
{
    shim_hash_node* node = hash->chain(key, bytes).load(std::memory_order_acquire);
    while (node && std::memcmp(key_of(node), key, bytes) != 0)
        node = node->next.load(std::memory_order_acquire);
    return node;
}
int shim_rhashtable_lookup_insert_fast(shim_hash* hash, shim_hash_node* node, std::uint16_t bytes)
{
    if (shim_rhashtable_lookup(hash, key_of(node), bytes))
        return -17;
    std::atomic<shim_hash_node*>& first = hash->chain(key_of(node), bytes);
    node->next.store(first.load(std::memory_order_relaxed), std::memory_order_relaxed);
    first.store(node, std::memory_order_release);
    return 0;
}
void shim_rhashtable_remove_fast(shim_hash* hash, shim_hash_node* node, std::uint16_t bytes)
{
    std::atomic<shim_hash_node*>* link = &hash->chain(key_of(node), bytes);
    while (link->load(std::memory_order_relaxed) != node)
        link = &link->load(std::memory_order_relaxed)->next;
    link->store(node->next.load(std::memory_order_relaxed), std::memory_order_release);
}

// module.h, trace.h, dim.h

static char no_names[] = "";
struct shim_parameters shim_parameters = {128, 64, 128, 0, 0, 0, 0, 0, no_names};

void shim_log(const net_device*, shim_level, const char*, ...) {}
int shim_ib_register_client() { return ipoib_add_device(&Machine::get().ca, &Machine::get().state); }
void shim_ib_unregister_client() { ipoib_remove_device(&Machine::get().ca, Machine::get().state); }
std::uint32_t shim_rdma_end_port(const ib_device*) { return 1; }
bool shim_rdma_protocol_ib(const ib_device*, std::uint32_t) { return true; }

void shim_trace_step(const net_device*, shim_trace_machine, const std::uint8_t*, const char*, const char*) {}
void shim_trace_interface(const net_device*, const char*, const char*) {}
void shim_trace_flush(const net_device*, const char*) {}
void shim_trace_flows(const net_device*, const std::uint8_t*, std::uint64_t, unsigned int, unsigned int) {}
void shim_trace_ring(const net_device*, const char*, const char*, unsigned int, unsigned int) {}

void shim_dim_init(shim_dim*, void (*)(void*, unsigned int, unsigned int), void*) {}
void shim_dim_cancel(shim_dim*) {}

// debugfs.h, netlink.h

int shim_helper_debugfs_start() { return 0; }
void shim_helper_debugfs_stop() {}
dentry* shim_helper_debugfs_create_file(net_device*, ipoib_debug_file) { return nullptr; }
void shim_debugfs_remove(dentry*) {}
int shim_rtnl_link_register() { return 0; }
void shim_rtnl_link_unregister() {}
