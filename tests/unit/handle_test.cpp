// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Handle, the owner of a kernel object, and TRY, which yields the value of a Result.
#include <gtest/gtest.h>

#include <kernel/handle.hpp>
#include <kernel/result.hpp>

namespace kernel {
namespace {

struct Object {
    int destroyed = 0;
};
void destroy(Object* object) { ++object->destroyed; }
using Owner = Handle<Object, destroy>;

TEST(Handle, object_is_destroyed_once_by_its_last_owner)
{
    Object object;
    {
        Owner first(&object);
        Owner second(std::move(first));
        EXPECT_FALSE(first);
        first = std::move(second);
        EXPECT_EQ(first.get(), &object);
        EXPECT_EQ(object.destroyed, 0);
    }
    EXPECT_EQ(object.destroyed, 1);
}

TEST(Handle, another_object_replaces_and_destroys_the_present_one)
{
    Object one, other;
    Owner owner(&one);
    owner.reset(&other);
    EXPECT_EQ(one.destroyed, 1);
    owner = Owner();
    EXPECT_EQ(other.destroyed, 1);
    EXPECT_FALSE(owner);
}

TEST(Handle, released_object_is_the_callers)
{
    Object object;
    {
        Owner owner(&object);
        EXPECT_EQ(owner.release(), &object);
        owner.reset();
    }
    EXPECT_EQ(object.destroyed, 0);
}

Result<Owner> make(Object& object, Status status)
{
    if (!status.ok())
        return status;
    return Owner(&object);
}
Result<Object*> made_by_try(Object& object, Status status, int& reached)
{
    Owner owner = TRY(make(object, status));
    ++reached;
    return owner.release();
}

TEST(Result, value_is_moved_out_by_try)
{
    Object object;
    int reached = 0;
    Result<Object*> result = made_by_try(object, {}, reached);
    EXPECT_TRUE(result.ok());
    EXPECT_EQ(result.take(), &object);
    EXPECT_EQ(reached, 1);
    EXPECT_EQ(object.destroyed, 0);
}

TEST(Result, error_leaves_the_function_and_the_value_empty)
{
    Object object;
    int reached = 0;
    Result<Object*> result = made_by_try(object, no_memory, reached);
    EXPECT_EQ(result.status().code(), no_memory);
    EXPECT_EQ(result.take(), nullptr);
    EXPECT_EQ(reached, 0);
}

} // namespace
} // namespace kernel
