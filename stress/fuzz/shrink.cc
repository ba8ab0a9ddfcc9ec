// Takes away steps, communicators and ranks, one at a time, as long as the trial still fails in the
// same way.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "stress/fuzz/campaign.h"

namespace lockstep::stress::fuzz {
namespace {

std::optional<FuzzTrial> WithoutStep(const FuzzTrial& trial, std::size_t index) {
  const bool diverging_step = Diverges(trial.fault) && trial.at == index;
  if (diverging_step || trial.steps.size() == 1) return std::nullopt;
  FuzzTrial less = trial;
  less.steps.erase(less.steps.begin() + static_cast<std::ptrdiff_t>(index));
  less.compute_ns.erase(less.compute_ns.begin() + static_cast<std::ptrdiff_t>(index));
  less.waits.erase(less.waits.begin() + static_cast<std::ptrdiff_t>(index));
  less.senders.erase(less.senders.begin() + static_cast<std::ptrdiff_t>(index));
  if (less.at > index) --less.at;
  return less;
}

// Also without the steps on it; those of other communicators stay.
std::optional<FuzzTrial> WithoutCommunicator(const FuzzTrial& trial, std::size_t index) {
  FuzzTrial less = trial;
  for (std::size_t i = less.steps.size(); i > 0; --i) {
    if (less.steps[i - 1].communicator != index) continue;
    std::optional<FuzzTrial> next = WithoutStep(less, i - 1);
    if (!next) return std::nullopt;
    less = std::move(*next);
  }
  for (scenario::ScriptStep& step : less.steps) {
    if (step.communicator > index) --step.communicator;
  }
  less.communicators.erase(less.communicators.begin() + static_cast<std::ptrdiff_t>(index));
  return less;
}

// The two ends of a message when this rank is gone; false: it is one of them.
bool MoveEnds(const scenario::ScriptCommunicator& before, int rank, int& sender, int& receiver) {
  if (!Includes(before, rank)) return true;
  const auto place =
      static_cast<int>(std::ranges::lower_bound(before.members, rank) - before.members.begin());
  if (sender == place || receiver == place) return false;
  sender -= sender > place ? 1 : 0;
  receiver -= receiver > place ? 1 : 0;
  return true;
}

std::optional<FuzzTrial> WithoutRank(const FuzzTrial& trial, int rank) {
  if (rank == trial.faulty || trial.ranks <= 2) return std::nullopt;
  FuzzTrial less = trial;
  --less.ranks;
  if (less.faulty > rank) --less.faulty;
  for (scenario::ScriptCommunicator& communicator : less.communicators) {
    std::erase(communicator.members, rank);
    for (int& member : communicator.members) member -= member > rank ? 1 : 0;
    if (communicator.members.size() < 2) return std::nullopt;
  }
  if (less.training && less.training->branch.values.size() > 1) {
    auto& branches = less.training->branch.values;
    branches.erase(branches.begin() + rank);
  }
  const auto fit = [&](collective::Operation& operation, std::size_t communicator) {
    const auto size = static_cast<int>(less.communicators[communicator].members.size());
    operation.root = std::min(operation.root, size - 1);
  };
  for (std::size_t i = 0; i < less.steps.size(); ++i) {
    scenario::ScriptStep& step = less.steps[i];
    const scenario::ScriptCommunicator& before = trial.communicators[step.communicator];
    if (!IsMessage(step.operation)) {
      fit(step.operation, step.communicator);
    } else if (!MoveEnds(before, rank, less.senders[i], step.operation.root)) {
      return std::nullopt;
    }
  }
  if (Diverges(less.fault)) fit(less.operation, less.steps[less.at].communicator);
  return less;
}

// One plainer thing at a time.
std::vector<FuzzTrial> Plainer(const FuzzTrial& trial) {
  std::vector<FuzzTrial> all;
  const auto with = [&](auto change) {
    FuzzTrial plainer = trial;
    if (change(plainer)) all.push_back(std::move(plainer));
  };
  with([](FuzzTrial& t) { return std::exchange(t.streams, StreamUse::kInline) != t.streams; });
  with([](FuzzTrial& t) { return std::exchange(t.lingers, false); });
  with([](FuzzTrial& t) { return std::exchange(t.calls_an_await, 1) != 1; });
  for (std::size_t i = 0; i < trial.steps.size(); ++i) {
    with([&](FuzzTrial& t) { return std::exchange(t.compute_ns[i], 0) != 0; });
    with([&](FuzzTrial& t) {
      const bool waited = t.waits[i];
      t.waits[i] = false;
      return waited;
    });
    with([&](FuzzTrial& t) {
      const bool posted = t.steps[i].operation.blocking == collective::Blocking::kNonblocking;
      t.steps[i].operation.blocking = collective::Blocking::kBlocking;
      if (Diverges(t.fault) && t.at == i) t.operation.blocking = collective::Blocking::kBlocking;
      return posted;
    });
    const collective::Operation& is = trial.steps[i].operation;
    if (is.collective == collective::Collective::kBarrier) continue;
    // What is called instead keeps its difference, and only that.
    const auto both = [&](auto member, auto plain) {
      with([&](FuzzTrial& t) {
        const auto was = std::exchange(t.steps[i].operation.*member, plain);
        const bool fault_too = Diverges(t.fault) && t.at == i && t.operation.*member == was;
        if (fault_too) t.operation.*member = plain;
        return was != plain;
      });
    };
    if (is.count > 1) both(&collective::Operation::count, std::int64_t{1});
    both(&collective::Operation::type, collective::DataType::kF32);
    both(&collective::Operation::reduction, collective::Reduction::kSum);
    with([&](FuzzTrial& t) {
      const bool changes =
          is != collective::Operation{.collective = collective::Collective::kAllReduce,
                                      .count = is.count};
      t.steps[i].operation = {.collective = collective::Collective::kAllReduce, .count = is.count};
      t.senders[i] = -1;
      return changes && !(Diverges(t.fault) && t.at == i);
    });
  }
  if (trial.training) {
    with([](FuzzTrial& t) { return std::exchange(t.training->evaluation, {}).has_value(); });
    with([](FuzzTrial& t) {
      return std::exchange(t.training->barrier, ddp::BarrierPlace::kNone) !=
             ddp::BarrierPlace::kNone;
    });
    with([](FuzzTrial& t) { return std::exchange(t.training->extra_inputs_per_rank, 0) != 0; });
    with([](FuzzTrial& t) { return t.training->inputs.values[0]-- > 1; });
    with([](FuzzTrial& t) { return std::exchange(t.training->compute_us.values[0], 0) != 0; });
  }
  if (Diverges(trial.fault)) {
    with([](FuzzTrial& t) { return std::exchange(t.operation.count, 1) > 1; });
    with([](FuzzTrial& t) {
      return std::exchange(t.operation.type, collective::DataType::kF32) !=
             collective::DataType::kF32;
    });
  }
  return all;
}

std::vector<FuzzTrial> Smaller(const FuzzTrial& trial) {
  std::vector<FuzzTrial> all;
  const auto add = [&](std::optional<FuzzTrial> smaller) {
    if (smaller) all.push_back(std::move(*smaller));
  };
  for (std::size_t i = trial.communicators.size(); i > 1; --i) {
    add(WithoutCommunicator(trial, i - 1));
  }
  for (int rank = trial.ranks - 1; rank >= 0; --rank) add(WithoutRank(trial, rank));
  for (std::size_t i = trial.steps.size(); i > 0; --i) add(WithoutStep(trial, i - 1));
  for (FuzzTrial& plainer : Plainer(trial)) all.push_back(std::move(plainer));
  return all;
}

}  // namespace

FuzzTrial Shrink(const FuzzTrial& trial, const StillFails& still_fails, int most) {
  FuzzTrial least = trial;
  for (bool progress = true; progress && most > 0;) {
    progress = false;
    for (const FuzzTrial& smaller : Smaller(least)) {
      if (--most < 0) break;
      if (!still_fails(smaller)) continue;
      least = smaller;
      progress = true;
      break;
    }
  }
  return least;
}

}  // namespace lockstep::stress::fuzz
