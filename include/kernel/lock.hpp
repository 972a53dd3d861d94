// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Locks, taken only through guards. Each kind of lock has a static class object, so that lockdep tells them apart.
#pragma once

#include <kernel/opaque.hpp>
#include <kernel/thread_safety.hpp>
#include <shim/netdevice.h>
#include <shim/sync.h>
#include <shim/tx_queue.h>

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

// A context in which the kernel calls the driver, for thread-safety attributes. Nothing at run time.
class TA_CAPABILITY("context") Context {
public:
    // States that nothing runs in the context until the function returns.
    void assume_excluded() const TA_ASSERT(this) {}
};
// The transmit lock of a netdev's queue, which the core holds around ndo_start_xmit.
inline constexpr Context transmit_lock;
class [[nodiscard]] TA_SCOPED TransmitGuard {
public:
    // queue: the netdev's number. CONTEXT: process or softirq.
    TransmitGuard(net_device* dev, unsigned int queue) TA_ACQUIRE(transmit_lock) : dev_(dev), queue_(queue)
    {
        shim_netif_tx_lock_bh(dev_, queue_);
    }
    ~TransmitGuard() TA_RELEASE() { shim_netif_tx_unlock_bh(dev_, queue_); }
    TransmitGuard(const TransmitGuard&) = delete;
    TransmitGuard& operator=(const TransmitGuard&) = delete;

private:
    net_device* const dev_;
    const unsigned int queue_;
};
// The NAPI poll of a receive queue, and of a transmit queue.
inline constexpr Context receive_poll, transmit_poll;

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

// An event to wait for. Each wait() needs a complete() of its own.
class Completion {
public:
    Completion() { shim_init_completion(native()); }
    Completion(const Completion&) = delete;
    Completion& operator=(const Completion&) = delete;
    void complete() { shim_complete(native()); }
    void wait() { shim_wait_for_completion(native()); }

private:
    shim_completion* native() { return storage_.get(); }
    Opaque<shim_completion> storage_;
};

} // namespace kernel
