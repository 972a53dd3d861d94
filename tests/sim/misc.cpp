// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Smaller headers of the boundary: hash tables, debugfs, netlink, the log; and an HCA without an rdma_netdev.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "watched.hpp"
#include "world.hpp"

using namespace sim;

struct shim_parameters shim_parameters;

// hash.h

struct shim_hash {
    std::uint32_t magic;
    std::unordered_map<std::string_view, shim_hash_node*>* nodes;
};

namespace {

constexpr std::uint32_t hash_magic = 0x4a54;

std::string_view key_of(const shim_hash_node* node, std::uint16_t bytes)
{
    return {reinterpret_cast<const char*>(node) + SHIM_SIZEOF_HASH_NODE, bytes};
}

} // namespace

int shim_rhashtable_init(shim_hash* hash, std::uint16_t)
{
    may_sleep("rhashtable_init");
    if (world->memory.fails())
        return -12;
    world->memory.hold("hash table", 1);
    *hash = {hash_magic, new std::unordered_map<std::string_view, shim_hash_node*>};
    return 0;
}
void shim_rhashtable_destroy(shim_hash* hash)
{
    may_sleep("rhashtable_destroy");
    SIM_CHECK(hash->magic == hash_magic, "a hash table is destroyed twice");
    SIM_CHECK(hash->nodes->empty(), "a hash table is destroyed with elements in it");
    hash->magic = 0;
    world->memory.hold("hash table", -1);
    delete hash->nodes;
}
shim_hash_node* shim_rhashtable_lookup(shim_hash* hash, const void* key, std::uint16_t bytes)
{
    SIM_CHECK(hash->magic == hash_magic, "a hash table is used after its end");
    SIM_CHECK(world->scheduler.current()->reader(), "a look-up outside RCU");
    world->scheduler.point();
    const auto it = hash->nodes->find({static_cast<const char*>(key), bytes});
    shim_hash_node* found = it == hash->nodes->end() ? nullptr : it->second;
    world->scheduler.point();
    return found;
}
int shim_rhashtable_lookup_insert_fast(shim_hash* hash, shim_hash_node* node, std::uint16_t bytes)
{
    if (world->memory.fails())
        return -12;
    return hash->nodes->emplace(key_of(node, bytes), node).second ? 0 : -17;
}
void shim_rhashtable_remove_fast(shim_hash* hash, shim_hash_node* node, std::uint16_t bytes)
{
    SIM_CHECK(hash->nodes->erase(key_of(node, bytes)) == 1, "removed from a hash table that it is not in");
    world->scheduler.point();
}

// debugfs.h

int shim_helper_debugfs_start() { return 0; }
void shim_helper_debugfs_stop() {}
dentry* shim_helper_debugfs_create_file(net_device* dev, ipoib_debug_file which)
{
    may_sleep("debugfs_create_file");
    if (world->memory.fails())
        return reinterpret_cast<dentry*>(std::intptr_t(-12));
    world->memory.hold("debugfs file", 1);
    auto* file = new dentry{dev, which};
    world->debug_files.push_back(file);
    return file;
}
void shim_debugfs_remove(dentry* file)
{
    may_sleep("debugfs_remove");
    if (!file || shim_ptr_err_or_zero(file))
        return;
    SIM_CHECK(!std::exchange(file->gone, true), "a debugfs file is removed twice");
    std::erase(world->debug_files, file);
    world->scheduler.wait(file, "readers of a file", [file] { return file->readers == 0; });
    world->memory.hold("debugfs file", -1);
    delete file;
}
void shim_seq_printf(seq_file*, const char*, ...) { world->scheduler.point(); }

// netlink.h, module.h, dim.h, rdma_netdev.h

int shim_rtnl_link_register()
{
    world->link_kind = true;
    return 0;
}
void shim_rtnl_link_unregister()
{
    const RtnlGuard rtnl;
    world->link_kind = false;
}
void shim_helper_extack(netlink_ext_ack*, const char*, ...) {}
void shim_log(const net_device* dev, shim_level level, const char* format, ...)
{
    if (level == SHIM_LOG_DEBUG)
        return;
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    // Peers may end a connection at any time: only a call that a fault let fail is a reason for these warnings.
    for (const std::string_view warning : {"failed to set a connection up", "failed to make a connection ready"})
        if (std::string_view(text).starts_with(warning))
            SIM_CHECK(std::exchange(world->scheduler.current()->refused, false), "without a reason: %s", text);
    if (!noting)
        return;
    note("%s: log: %s", dev ? dev->name.c_str() : "ib_ipoib", text);
}

struct shim_dim {
    void (*apply)(void*, unsigned int, unsigned int);
    void* context;
    // Work is queued or running.
    bool pending;
};
static_assert(sizeof(shim_dim) <= SHIM_SIZEOF_DIM);

void shim_dim_init(shim_dim* dim, void (*apply)(void*, unsigned int, unsigned int), void* context)
{
    *dim = {apply, context, false};
}
// Sometimes chooses another profile of the library.
void shim_helper_net_dim(shim_dim* dim, std::uint16_t, std::uint64_t, std::uint64_t)
{
    Random& random = world->scheduler.random();
    if (!random.one_in(32) || std::exchange(dim->pending, true))
        return;
    world->scheduler.spawn("dim", Fiber::Kind::process, [dim] {
        world->scheduler.point();
        dim->apply(dim->context, static_cast<unsigned int>(world->scheduler.random().between(1, 256)), 128);
        dim->pending = false;
        world->scheduler.wake(dim);
    });
}
void shim_dim_cancel(shim_dim* dim)
{
    may_sleep("cancel_work");
    world->scheduler.wait(dim, "moderation to be set", [dim] { return !dim->pending; });
}

int shim_helper_rdma_netdev_start(shim_rdma_netdev*, net_device*, ib_device*, std::uint32_t) { return -95; }
void shim_helper_rdma_netdev_end(shim_rdma_netdev*, net_device*) {}
int shim_helper_rdma_netdev_init(const shim_rdma_netdev*, net_device*) { return -95; }
void shim_helper_rdma_netdev_uninit(const shim_rdma_netdev*, net_device*) {}
int shim_helper_rdma_netdev_open(const shim_rdma_netdev*, net_device*, std::uint16_t) { return -95; }
void shim_helper_rdma_netdev_stop(const shim_rdma_netdev*, net_device*) {}
int shim_helper_rdma_netdev_change_mtu(const shim_rdma_netdev*, net_device*, unsigned int) { return -95; }
void shim_helper_rdma_netdev_tx_timeout(net_device*, unsigned int) {}
void shim_helper_rdma_netdev_get_stats(const shim_rdma_netdev*, net_device*, shim_stats*) {}
void shim_rdma_netdev_set_mtu(net_device*, unsigned int) {}
void shim_rdma_netdev_send(net_device*, sk_buff* skb, ib_ah*, std::uint32_t) { skb_free(skb); }
int shim_rdma_netdev_attach(net_device*, ib_device*, const shim_gid*, std::uint16_t, bool, std::uint32_t)
{
    return -95;
}
void shim_rdma_netdev_detach(net_device*, ib_device*, const shim_gid*, std::uint16_t) {}
