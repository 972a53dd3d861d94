// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Locks, taken only through guards. Each kind of lock has a static class object, so that lockdep tells them apart.
#pragma once

#include <kernel/opaque.hpp>
#include <kernel/thread_safety.hpp>
#include <shim/netdevice.h>
#include <shim/sync.h>

namespace kernel {

// lockdep's class of a lock: one static object per kind of lock.
class LockClass {
public:
    constexpr LockClass() = default;
    shim_lock_class* native() { return storage_.get(); }

private:
    Opaque<shim_lock_class> storage_{};
};

// A spinlock that is taken with bottom halves off. CONTEXT: process or softirq.
class TA_CAPABILITY("mutex") SpinLock {
public:
    SpinLock(LockClass& lock_class, const char* name)
    {
        shim_helper_spinlock_init(native(), lock_class.native(), name);
    }
    SpinLock(const SpinLock&) = delete;
    SpinLock& operator=(const SpinLock&) = delete;
    void lock() TA_ACQUIRE() { shim_spin_lock_bh(native()); }
    void unlock() TA_RELEASE() { shim_spin_unlock_bh(native()); }
    // Tells clang, and lockdep checks, that the caller holds the lock.
    void assert_held() TA_ASSERT(this) { shim_lockdep_assert_held(native()); }

private:
    shim_spinlock* native() { return storage_.get(); }
    Opaque<shim_spinlock> storage_;
};

// A sleeping lock. CONTEXT: process.
class TA_CAPABILITY("mutex") Mutex {
public:
    Mutex(LockClass& lock_class, const char* name) { shim_mutex_init(native(), lock_class.native(), name); }
    Mutex(const Mutex&) = delete;
    Mutex& operator=(const Mutex&) = delete;
    ~Mutex() { shim_mutex_destroy(native()); }
    void lock() TA_ACQUIRE() { shim_mutex_lock(native()); }
    void unlock() TA_RELEASE() { shim_mutex_unlock(native()); }

private:
    shim_mutex* native() { return storage_.get(); }
    Opaque<shim_mutex> storage_;
};

// RTNL, the lock of network configuration. CONTEXT: process.
class TA_CAPABILITY("mutex") Rtnl {
public:
    void lock() TA_ACQUIRE() { shim_rtnl_lock(); }
    void unlock() TA_RELEASE() { shim_rtnl_unlock(); }
};
inline Rtnl rtnl;

// The netdev's instance lock, which the core holds inside RTNL around the operations of a netdev whose rdma_netdev
// requested it (request_ops_lock). For other netdevs it locks nothing.
class TA_CAPABILITY("mutex") OpsLock {
public:
    explicit OpsLock(net_device* dev) : dev_(dev) {}
    void lock() TA_ACQUIRE() { shim_netdev_lock_ops(dev_); }
    void unlock() TA_RELEASE() { shim_netdev_unlock_ops(dev_); }

private:
    net_device* const dev_;
};

template <class Lock>
class [[nodiscard]] TA_SCOPED Guard {
public:
    explicit Guard(Lock& lock) TA_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
    ~Guard() TA_RELEASE() { lock_.unlock(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

private:
    Lock& lock_;
};

// An event to wait for.
class Completion {
public:
    Completion() { shim_init_completion(native()); }
    Completion(const Completion&) = delete;
    Completion& operator=(const Completion&) = delete;
    void reset() { shim_init_completion(native()); }
    void complete() { shim_complete(native()); }
    void wait() { shim_wait_for_completion(native()); }

private:
    shim_completion* native() { return storage_.get(); }
    Opaque<shim_completion> storage_;
};

} // namespace kernel
