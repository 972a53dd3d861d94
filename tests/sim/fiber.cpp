// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Stack switching: in assembly on x86-64, where a system call for each switch would take most of a run's time, with the
// calls that AddressSanitizer needs.
#include "fiber.hpp"

#include <cstdlib>
#include <sys/mman.h>
#include <utility>

#include "world.hpp"

#if !defined(__x86_64__)
#include <ucontext.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace sim {

namespace {

// Enough for sanitizers and for code that is not optimised; pages that are not used take no memory.
constexpr std::size_t stack_bytes = 512 * 1024, guard_bytes = 4096;

// Stacks are reused: a fiber lives for a few switches.
std::vector<void*> spare_stacks;

// Maps a stack above a page without access, on which an overflow ends with SIGSEGV.
void* map_stack()
{
    void* memory = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, guard_bytes, PROT_NONE) != 0)
        std::abort();
    return static_cast<char*>(memory) + guard_bytes;
}

Fiber* entering = nullptr;
void* scheduler_sp = nullptr;
#if defined(__SANITIZE_ADDRESS__)
const void* scheduler_bottom = nullptr;
std::size_t scheduler_bytes = 0;
#endif

} // namespace

#if defined(__x86_64__)
extern "C" void sim_switch_stack(void** save, void* load);
asm(R"(
.text
.globl sim_switch_stack
.type sim_switch_stack, @function
sim_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size sim_switch_stack, .-sim_switch_stack
)");
#else
static void sim_switch_stack(void** save, void* load)
{
    ucontext_t here;
    *save = &here;
    swapcontext(&here, static_cast<ucontext_t*>(load));
}
#endif

Fiber::Fiber(std::string name, Kind kind, std::function<void()> body)
    : name(std::move(name)), kind(kind), body_(std::move(body))
{
    bh = kind == Kind::softirq;
    if (spare_stacks.empty()) {
        stack_ = map_stack();
    } else {
        stack_ = spare_stacks.back();
        spare_stacks.pop_back();
    }
#if defined(__x86_64__)
    // Values that sim_switch_stack() pops: six registers, and the return address.
    auto** top = reinterpret_cast<void**>(static_cast<char*>(stack_) + stack_bytes);
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(&Fiber::trampoline);
    for (int i = 0; i < 6; ++i)
        *--top = nullptr;
    sp_ = top;
#else
    auto* context = new (stack_) ucontext_t;
    getcontext(context);
    context->uc_stack.ss_sp = static_cast<char*>(stack_) + sizeof(ucontext_t);
    context->uc_stack.ss_size = stack_bytes - sizeof(ucontext_t);
    makecontext(context, &Fiber::trampoline, 0);
    sp_ = context;
#endif
}

Fiber::~Fiber()
{
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(stack_, stack_bytes);
#endif
    spare_stacks.push_back(stack_);
}

void Fiber::trampoline()
{
    Fiber* self = entering;
    self->main();
}

void Fiber::main()
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_bottom, &scheduler_bytes);
#endif
    body_();
    body_ = nullptr;
    state = State::done;
    SIM_CHECK(held.empty() && rcu == 0 && bh == (kind == Kind::softirq) && !rtnl, "%s ends with a lock held",
              name.c_str());
    leave();
    std::abort();
}

void Fiber::enter()
{
    entering = this;
#if defined(__SANITIZE_ADDRESS__)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, stack_, stack_bytes);
#endif
    sim_switch_stack(&scheduler_sp, sp_);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void Fiber::leave()
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(state == State::done ? nullptr : &fake_stack_, scheduler_bottom, scheduler_bytes);
#endif
    sim_switch_stack(&sp_, scheduler_sp);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack_, &scheduler_bottom, &scheduler_bytes);
#endif
}

} // namespace sim
