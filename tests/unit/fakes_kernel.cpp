// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Kernel services of every driver: memory, locks, work, hash tables, the log, registration.
#include "fakes_inside.hpp"

#include <cstdarg>

struct shim_spinlock {
    bool held;
};
struct shim_mutex {
    bool held;
};
struct shim_completion {
    bool done;
};
struct workqueue_struct {
    std::string name;
    bool reclaims;
};
struct shim_hash {
    std::map<std::string, shim_hash_node*>* nodes;
};

// memory.h

static void* allocate(std::size_t bytes)
{
    if (out_of_memory())
        return nullptr;
    void* memory = ::operator new(bytes);
    std::memset(memory, 0, bytes);
    world->memory.insert(memory);
    return memory;
}

void* shim_kzalloc(std::size_t bytes)
{
    may_sleep();
    allocates("alloc");
    return allocate(bytes);
}
void* shim_kzalloc_atomic(std::size_t bytes) { return allocate(bytes); }
void* shim_kvcalloc(std::size_t count, std::size_t bytes)
{
    may_sleep();
    allocates("alloc_array");
    return allocate(count * bytes);
}
unsigned int shim_memalloc_noio_save() { return world->no_io++; }
void shim_memalloc_noio_restore(unsigned int before)
{
    EXPECT_EQ(before, --world->no_io) << "guards end in another order than the reverse";
}
void shim_kvfree(void* memory)
{
    if (!memory)
        return;
    EXPECT_EQ(world->memory.erase(memory), 1U) << "memory is freed twice";
    ::operator delete(memory);
}

// sync.h

void shim_helper_spinlock_init(shim_spinlock* lock, shim_lock_class*, const char*) { lock->held = false; }
void shim_spin_lock_bh(shim_spinlock* lock)
{
    world->let_others_run();
    EXPECT_FALSE(lock->held) << "a spinlock is taken twice";
    lock->held = true;
    ++world->spinning;
}
void shim_spin_unlock_bh(shim_spinlock* lock)
{
    lock->held = false;
    if (--world->spinning == 0)
        world->run_softirqs();
}
void shim_mutex_init(shim_mutex* mutex, shim_lock_class*, const char*) { mutex->held = false; }
void shim_mutex_lock(shim_mutex* mutex)
{
    may_sleep();
    EXPECT_FALSE(mutex->held) << "a mutex is taken twice";
    mutex->held = true;
}
void shim_mutex_unlock(shim_mutex* mutex) { mutex->held = false; }
void shim_mutex_destroy(shim_mutex*) {}
void shim_init_completion(shim_completion* completion) { completion->done = false; }
void shim_complete(shim_completion* completion) { completion->done = true; }
void shim_wait_for_completion(shim_completion* completion)
{
    may_sleep();
    world->answer_cancelled_paths();
    EXPECT_TRUE(std::exchange(completion->done, false)) << "waits for what never comes";
}
void shim_rcu_read_lock() { ++world->reading; }
void shim_rcu_read_unlock() { EXPECT_GE(--world->reading, 0) << "an RCU read section is left twice"; }
void shim_synchronize_net()
{
    may_sleep();
    world->now += world->grace_ticks;
}
void shim_smp_mb() { world->let_others_run(); }
void shim_atomic64_add(std::uint64_t* value, std::uint64_t amount) { *value += amount; }
void shim_local_bh_disable() { ++world->spinning; }
void shim_local_bh_enable() { --world->spinning; }
unsigned int shim_num_online_cpus() { return world->processors; }
unsigned long shim_jiffies() { return world->now; }
std::uint32_t shim_get_random_u32_below(std::uint32_t limit) { return world->chance * (limit - 1) / 100; }
unsigned long shim_hz() { return 100; }
void shim_msleep(unsigned int)
{
    may_sleep();
    world->sleep();
}
void shim_rtnl_lock()
{
    EXPECT_FALSE(world->rtnl);
    world->rtnl = true;
}
void shim_rtnl_unlock()
{
    world->rtnl = false;
    // Destructors of the netdevs that were unregistered under the lock.
    while (!world->going.empty()) {
        net_device* dev = world->going.front();
        world->going.erase(world->going.begin());
        ipoib_netdev_gone(dev);
        delete dev;
    }
}
std::uint32_t shim_get_random_u32() { return 4; }

// work.h

workqueue_struct* shim_alloc_ordered_workqueue(const char* name, bool reclaims)
{
    if (world->refuses("workqueue_create"))
        return nullptr;
    ++world->work_queues;
    return new workqueue_struct{name, reclaims};
}
void shim_destroy_workqueue(workqueue_struct* queue)
{
    --world->work_queues;
    delete queue;
}
void shim_helper_work_init(shim_work* work, void (*run)(void*), void* context, shim_lock_class*, const char* name)
{
    EXPECT_NE(strstr(name, "::"), nullptr);
    *work = {run, context};
}
void shim_queue_delayed_work(workqueue_struct* queue, shim_work* work, unsigned long delay)
{
    EXPECT_NE(queue, nullptr);
    for (const auto& queued : world->queued)
        if (queued.work == work)
            return;
    world->queued.push_back({work, world->now + delay, queue});
}
void shim_mod_delayed_work(workqueue_struct* queue, shim_work* work)
{
    std::erase_if(world->queued, [&](const auto& queued) { return queued.work == work; });
    shim_queue_delayed_work(queue, work, 0);
}
void shim_cancel_delayed_work_sync(shim_work* work)
{
    may_sleep();
    std::erase_if(world->queued, [&](const auto& queued) { return queued.work == work; });
}

// hash.h

static std::string key_of(const shim_hash_node* node, std::uint16_t bytes)
{
    return text(reinterpret_cast<const char*>(node) + SHIM_SIZEOF_HASH_NODE, bytes);
}

int shim_rhashtable_init(shim_hash* hash, std::uint16_t)
{
    if (world->refuses("hash_init"))
        return -12;
    hash->nodes = new std::map<std::string, shim_hash_node*>;
    return 0;
}
void shim_rhashtable_destroy(shim_hash* hash)
{
    EXPECT_TRUE(hash->nodes->empty()) << "a hash table is destroyed with elements in it";
    delete hash->nodes;
}
shim_hash_node* shim_rhashtable_lookup(shim_hash* hash, const void* key, std::uint16_t bytes)
{
    const auto it = hash->nodes->find(text(key, bytes));
    return it == hash->nodes->end() ? nullptr : it->second;
}
int shim_rhashtable_lookup_insert_fast(shim_hash* hash, shim_hash_node* node, std::uint16_t bytes)
{
    if (out_of_memory())
        return -12;
    return hash->nodes->emplace(key_of(node, bytes), node).second ? 0 : -17;
}
void shim_rhashtable_remove_fast(shim_hash* hash, shim_hash_node* node, std::uint16_t bytes)
{
    EXPECT_EQ(hash->nodes->erase(key_of(node, bytes)), 1U);
}

// module.h

void shim_log(const net_device*, shim_level level, const char* format, ...)
{
    if (level == SHIM_LOG_WARNING)
        world->log.emplace_back(format);
}
int register_as(const char* what)
{
    if (world->refuses(what))
        return -12;
    world->registered.push_back(what);
    return 0;
}
void unregister(const char* what) { EXPECT_EQ(std::erase(world->registered, what), 1U) << what; }

int shim_ib_register_client()
{
    if (const int error = register_as("client"))
        return error;
    // Registering a client does not report the result for each HCA.
    (void)ipoib_add_device(&world->ca, &world->state);
    return 0;
}
void shim_ib_unregister_client()
{
    unregister("client");
    if (world->state)
        ipoib_remove_device(&world->ca, std::exchange(world->state, nullptr));
}
std::uint32_t shim_rdma_end_port(const ib_device*) { return 1; }
bool shim_rdma_protocol_ib(const ib_device* ca, std::uint32_t) { return ca->infiniband; }

// trace.h

static void expect_whole_in_trace(const char* name)
{
    EXPECT_LT(std::strlen(name), std::size_t{SHIM_TRACE_NAME_BYTES});
}

void shim_trace_step(const net_device*, shim_trace_machine machine, const std::uint8_t*, const char* before,
                     const char* after)
{
    expect_whole_in_trace(before);
    expect_whole_in_trace(after);
    static const char* const names[] = {"path", "group", "active", "passive"};
    world->trace.push_back(std::string(names[machine]) + " " + before + " " + after);
}
void shim_trace_interface(const net_device*, const char* before, const char* after)
{
    expect_whole_in_trace(before);
    expect_whole_in_trace(after);
    world->trace.push_back(std::string("interface ") + before + " " + after);
}
void shim_trace_flush(const net_device*, const char* level)
{
    expect_whole_in_trace(level);
    world->trace.push_back(std::string("flush ") + level);
}
void shim_trace_flows(const net_device*, const std::uint8_t*, std::uint64_t flows, unsigned int from, unsigned int to)
{
    world->moves.push_back({flows, from, to});
}
void shim_trace_ring(const net_device*, const char* ring, const char* what, unsigned int used, unsigned int size)
{
    expect_whole_in_trace(ring);
    expect_whole_in_trace(what);
    EXPECT_LE(used, size);
    world->trace.push_back(std::string(ring) + " " + what);
}

// dim.h

void shim_dim_init(shim_dim* dim, void (*apply)(void*, unsigned int, unsigned int), void* context)
{
    *dim = {apply, context};
}
void shim_helper_net_dim(shim_dim* dim, std::uint16_t events, std::uint64_t packets, std::uint64_t bytes)
{
    world->dim_samples.push_back({events, packets, bytes});
    world->dim = dim;
}
void shim_dim_cancel(shim_dim*)
{
    // DIM's work is on the system's queue, which an item of a queue with WQ_MEM_RECLAIM must not wait for.
    EXPECT_FALSE(running_queue && running_queue->reclaims) << "waited for by an item of " << running_queue->name;
    ++world->dim_cancels;
    world->dim = nullptr;
}

// debugfs.h

int shim_helper_debugfs_start() { return register_as("debugfs"); }
void shim_helper_debugfs_stop() { unregister("debugfs"); }
dentry* shim_helper_debugfs_create_file(net_device* dev, ipoib_debug_file which)
{
    static const char* const suffixes[] = {"cm", "mcg", "neigh", "path"};
    const std::string name = dev->name + "_" + suffixes[which];
    if (world->names_of_debug_files().contains(name))
        return nullptr;
    return *world->debug_files.insert(new dentry{name}).first;
}
void shim_debugfs_remove(dentry* file)
{
    EXPECT_EQ(world->debug_files.erase(file), 1U) << "a file is removed twice";
    delete file;
}
void shim_seq_printf(seq_file*, const char* format, ...)
{
    char text[512];
    EXPECT_EQ(world->spinning, 0) << "a file is written under a spinlock";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    world->seq_text += text;
}

// netlink.h

int shim_rtnl_link_register() { return register_as("link"); }
void shim_rtnl_link_unregister() { unregister("link"); }
void shim_helper_extack(netlink_ext_ack*, const char* format, ...)
{
    char text[SHIM_EXTACK_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    world->extack = text;
}
