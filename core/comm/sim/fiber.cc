#include "core/comm/sim/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define LOCKSTEP_START_SWITCH(save, bottom, bytes) \
  __sanitizer_start_switch_fiber(save, bottom, bytes)
#define LOCKSTEP_FINISH_SWITCH(saved, bottom, bytes) \
  __sanitizer_finish_switch_fiber(saved, bottom, bytes)
#else
#define LOCKSTEP_START_SWITCH(save, bottom, bytes) static_cast<void>(0)
#define LOCKSTEP_FINISH_SWITCH(saved, bottom, bytes) static_cast<void>(0)
#endif

namespace lockstep {
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
  const std::size_t count = std::clamp<std::size_t>(mapped_, 8, 1024);
  const std::size_t each = stack_bytes_ + (guarded ? PageBytes() : 0);
  void* memory = mmap(nullptr, count * each, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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

void Fiber::SwitchIn() {
  [[maybe_unused]] void* own_fake_stack = nullptr;
  LOCKSTEP_START_SWITCH(&own_fake_stack, stack_.data(), stack_.size());
  swapcontext(&outside_, &inside_);
  LOCKSTEP_FINISH_SWITCH(own_fake_stack, nullptr, nullptr);
}

void Fiber::Enter(unsigned int high, unsigned int low) {
  const auto self = (static_cast<std::uintptr_t>(high) << 32) | low;
  reinterpret_cast<Fiber*>(self)->Begin();
}

void Fiber::Begin() {
  LOCKSTEP_FINISH_SWITCH(nullptr, &outer_stack_, &outer_bytes_);
  body_();
  body_ = nullptr;
  done_ = true;
  LOCKSTEP_START_SWITCH(nullptr, outer_stack_, outer_bytes_);
  setcontext(&outside_);
}

void Fiber::Yield() {
  const std::byte here{};
  LOCKSTEP_CHECK(stack_.data() + kReserveBytes < &here || &here < stack_.data(),
                 "a simulated rank ran out of stack; give SimOptions::stack_bytes more");
  LOCKSTEP_START_SWITCH(&fake_stack_, outer_stack_, outer_bytes_);
  swapcontext(&inside_, &outside_);
  LOCKSTEP_FINISH_SWITCH(fake_stack_, &outer_stack_, &outer_bytes_);
}

}  // namespace lockstep
