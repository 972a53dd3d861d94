// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A typed rhashtable. Lookups need no lock; the user serialises changes, and frees an element no earlier than an RCU
// grace period after its removal.
#pragma once
#include <type_traits>

#include <kernel/opaque.hpp>
#include <kernel/rcu.hpp>
#include <kernel/result.hpp>
#include <shim/hash.h>

namespace kernel {

// First base of every element. INVARIANT: the node, then the key, nothing before or between.
template <class Key>
class Hashed {
public:
    explicit Hashed(const Key& key) : key_(key) {}
    const Key& key() const { return key_; }

private:
    template <class, class>
    friend class HashTable;
    Opaque<shim_hash_node> node_{};
    Key key_;
};

template <class Key, class T>
class HashTable {
    static_assert(std::is_trivially_copyable_v<Key> && alignof(Key) <= SHIM_ALIGNOF_HASH_NODE);
    static_assert(sizeof(Key) == 16 || sizeof(Key) == 20, "what the shim has parameters for");

public:
    HashTable() = default;
    HashTable(const HashTable&) = delete;
    HashTable& operator=(const HashTable&) = delete;

    // The table exists between create() and destroy(), which requires it to be empty. CONTEXT: process.
    Status create() { return shim_rhashtable_init(native(), sizeof(Key)); }
    void destroy() { shim_rhashtable_destroy(native()); }

    // Returns nullptr if there is none. The element is valid as long as the caller's guard, or the lock that serialises
    // changes.
    T* find(const Key& key) { return find(RcuGuard(), key); }
    T* find(const RcuGuard&, const Key& key)
    {
        auto* node = shim_rhashtable_lookup(native(), &key, sizeof(Key));
        // SAFETY: every node in the table is the first member of a Hashed<Key>, which is the first base of a T.
        return node ? static_cast<T*>(reinterpret_cast<Hashed<Key>*>(node)) : nullptr;
    }
    Status insert(T& element) { return shim_rhashtable_lookup_insert_fast(native(), node_of(element), sizeof(Key)); }
    void remove(T& element) { shim_rhashtable_remove_fast(native(), node_of(element), sizeof(Key)); }

private:
    static shim_hash_node* node_of(T& element) { return static_cast<Hashed<Key>&>(element).node_.get(); }
    shim_hash* native() { return storage_.get(); }
    Opaque<shim_hash> storage_;
};

} // namespace kernel
