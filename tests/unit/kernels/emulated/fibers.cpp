// SPDX-License-Identifier: Apache-2.0
// ucontext makes a stack, _setjmp and _longjmp switch: unlike swapcontext they make no system call.
#undef _FORTIFY_SOURCE  // its longjmp takes another stack for a mistake
#include "fibers.hpp"

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#else
namespace {
void __sanitizer_start_switch_fiber(void**, void const*, std::size_t) {}
void __sanitizer_finish_switch_fiber(void*, void const**, std::size_t*) {}
}  // namespace
#endif

namespace emulated {

namespace {
constexpr std::size_t stack_size = std::size_t{128} << 10;  // touched only as far as a kernel goes
}

struct fiber_set::fiber {
    fiber_set* set = nullptr;
    job call = nullptr;
    void* context = nullptr;
    bool started = false;
    bool ended = true;
    std::exception_ptr thrown;
    std::jmp_buf registers{};
    ucontext_t beginning{};
    void* fake_stack = nullptr;
    std::unique_ptr<std::byte[]> stack{new std::byte[stack_size]};  // not set to zero
};

struct fiber_set::scheduler {
    std::jmp_buf registers{};
    void const* stack = nullptr;
    std::size_t stack_bytes = 0;
    void* fake_stack = nullptr;
};

fiber_set::fiber_set() : scheduler_{std::make_unique<scheduler>()} {}
fiber_set::~fiber_set() = default;

void fiber_set::abandon() { fibers_.clear(); }

void fiber_set::enter(unsigned high, unsigned low)
{
    auto& self = *reinterpret_cast<fiber*>(std::uintptr_t{high} << 32 | low);
    auto& back = *self.set->scheduler_;
    __sanitizer_finish_switch_fiber(nullptr, &back.stack, &back.stack_bytes);
    for (;;) {
        try {
            self.call(self.context);
        } catch (...) {
            self.thrown = std::current_exception();
        }
        self.set->switch_to_scheduler(self, true);
    }
}

void fiber_set::begin(int count, job call, void* context)
{
    while (static_cast<int>(fibers_.size()) < count) {
        fibers_.push_back(std::make_unique<fiber>());
    }
    for (int i = 0; i < count; ++i) {
        auto& f = *fibers_[static_cast<std::size_t>(i)];
        f.set = this;
        f.call = call;
        f.context = context;
        f.ended = false;
    }
}

bool fiber_set::resume(int index)
{
    auto& f = *fibers_[static_cast<std::size_t>(index)];
    running_ = &f;
    __sanitizer_start_switch_fiber(&scheduler_->fake_stack, f.stack.get(), stack_size);
    if (_setjmp(scheduler_->registers) == 0) {
        if (running_->started) {
            _longjmp(running_->registers, 1);
        }
        running_->started = true;
        getcontext(&running_->beginning);
        running_->beginning.uc_stack.ss_sp = running_->stack.get();
        running_->beginning.uc_stack.ss_size = stack_size;
        running_->beginning.uc_link = nullptr;
        auto const address = reinterpret_cast<std::uintptr_t>(running_);
        makecontext(&running_->beginning, reinterpret_cast<void (*)()>(&fiber_set::enter), 2, static_cast<unsigned>(address >> 32),
                    static_cast<unsigned>(address));
        setcontext(&running_->beginning);
    }
    __sanitizer_finish_switch_fiber(scheduler_->fake_stack, nullptr, nullptr);
    fiber& back = *running_;
    running_ = nullptr;
    if (back.thrown) {
        std::rethrow_exception(std::exchange(back.thrown, nullptr));
    }
    return back.ended;
}

void fiber_set::pause() { switch_to_scheduler(*running_, false); }

void fiber_set::switch_to_scheduler(fiber& from, bool ends)
{
    from.ended = ends;
    __sanitizer_start_switch_fiber(&from.fake_stack, scheduler_->stack, scheduler_->stack_bytes);
    if (_setjmp(from.registers) == 0) {
        _longjmp(scheduler_->registers, 1);
    }
    // here again, on the fiber's own stack: `running_` is the fiber that was resumed
    __sanitizer_finish_switch_fiber(running_->fake_stack, nullptr, nullptr);
}

}  // namespace emulated
