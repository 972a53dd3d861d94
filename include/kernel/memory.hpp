// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Allocation and ownership. A failed allocation is a null Owned<T>, which must be checked.
#pragma once
#include <cstddef>
#include <new>
#include <utility>

#include <shim/memory.h>

namespace kernel {

// The owner of a heap object. CONTEXT of reset() and destruction: that of ~T().
template <class T>
class Owned {
public:
    Owned() = default;
    explicit Owned(T* object) : object_(object) {}
    Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Owned& operator=(Owned&& other) noexcept
    {
        std::swap(object_, other.object_);
        return *this;
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() { reset(); }

    void reset()
    {
        if (auto* object = std::exchange(object_, nullptr)) {
            object->~T();
            shim_kvfree(object);
        }
    }
    [[nodiscard]] T* release() { return std::exchange(object_, nullptr); }
    T* get() const { return object_; }
    explicit operator bool() const { return object_; }
    T* operator->() const { return object_; }
    T& operator*() const { return *object_; }

private:
    T* object_ = nullptr;
};

// CONTEXT: process, may sleep.
template <class T, class... Args>
[[nodiscard]] Owned<T> make_owned(Args&&... args)
{
    void* memory = shim_kzalloc(sizeof(T));
    return Owned<T>(memory ? ::new (memory) T(std::forward<Args>(args)...) : nullptr);
}

// CONTEXT: any.
template <class T, class... Args>
[[nodiscard]] Owned<T> make_owned_atomic(Args&&... args)
{
    void* memory = shim_kzalloc_atomic(sizeof(T));
    return Owned<T>(memory ? ::new (memory) T(std::forward<Args>(args)...) : nullptr);
}

// memalloc_noio: while it exists, allocations of this thread start no I/O, which might wait for this thread. CONTEXT:
// process; guards end in the reverse order.
class [[nodiscard]] NoIo {
public:
    NoIo() : before_(shim_memalloc_noio_save()) {}
    ~NoIo() { shim_memalloc_noio_restore(before_); }
    NoIo(const NoIo&) = delete;
    NoIo& operator=(const NoIo&) = delete;

private:
    unsigned int before_;
};

// A large, zeroed array of fixed size. Its elements have no constructors or destructors.
template <class T>
class Array {
public:
    Array() = default;
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
    ~Array() { reset(); }

    // Returns false if there is no memory.
    [[nodiscard]] bool allocate(std::size_t count)
    {
        reset();
        elements_ = static_cast<T*>(shim_kvcalloc(count, sizeof(T)));
        return elements_;
    }
    void reset() { shim_kvfree(std::exchange(elements_, nullptr)); }
    explicit operator bool() const { return elements_; }
    T& operator[](std::size_t index) const { return elements_[index]; }

private:
    T* elements_ = nullptr;
};

} // namespace kernel
