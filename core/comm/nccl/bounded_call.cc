// Two ways to survive a call that never returns: on a thread that is left behind, or in view of one
// watcher thread a process. Both threads are detached and own what they touch. The watcher looks
// ten times a second, so a rescue comes up to 100 ms late.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/clock.h"
#include "core/comm/nccl/connection.h"

namespace lockstep::comm::nccl {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);

// A machine short of memory or of processes has none.
Status StartThread(std::function<void()> body) {
  try {
    std::thread(std::move(body)).detach();
  } catch (const std::system_error& error) {
    return SystemFailed(
        std::string("nccl: no thread can be started for a call that may not return: ") +
        error.code().message() + "; see ulimit -v and ulimit -u");
  }
  return OkStatus();
}

struct Answer {
  std::mutex mutex;
  std::condition_variable given;
  std::optional<Code> code;
};

}  // namespace

Result<std::optional<Code>> CallBounded(std::function<Code()> call, Deadline deadline,
                                        std::function<Status()> enter) {
  auto answer = std::make_shared<Answer>();
  LOCKSTEP_RETURN_IF_ERROR(
      StartThread([answer, enter = std::move(enter), call = std::move(call)]() mutable {
        if (enter) static_cast<void>(enter());
        const Code code = call();
        call = nullptr;  // what it owns goes before the caller hears of it
        std::lock_guard lock(answer->mutex);
        answer->code = code;
        answer->given.notify_all();
      }));
  std::unique_lock lock(answer->mutex);
  const auto limit = std::chrono::steady_clock::now() +
                     std::chrono::nanoseconds(std::max<std::int64_t>(0, deadline.RemainingNs()));
  answer->given.wait_until(lock, limit, [&] { return answer->code.has_value(); });
  return answer->code;
}

struct WatchedCalls::State {
  Limits limits;
  std::function<void()> rescue;
  std::function<void()> give_up;
  std::atomic<std::int64_t> entered_ns{0};  // 0: nobody is inside
  std::atomic<bool> rescued{false};
  std::mutex looking;  // held while one of the two functions runs
  bool gone = false;

  void Look() {
    const std::int64_t entered = entered_ns.load();
    if (entered == 0) return;
    std::lock_guard lock(looking);
    if (gone) return;
    const double inside_seconds = SecondsSince(entered);
    if (inside_seconds < limits.call_seconds || entered_ns.load() != entered) return;
    if (!rescued.exchange(true)) {
      rescue();
    } else if (inside_seconds >= limits.call_seconds + limits.rescue_seconds) {
      give_up();
    }
  }
};

namespace {

// The one thread that looks. It lives as long as the process, which it never keeps from ending.
class Watcher {
 public:
  static Watcher& Get() {
    static auto* const watcher = new Watcher;
    return *watcher;
  }
  Status Start() {
    std::lock_guard lock(mutex_);
    if (started_) return OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(StartThread([this] {
      for (;;) {
        std::this_thread::sleep_for(kLook);
        for (const auto& state : Living()) state->Look();
      }
    }));
    started_ = true;
    return OkStatus();
  }
  void Watch(std::weak_ptr<WatchedCalls::State> state) {
    std::lock_guard lock(mutex_);
    LOCKSTEP_CHECK(started_, "a call is watched by a thread");
    states_.push_back(std::move(state));
  }

 private:
  std::vector<std::shared_ptr<WatchedCalls::State>> Living() {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<WatchedCalls::State>> living;
    std::erase_if(states_, [&](const auto& weak) {
      auto state = weak.lock();
      if (state == nullptr) return true;
      living.push_back(std::move(state));
      return false;
    });
    return living;
  }

  std::mutex mutex_;
  bool started_ = false;
  std::vector<std::weak_ptr<WatchedCalls::State>> states_;
};

}  // namespace

Status WatchedCalls::StartWatching() { return Watcher::Get().Start(); }

WatchedCalls::WatchedCalls(Limits limits, std::function<void()> rescue,
                           std::function<void()> give_up)
    : state_(std::make_shared<State>()) {
  state_->limits = limits;
  state_->rescue = std::move(rescue);
  state_->give_up = std::move(give_up);
  Watcher::Get().Watch(state_);
}

WatchedCalls::~WatchedCalls() {
  std::lock_guard lock(state_->looking);
  state_->gone = true;
}

void WatchedCalls::Enter() { state_->entered_ns.store(MonotonicNs()); }

bool WatchedCalls::Leave() {
  state_->entered_ns.store(0);
  return state_->rescued.load();
}

}  // namespace lockstep::comm::nccl
