// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The owner of a kernel object that a shim creates and another destroys.
#pragma once
#include <utility>

namespace kernel {

// Destroys its object with Destroy, unless it is empty. CONTEXT of reset() and destruction: that of Destroy.
template <class T, void (*Destroy)(T*)>
class Handle {
public:
    Handle() = default;
    explicit Handle(T* object) : object_(object) {}
    Handle(Handle&& other) noexcept : object_(other.release()) {}
    Handle& operator=(Handle&& other) noexcept
    {
        reset(other.release());
        return *this;
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() { reset(); }

    // Destroys the owned object and takes ownership of another.
    void reset(T* object = nullptr)
    {
        if (T* former = std::exchange(object_, object))
            Destroy(former);
    }
    // Returns the object, whose owner is the caller then.
    [[nodiscard]] T* release() { return std::exchange(object_, nullptr); }
    T* get() const { return object_; }
    explicit operator bool() const { return object_; }

private:
    T* object_ = nullptr;
};

} // namespace kernel
