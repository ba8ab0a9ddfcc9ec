// Switches stacks with swapcontext, and carries the C++ runtime's exception state along. Sanitizers
// are told of every switch. A fiber that comes too near the end of its stack stops the program with
// a remedy, because later stacks have no guard page.
#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/check.h"
#include "core/comm/sim/scheduler.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace lockstep::comm::sim {
namespace {

constexpr std::size_t kLeastStackBytes = 16 * 1024;
// What a fiber must leave free when it yields. Less means that it came close to the end, or, where
// there is no guard page, beyond it.
constexpr std::size_t kReserveBytes = 1024;

std::size_t PageBytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

StackPool::StackPool(std::size_t stack_bytes)
    : stack_bytes_((std::max(stack_bytes, kLeastStackBytes) + PageBytes() - 1) / PageBytes() *
                   PageBytes()) {}

StackPool::~StackPool() {
  for (const auto& chunk : chunks_) munmap(chunk.data(), chunk.size());
}

void StackPool::Map() {
  const bool guarded = mapped_ < kGuarded;
  std::size_t count = std::clamp<std::size_t>(mapped_, 8, 1024);
  const std::size_t each = stack_bytes_ + (guarded ? PageBytes() : 0);
  const auto map = [&] {
    return mmap(nullptr, count * each, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  };
  void* memory = map();
  // Near the limit, no more than are needed.
  for (; memory == MAP_FAILED && count > 1; memory = map()) count /= 2;
  const std::new_handler handler = std::get_new_handler();  // as of every other memory
  if (memory == MAP_FAILED && handler != nullptr) handler();
  LOCKSTEP_CHECK(memory != MAP_FAILED, "no address space for the stacks of more simulated ranks");
  auto* begin = static_cast<std::byte*>(memory);
  // A huge page would make every stack as large as it.
  madvise(memory, count * each, MADV_NOHUGEPAGE);
  chunks_.push_back({begin, count * each});
  for (std::size_t i = count; i-- > 0;) {
    std::byte* bottom = begin + i * each;
    if (guarded) {
      LOCKSTEP_CHECK(mprotect(bottom, PageBytes(), PROT_NONE) == 0, "a guard page");
      bottom += PageBytes();
    }
    free_.push_back({bottom, stack_bytes_});
  }
  mapped_ += count;
}

std::span<std::byte> StackPool::Take() {
  if (free_.empty()) Map();
  const auto stack = free_.back();
  free_.pop_back();
  return stack;
}

Fiber::~Fiber() {
  LOCKSTEP_CHECK(stack_.empty(), "a fiber that goes while something lives on its stack");
}

Fiber::Exceptions Fiber::SwapExceptions(const Exceptions& now) {
  Exceptions before;
  void* globals = abi::__cxa_get_globals();
  std::memcpy(&before, globals, sizeof(before));
  std::memcpy(globals, &now, sizeof(now));
  return before;
}

void Fiber::Resume(StackPool& stacks) {
  LOCKSTEP_CHECK(!done_, "a fiber that is done is not resumed");
  if (stack_.empty()) {
    stack_ = stacks.Take();
    getcontext(&inside_);
    inside_.uc_stack.ss_sp = stack_.data();
    inside_.uc_stack.ss_size = stack_.size();
    inside_.uc_link = nullptr;
    // makecontext passes ints.
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::Enter), 2,
                static_cast<unsigned int>(self >> 32), static_cast<unsigned int>(self));
  }
  const Exceptions outer = SwapExceptions(exceptions_);
  SwitchIn();
  exceptions_ = SwapExceptions(outer);
  if (done_) stacks.Give(std::exchange(stack_, {}));
}

// These two are part of the function that switches: ThreadSanitizer keeps a stack of functions for
// each fiber, on which whoever enters has to leave.
[[gnu::always_inline]] inline void Fiber::BeforeSwitchOut() {
#if defined(__SANITIZE_ADDRESS__)
  // A fiber that is done has no use for its fake stack any more.
  __sanitizer_start_switch_fiber(done_ ? nullptr : &sanitizer_.inside, sanitizer_.outside,
                                 sanitizer_.outside_bytes);
#elif defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(sanitizer_.outside, 0);
#endif
}

[[gnu::always_inline]] inline void Fiber::AfterSwitchIn() {
#if defined(__SANITIZE_ADDRESS__)
  const void* outside = nullptr;
  __sanitizer_finish_switch_fiber(sanitizer_.inside, &outside, &sanitizer_.outside_bytes);
  sanitizer_.outside = const_cast<void*>(outside);
#endif
}

void Fiber::SwitchIn() {
#if defined(__SANITIZE_ADDRESS__)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_.data(), stack_.size());
#elif defined(__SANITIZE_THREAD__)
  if (sanitizer_.inside == nullptr) sanitizer_.inside = __tsan_create_fiber(0);
  sanitizer_.outside = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(sanitizer_.inside, 0);
#endif
  swapcontext(&outside_, &inside_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#elif defined(__SANITIZE_THREAD__)
  if (done_) __tsan_destroy_fiber(std::exchange(sanitizer_.inside, nullptr));
#endif
}

void Fiber::Enter(unsigned int high, unsigned int low) {
  const auto self = (static_cast<std::uintptr_t>(high) << 32) | low;
  reinterpret_cast<Fiber*>(self)->Begin();
}

void Fiber::Begin() {
  AfterSwitchIn();
  body_();
  body_ = nullptr;
  done_ = true;
  BeforeSwitchOut();
  setcontext(&outside_);
}

void Fiber::Yield() {
  const std::byte here{};
  LOCKSTEP_CHECK(stack_.data() + kReserveBytes < &here || &here < stack_.data(),
                 "a simulated rank ran out of stack; give SimOptions::stack_bytes more");
  BeforeSwitchOut();
  swapcontext(&inside_, &outside_);
  AfterSwitchIn();
}

}  // namespace lockstep::comm::sim
