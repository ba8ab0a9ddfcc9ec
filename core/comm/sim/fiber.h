// A function with a stack of its own that runs until it yields.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace lockstep::comm::sim {

// Stacks of one size, mapped many at a time and reused. Only pages that are touched take memory.
// The first kGuarded stacks end in a page that may not be touched (a guard costs the kernel a
// mapping, of which a process has 65,530).
class StackPool {
 public:
  static constexpr std::size_t kGuarded = 4096;

  explicit StackPool(std::size_t stack_bytes);
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  std::span<std::byte> Take();
  void Give(std::span<std::byte> stack) { free_.push_back(stack); }

 private:
  void Map();

  std::size_t stack_bytes_;
  std::size_t mapped_ = 0;  // stacks
  std::vector<std::span<std::byte>> chunks_;
  std::vector<std::span<std::byte>> free_;
};

// All of a thread's fibers are resumed and yield on that thread. Exceptions may be in flight on
// any number of them: each has its own state of the C++ runtime's exception handling.
class Fiber {
 public:
  // `body` must not let an exception out. A fiber that was resumed must be done when it goes.
  explicit Fiber(std::function<void()> body) : body_(std::move(body)) {}
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From outside any fiber: runs it until it yields or is done. Takes a stack at the first call and
  // gives it back when done.
  void Resume(StackPool& stacks);
  // From inside: back to the caller of Resume.
  void Yield();
  bool started() const { return !stack_.empty() || done_; }
  bool done() const { return done_; }

 private:
  struct Exceptions {  // __cxa_eh_globals of the Itanium C++ ABI, 2.2.2
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };
  // What AddressSanitizer and ThreadSanitizer were told, who have to know of every change of stack.
  struct Sanitizer {
    void* inside = nullptr;   // a fake stack; a fiber
    void* outside = nullptr;  // a stack; a fiber
    std::size_t outside_bytes = 0;
  };
  static void Enter(unsigned int high, unsigned int low);
  void Begin();
  void SwitchIn();
  void BeforeSwitchOut();
  void AfterSwitchIn();
  static Exceptions SwapExceptions(const Exceptions& now);

  std::function<void()> body_;
  std::span<std::byte> stack_;
  ucontext_t inside_;
  ucontext_t outside_;
  Exceptions exceptions_;
  bool done_ = false;
  Sanitizer sanitizer_;
};

}  // namespace lockstep::comm::sim
