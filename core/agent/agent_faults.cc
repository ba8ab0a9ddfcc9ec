// What an agent does to its worker on order: the kinds that need nothing but the agent are here,
// the others in cpu_faults.cc and limit_faults.cc. Whatever ends the agent undoes all of it.
#include "core/agent/agent_faults.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/process_stat.h"

namespace lockstep::agent {
namespace {

constexpr char kClockFile[] = "lockstep-clock";

Status NoMemoryFile() {
  return EnvironmentError(
      "cannot make a file in memory: {}; raise the limits on open files or memory",
      std::strerror(errno));
}

class ClockJump final : public Injection {
 public:
  ClockJump(std::int64_t& offset_ns, double seconds)
      : offset_ns_(offset_ns), ns_(static_cast<std::int64_t>(seconds * 1e9)) {
    std::atomic_ref(offset_ns_) += ns_;
  }
  ~ClockJump() override { std::atomic_ref(offset_ns_) -= ns_; }
  std::string Describe() const override {
    return fmt::format("CLOCK_REALTIME jumped by {} s", static_cast<double>(ns_) * 1e-9);
  }

 private:
  std::int64_t& offset_ns_;
  const std::int64_t ns_;
};

class SetUp final : public Injection {
  std::string Describe() const override { return "the worker was started with it"; }
};

}  // namespace

AgentFaults::~AgentFaults() {
  HealAll();
  if (clock_offset_ns_ != nullptr) munmap(clock_offset_ns_, sizeof *clock_offset_ns_);
}

Status AgentFaults::OpenClock() {
  if (clock_offset_ns_ == nullptr) {
    clock_ = Fd(memfd_create(kClockFile, MFD_CLOEXEC));
    constexpr std::size_t kBytes = sizeof(std::int64_t);
    if (!clock_.valid() || ftruncate(clock_.get(), kBytes) != 0) return NoMemoryFile();
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, clock_.get(), 0);
    if (memory == MAP_FAILED) return NoMemoryFile();
    clock_offset_ns_ = static_cast<std::int64_t*>(memory);
  }
  return OkStatus();
}

Status AgentFaults::Prepare(const control::WorkerSetup& setup,
                            std::vector<std::string>& environment) {
  environment.insert(environment.end(), setup.environment.begin(), setup.environment.end());
  if (!setup.movable_clock) return OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(OpenClock());
  environment.push_back(
      fmt::format("{}=/proc/{}/fd/{}", control::kClockOffsetVariable, getpid(), clock_.get()));
  return OkStatus();
}

Result<std::unique_ptr<Injection>> AgentFaults::Inject(const control::AgentFault& order) {
  using Kind = control::AgentFault::Kind;
  switch (order.kind) {
    case Kind::kCpuHog:
      return HogProcessor(worker_, static_cast<int>(order.amount));
    case Kind::kCpuThrottle:
      return ThrottleProcessor(worker_, order.amount);
    case Kind::kMemoryLimit:
      return LimitMemory(worker_, static_cast<std::int64_t>(order.amount));
    case Kind::kDescriptorLimit:
      return LimitDescriptors(worker_, static_cast<int>(order.amount));
    case Kind::kLockedMemoryLimit:
      return LimitLockedMemory(worker_, static_cast<std::int64_t>(order.amount));
    case Kind::kShmFull:
      return FillPrivateShm(worker_, static_cast<std::int64_t>(order.amount));
    case Kind::kClockJump:
      if (clock_offset_ns_ == nullptr || !HasMapped(worker_, kClockFile)) {
        return EnvironmentError(
            "the worker's time of day cannot be moved: its program does not map the offset");
      }
      return std::make_unique<ClockJump>(*clock_offset_ns_, order.amount);
    case Kind::kSetup:
      return std::make_unique<SetUp>();
  }
  return Unsupported("an unknown fault");
}

Result<std::string> AgentFaults::Apply(std::uint32_t fault, const control::AgentFault& order) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Injection> injection, Inject(order));
  std::string done = injection->Describe();
  active_.push_back({fault, order, std::move(injection), std::nullopt});
  if (order.duration_seconds > 0) {
    active_.back().until = Deadline::AfterSeconds(order.duration_seconds);
  }
  return done;
}

void AgentFaults::HealDue(const std::function<void(std::uint32_t fault)>& healed) {
  for (std::size_t i = 0; i < active_.size();) {
    if (!active_[i].until || !active_[i].until->Passed()) {
      ++i;
      continue;
    }
    const std::uint32_t fault = active_[i].fault;
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    healed(fault);
  }
}

int AgentFaults::wake_ms() const {
  int soonest = -1;
  for (const Active& active : active_) {
    if (!active.until) continue;
    const int ms = active.until->RemainingMs();
    soonest = soonest < 0 ? ms : std::min(soonest, ms);
  }
  return soonest;
}

bool AgentFaults::throttles() const { return std::ranges::any_of(active_, &Active::throttles); }

void AgentFaults::EndThrottle() { std::erase_if(active_, std::mem_fn(&Active::throttles)); }

}  // namespace lockstep::agent
