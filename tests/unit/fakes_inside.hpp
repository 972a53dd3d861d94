// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Helpers shared by the fakes and hidden from tests.
#pragma once
#include "fakes.hpp"

#include <gtest/gtest.h>

inline World* world = nullptr;

inline void may_sleep()
{
    EXPECT_EQ(world->spinning, 0) << "sleeps under a spinlock or with bottom halves off";
    EXPECT_EQ(world->reading, 0) << "sleeps in an RCU read section";
}

// Returns whether a countdown of World ends with this call; 0: inactive.
inline bool is_last(int& countdown) { return countdown > 0 && --countdown == 0; }

inline void allocates(const char* call)
{
    if (!world->no_io)
        world->allocations_with_io.emplace_back(call);
}

// The queue whose item runs in World::run_work(), or nullptr.
extern const workqueue_struct* running_queue;

inline bool out_of_memory() { return is_last(world->fail_allocation); }

// Returns the pointer of a failed call.
template <typename Object>
Object* error_pointer(int error)
{
    return reinterpret_cast<Object*>(std::intptr_t(error));
}

inline std::string text(const void* key, std::uint16_t bytes)
{
    return std::string(static_cast<const char*>(key), bytes);
}

void free_skb(sk_buff* skb);
int register_as(const char* what);
void unregister(const char* what);

struct shim_work {
    void (*run)(void*);
    void* context;
};
struct shim_napi {
    int (*poll)(void*, int);
    void* context;
    net_device* dev;
    bool enabled;
};
