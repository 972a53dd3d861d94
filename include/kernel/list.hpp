// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An intrusive, doubly linked list. An element derives from ListNode<Tag> for each list that it can be on. The list
// owns nothing; the user's lock guards it.
#pragma once

namespace kernel {

template <class Tag>
class ListNode {
public:
    ListNode() : previous_(this), next_(this) {}
    ListNode(const ListNode&) = delete;
    ListNode& operator=(const ListNode&) = delete;
    bool linked() const { return next_ != this; }
    void unlink()
    {
        previous_->next_ = next_;
        next_->previous_ = previous_;
        previous_ = next_ = this;
    }

private:
    template <class, class>
    friend class List;
    void insert_before(ListNode& next)
    {
        previous_ = next.previous_;
        next_ = &next;
        previous_->next_ = this;
        next.previous_ = this;
    }
    ListNode* previous_;
    ListNode* next_;
};

template <class T, class Tag = T>
class List {
public:
    bool empty() const { return !head_.linked(); }
    T* front() { return empty() ? nullptr : static_cast<T*>(head_.next_); }
    void push_back(T& element) { static_cast<ListNode<Tag>&>(element).insert_before(head_); }
    T* pop_front()
    {
        T* element = front();
        if (element)
            static_cast<ListNode<Tag>*>(element)->unlink();
        return element;
    }
    // Appends all elements of other, which is empty afterwards.
    void take(List& other)
    {
        while (T* element = other.pop_front())
            push_back(*element);
    }

    // For range-for. The body may unlink its element, and append others.
    class Iterator {
    public:
        explicit Iterator(ListNode<Tag>* node) : node_(node), next_(node->next_) {}
        T& operator*() const { return *static_cast<T*>(node_); }
        Iterator& operator++()
        {
            node_ = next_;
            next_ = node_->next_;
            return *this;
        }
        bool operator!=(const Iterator& other) const { return node_ != other.node_; }

    private:
        ListNode<Tag>* node_;
        ListNode<Tag>* next_;
    };
    Iterator begin() { return Iterator(head_.next_); }
    Iterator end() { return Iterator(&head_); }

private:
    ListNode<Tag> head_;
};

} // namespace kernel
