#include "stress/links/echo_meter.h"

#include <algorithm>

namespace lockstep::stress::links {
namespace {

constexpr std::size_t kMost = 64;

double SecondsBetween(std::int64_t begin_ns, std::int64_t end_ns) {
  return static_cast<double>(end_ns - begin_ns) * 1e-9;
}

}  // namespace

void EchoMeter::Begin() {
  const std::lock_guard lock(mutex_);
  begun_ns_ = 0;
  under_way_ = unsent_ = false;
  seconds_.clear();
}

bool EchoMeter::Start(std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (under_way_ || now_ns - begun_ns_ < kEveryNs) return false;
  begun_ns_ = now_ns;
  under_way_ = unsent_ = true;
  return true;
}

std::optional<std::int64_t> EchoMeter::Unsent() {
  const std::lock_guard lock(mutex_);
  if (!unsent_) return std::nullopt;
  unsent_ = false;
  return begun_ns_;
}

void EchoMeter::Finish(std::int64_t begun_ns, std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (!under_way_ || begun_ns != begun_ns_) return;  // of another lifetime
  under_way_ = false;
  if (seconds_.size() == kMost) seconds_.erase(seconds_.begin());
  seconds_.push_back(SecondsBetween(begun_ns, now_ns));
}

double EchoMeter::Seconds(std::int64_t now_ns) const {
  const std::lock_guard lock(mutex_);
  std::vector<double> all = seconds_;
  if (under_way_) all.push_back(SecondsBetween(begun_ns_, now_ns));
  if (all.size() < kFewest) return 0;
  std::sort(all.begin(), all.end());
  return all[all.size() * 9 / 10];
}

}  // namespace lockstep::stress::links
