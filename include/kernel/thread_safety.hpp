// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Clang's thread-safety attributes: clang++ -Wthread-safety checks them on the host build; gcc sees nothing.
#pragma once

#ifdef __clang__
#define TA_ATTRIBUTE(x) __attribute__((x))
#else
#define TA_ATTRIBUTE(x)
#endif

#define TA_CAPABILITY(name) TA_ATTRIBUTE(capability(name))
#define TA_SCOPED TA_ATTRIBUTE(scoped_lockable)
#define TA_GUARDED(lock) TA_ATTRIBUTE(guarded_by(lock))
#define TA_ACQUIRED_BEFORE(...) TA_ATTRIBUTE(acquired_before(__VA_ARGS__))
#define TA_ACQUIRED_AFTER(...) TA_ATTRIBUTE(acquired_after(__VA_ARGS__))
#define TA_REQUIRES(...) TA_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define TA_EXCLUDES(...) TA_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define TA_ACQUIRE(...) TA_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define TA_ASSERT(...) TA_ATTRIBUTE(assert_capability(__VA_ARGS__))
#define TA_UNCHECKED TA_ATTRIBUTE(no_thread_safety_analysis)
#define TA_RELEASE(...) TA_ATTRIBUTE(release_capability(__VA_ARGS__))
