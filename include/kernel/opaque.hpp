// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Storage for kernel objects inside C++ objects. Their sizes are computed by shim/layout.c.
#pragma once
#include <cstddef>

#include <generated/layout.h>

struct sa_path_rec;
struct shim_completion;
struct shim_dim;
struct shim_event_handler;
struct shim_hash;
struct shim_hash_node;
struct shim_lock_class;
struct shim_mutex;
struct shim_napi;
struct shim_rdma_netdev;
struct shim_recv_wr;
struct shim_send_wr;
struct shim_spinlock;
struct shim_tso;
struct shim_wc;
struct shim_work;

namespace kernel {

template <class T>
struct Layout;

#define KERNEL_LAYOUT(type, NAME)                                                                                      \
    template <>                                                                                                        \
    struct Layout<type> {                                                                                              \
        static constexpr std::size_t size = SHIM_SIZEOF_##NAME, align = SHIM_ALIGNOF_##NAME;                           \
    }
KERNEL_LAYOUT(sa_path_rec, PATH_RECORD);
KERNEL_LAYOUT(shim_completion, COMPLETION);
KERNEL_LAYOUT(shim_dim, DIM);
KERNEL_LAYOUT(shim_event_handler, EVENT_HANDLER);
KERNEL_LAYOUT(shim_hash, HASH);
KERNEL_LAYOUT(shim_hash_node, HASH_NODE);
KERNEL_LAYOUT(shim_lock_class, LOCK_CLASS);
KERNEL_LAYOUT(shim_mutex, MUTEX);
KERNEL_LAYOUT(shim_napi, NAPI);
KERNEL_LAYOUT(shim_rdma_netdev, RDMA_NETDEV);
KERNEL_LAYOUT(shim_recv_wr, RECV_WR);
KERNEL_LAYOUT(shim_send_wr, SEND_WR);
KERNEL_LAYOUT(shim_spinlock, SPINLOCK);
KERNEL_LAYOUT(shim_tso, TSO);
KERNEL_LAYOUT(shim_wc, WC);
KERNEL_LAYOUT(shim_work, WORK);
#undef KERNEL_LAYOUT

// One T, or an array of them, without constructor and destructor: the shims initialise and end it. Opaque<T> x{} is
// zeroed.
template <class T, std::size_t count = 1>
class Opaque {
public:
    // SAFETY: the storage has the size and alignment of the kernel's object. C++ never accesses it, and the kernel is
    // built with -fno-strict-aliasing.
    T* get() { return reinterpret_cast<T*>(bytes_); }
    const T* get() const { return reinterpret_cast<const T*>(bytes_); }

private:
    // A size of 0, as of lock classes without lockdep, takes one byte.
    static constexpr std::size_t size = Layout<T>::size * count;
    alignas(Layout<T>::align) std::byte bytes_[size ? size : 1];
};

} // namespace kernel
