// The size of batches and the choice of visitors, from what visits cost so far. Cases that are
// compared are all visited or none; giants have rounds of their own; a case that cannot fit into
// the time budget stops.
#include "bench/measure/rounds.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/stats/stats.h"

namespace lockstep::bench::measure {
namespace {

// A batch lasts about this long, within its bounds: a round of all sizes passes before the machine
// drifts.
constexpr double kBatchNs = 1'500'000;
constexpr std::int64_t kFewestIterations = 2;
constexpr std::int64_t kMostIterations = 256;  // a median needs no more, and a file has room
// Iterations before the timed ones of each visit take at least this long, with their barriers and
// comparisons: a processor that was asleep, or added large vectors, is slow for a while. Measured
// here, 8 bytes take the same time in the first iteration after it as in the thousandth.
constexpr double kWarmupNs = 700'000;
// … and their calls alone so long, within bounds, because the caches held another case: 256 KiB is
// back after 16 calls, 4 MiB and more after 4 (results/reference/measuring.md).
constexpr double kRefillNs = 6'000'000;
constexpr std::int64_t kFewestWarmup = 3;
constexpr std::int64_t kMostToRefill = 16;
// A case that takes longer is a giant. It passes through the caches anyway, so one iteration is a
// batch, and it would leave them cold for all others (a message of 16 MiB after one of 64 MiB takes
// 7.9 ms, 6.3, 5.4, 4.8 … and 4.0 from the ninth on): giants have rounds of their own.
constexpr double kGiantNs = 15'000'000;
// A visit that costs less is light.
constexpr double kLightSeconds = 0.004;
// What a sweep may take when the user does not say.
constexpr double kLeastBudgetSeconds = 1.8;
constexpr double kMostBudgetSeconds = 50;  // a minute, with what precedes and follows the rounds
constexpr double kSweepSeconds = 4.5;      // of sizes, unless visits would be too few: then so many
constexpr double kFewVisits = 8;
// What an interval usually needs (see EstimateMedian): enough for a sweep of sizes.
constexpr double kUsualRounds = 14;
// Of what is asked for by name: what a model exchanges, or what is compared.
constexpr double kVisitsOfNamed = 60;
// With fewer an interval is mostly a guess itself, and so says nothing of what is to come.
constexpr std::size_t kTellingRounds = 8;
// What is ordered at once takes about this long at most, unless it is a single batch.
constexpr double kOrderSeconds = 0.5;
// … of cases that were not visited yet, by their bytes: two iterations in memory that is touched
// for the first time.
constexpr double kFirstNsPerByte = 3;
// What a batch takes with its comparisons, over its iterations alone.
constexpr double kOfChecks = 2;
// Of fixed iterations that a budget may end, a batch: cases take turns.
constexpr double kTurnNs = 20'000'000;
constexpr std::int64_t kFirstTurn = 10;
// Of a step that was another's neighbour: it touches more memory than the caches hold, so that one
// iteration brings back what the processors remember at all.
constexpr std::uint32_t kWarmupOfSteps = 1;
constexpr std::int64_t kFewestSteps = 4;
// Of cases that need a number of rounds, also where a round takes long.
constexpr double kMostTimesTheBudget = 5;

}  // namespace

double MostSeconds(const plan::Plan& plan) {
  if (plan.iterations && !plan.time_budget_seconds) return std::numeric_limits<double>::infinity();
  const auto any = [&plan](const auto& is_so) { return std::ranges::any_of(plan.cases, is_so); };
  const bool patient =
      any([](const plan::PlannedCase& one) { return one.visits.fewest_rounds > 0; });
  const bool twice = any([](const plan::PlannedCase& one) { return one.rests; });
  const double budget = plan.time_budget_seconds.value_or(kMostBudgetSeconds);
  return (patient ? kMostTimesTheBudget : 1) * (twice ? 2 : 1) * budget;
}

Rounds::Rounds(const plan::Plan& plan, SampleBook& book, std::size_t outbox_records)
    : plan_(plan),
      book_(book),
      random_(Mix64(plan.seed)),
      outbox_records_(outbox_records),
      stopped_(plan.cases.size()) {
  BeginRepetition();
}

void Rounds::BeginRepetition() {
  for (std::size_t i = 0; i < stopped_.size(); ++i) {
    if (stopped_[i] == "lost") continue;
    stopped_[i] = plan_.cases[i].rests ? "not_needed" : "";
  }
  waiting_.clear();
  known_at_.reset();
}

void Rounds::Wake(const std::vector<std::size_t>& cases) {
  for (const std::size_t i : cases) {
    if (stopped_[i] == "not_needed") stopped_[i].clear();
  }
}

// Of a fixed count: as many as the outbox holds.
Batch Rounds::PlanFixedBatch(std::size_t case_index) const {
  const std::int64_t done = book_.Current(case_index).complete_rows();
  const std::int64_t left = *plan_.iterations - done;
  auto most = static_cast<std::int64_t>(outbox_records_ / RecordsOf(case_index));
  const std::int64_t visit = plan_.cases[case_index].visit_iterations;
  if (visit > 0) {
    most = left < 2 * visit ? left : visit;  // no visit is shorter, unless there is no other
  } else if (plan_.paired) {
    most = 1;  // cases take turns, so that drift meets all of them
  }
  if (plan_.time_budget_seconds && visit == 0) {
    const std::int64_t turn =
        Known(case_index) ? std::llround(kTurnNs / IterationNs(case_index)) : kFirstTurn;
    most = std::min(most, turn);
  }
  most = std::max<std::int64_t>(most, 1);
  return {.case_index = static_cast<std::uint32_t>(case_index),
          .warmup = done == 0 ? static_cast<std::uint32_t>(plan_.warmup) : 0,
          .iterations = static_cast<std::uint32_t>(std::min(left, most))};
}

// The time of an iteration decides the size of the batch; the first visit is a single one.
Batch Rounds::PlanBatch(std::size_t case_index) const {
  if (plan_.iterations) return PlanFixedBatch(case_index);
  Batch batch;
  batch.case_index = static_cast<std::uint32_t>(case_index);
  const plan::Visits& visits = plan_.cases[case_index].visits;
  const bool own_rhythm = visits.batch_ns > 0;
  if (!Known(case_index)) {
    batch.warmup = own_rhythm ? 0 : 1;
    batch.iterations = visits.multiple;
    return batch;
  }
  if (own_rhythm) {
    const std::int64_t multiple = visits.multiple;
    const std::int64_t times =
        std::llround(visits.batch_ns / IterationNs(case_index) / static_cast<double>(multiple));
    batch.iterations = static_cast<std::uint32_t>(
        multiple * std::clamp<std::int64_t>(times, 1, visits.most_iterations / multiple));
    return batch;
  }
  if (const std::uint32_t planned = plan_.cases[case_index].visit_iterations; planned > 0) {
    batch.iterations = planned;
    return batch;
  }
  if (IsGiant(case_index)) {
    batch.iterations = 1;
    return batch;
  }
  const std::int64_t fewest = plan_.paired ? kFewestSteps : kFewestIterations;
  batch.iterations = static_cast<std::uint32_t>(std::clamp<std::int64_t>(
      std::llround(kBatchNs / IterationNs(case_index)), fewest, kMostIterations));
  batch.warmup = plan_.paired ? kWarmupOfSteps : WarmupOf(case_index);
  return batch;
}

std::uint32_t Rounds::WarmupOf(std::size_t case_index) const {
  const std::int64_t least = std::clamp<std::int64_t>(
      std::llround(kRefillNs / IterationNs(case_index)), kFewestWarmup, kMostToRefill);
  const double each_ns = std::max(book_.Current(case_index).iteration_wall_ns, 1.0);
  return static_cast<std::uint32_t>(
      std::max(least, std::int64_t{std::llround(kWarmupNs / each_ns)}));
}

bool Rounds::Known(std::size_t case_index) const {
  return book_.Current(case_index).first_visit_ns > 0;
}

bool Rounds::AllKnown() const {
  return std::ranges::all_of(Running(), [this](std::size_t i) { return Known(i); });
}

// Judged by the first visit for good: a case does not change sides.
bool Rounds::IsGiant(std::size_t case_index) const {
  return book_.Current(case_index).first_visit_ns > kGiantNs;
}

// The cases of the next round: all for calibration, then giants until their share of the time is
// spent, then the others, then the rest of the giants.
std::vector<std::size_t> Rounds::Visitors(double seconds_left) const {
  if (plan_.paired || plan_.iterations) return Running();
  std::vector<std::size_t> unknown, giants, others;
  for (std::size_t i = 0; i < stopped_.size(); ++i) {
    if (!stopped_[i].empty()) continue;
    (!Known(i) ? unknown : IsGiant(i) ? giants : others).push_back(i);
  }
  if (!unknown.empty()) return unknown;
  // Every other round is for the light cases only: it costs little and they get twice the rounds.
  const bool heavy_too = begun_ % 2 == 0;
  std::vector<std::size_t> light;
  std::ranges::copy_if(others, std::back_inserter(light),
                       [this](std::size_t i) { return CostSeconds(i) < kLightSeconds; });
  // What visits take is known better and better, and the budget with it.
  const double others_turn = (BudgetSeconds() - known_at_.value_or(0)) * (1 - ShareOfGiants());
  const bool early = seconds_left > others_turn;
  if (!giants.empty() && (early || others.empty())) return giants;
  return heavy_too || light.empty() ? others : light;
}

double Rounds::CostSeconds(std::size_t case_index) const {
  return book_.Current(case_index).last_wall_ns * 1e-9;
}

std::size_t Rounds::RecordsOf(std::size_t case_index) const {
  const std::size_t parts = plan_.cases[case_index].parts.size();
  if (parts == 0) return 1;
  return 1 + (PartsRecordBytes(parts) + kSampleRecordBytes - 1) / kSampleRecordBytes;
}

double Rounds::UsualSeconds(std::size_t case_index) const {
  if (!plan_.paired && !IsGiant(case_index)) return BatchSeconds(case_index);
  // All batches are alike but the first, which also makes what others use, such as a model.
  const CaseBook& book = book_.Current(case_index);
  const Batch batch = PlanBatch(case_index);
  const double guess = kOfChecks * book.first_visit_ns * (batch.warmup + batch.iterations);
  const bool first = book.round_medians_ns.empty();
  return (first ? std::min(guess, book.least_wall_ns) : book.least_wall_ns) * 1e-9;
}

double Rounds::RoundSeconds() const {
  double seconds = 0;
  for (const std::size_t i : Running()) seconds += UsualSeconds(i);
  return seconds;
}

void Rounds::StopWhatDoesNotFit(double seconds_left) {
  if (plan_.paired) {  // half a round would compare nothing; but each case is visited once
    if (seconds_left <= 0 || (AllKnown() && RoundSeconds() > seconds_left)) StopForTime();
    return;
  }
  for (const std::size_t i : Running()) {
    if (seconds_left <= 0 || CostSeconds(i) > seconds_left) StopForTime(i);
  }
}

void Rounds::StopForTime(std::size_t case_index) {
  const bool any = book_.Current(case_index).complete_rows() > 0;
  const char* reason = any && plan_.iterations      ? "cut_short"
                       : any && Precise(case_index) ? "precision"
                                                    : "time_budget";
  stopped_[case_index] = reason;
}

void Rounds::StopForTime() {
  for (const std::size_t i : Running()) StopForTime(i);
}

double Rounds::BudgetSeconds() const {
  if (plan_.time_budget_seconds) {
    const std::vector<std::size_t> running = Running();
    const bool few = std::ranges::any_of(running, [this](std::size_t i) {
      return book_.Current(i).round_medians_ns.size() < plan_.cases[i].visits.fewest_rounds;
    });
    return (few ? kMostTimesTheBudget : 1) * *plan_.time_budget_seconds;
  }
  if (plan_.iterations) return std::numeric_limits<double>::infinity();
  double sizes_seconds = 0, named_seconds = 0;  // of a visit of each
  for (std::size_t i = 0; i < stopped_.size(); ++i) {
    if (stopped_[i] == "lost" || stopped_[i] == "not_needed") continue;
    if (!Known(i)) return kMostBudgetSeconds;
    const bool named = plan_.paired || !plan_.cases[i].model.empty();
    const double seconds = UsualSeconds(i);
    if (named || seconds >= kLightSeconds) (named ? named_seconds : sizes_seconds) += seconds;
  }
  const double sweep_seconds =
      kVisitsOfNamed * named_seconds +
      std::clamp(kSweepSeconds, kFewVisits * sizes_seconds, kUsualRounds * sizes_seconds);
  return std::clamp(sweep_seconds, kLeastBudgetSeconds, kMostBudgetSeconds);
}

// Of the next batch.
double Rounds::BatchSeconds(std::size_t case_index) const {
  if (!book_.Current(case_index).round_medians_ns.empty()) return CostSeconds(case_index);
  if (Known(case_index)) {  // the first visit has a warm-up iteration, and only a few others
    const Batch batch = PlanBatch(case_index);
    const double first = 1 + std::max<double>(1, plan_.cases[case_index].visits.multiple);
    return CostSeconds(case_index) * (batch.warmup + batch.iterations) / first;
  }
  const std::int64_t bytes = plan::BytesOf(plan_.cases[case_index], plan_.world_size);
  return static_cast<double>(bytes) * kFirstNsPerByte * 1e-9;
}

// As many visits for each, of giants and others.
double Rounds::ShareOfGiants() const {
  double giants = 0;
  for (const std::size_t i : Running()) giants += IsGiant(i) ? UsualSeconds(i) : 0;
  return giants / RoundSeconds();
}

void Rounds::BeginRound(double seconds_left) {
  if (AllKnown() && !known_at_) known_at_ = BudgetSeconds() - seconds_left;
  std::vector<std::size_t> order = Visitors(seconds_left);
  if (!plan_.iterations) random_.Shuffle(order);
  if (!plan_.iterations && !AllKnown()) {  // small ones tell of progress soon, at little cost
    std::ranges::sort(order, {}, [this](std::size_t i) {
      return std::pair(plan::BytesOf(plan_.cases[i], plan_.world_size), i);
    });
  }
  double seconds = 0;
  for (const std::size_t i : order) seconds += BatchSeconds(i);
  if (!plan_.paired && seconds > seconds_left) {
    std::ranges::stable_sort(
        order, {}, [this](std::size_t i) { return book_.Current(i).round_medians_ns.size(); });
  }
  waiting_.assign(order.begin(), order.end());
  ++begun_;
}

Round Rounds::Next(double elapsed_seconds) {
  double seconds_left = BudgetSeconds() - elapsed_seconds;
  StopWhatDoesNotFit(seconds_left);
  std::erase_if(waiting_, [this](std::size_t i) { return !stopped_[i].empty(); });
  if (waiting_.empty()) BeginRound(seconds_left);
  // Cases that are compared are visited together, once each was visited alone.
  const bool in_pieces = !plan_.iterations || plan_.time_budget_seconds;
  Round round;
  round.number = begun_ - 1;
  double seconds = 0;
  std::size_t records = 0;
  while (!waiting_.empty()) {
    const std::size_t i = waiting_.front();
    const Batch batch = PlanBatch(i);
    // The outbox is drained once an order: what does not fit waits for the next.
    records += batch.iterations * RecordsOf(i);
    seconds += plan_.paired && Known(i) ? 0 : BatchSeconds(i);
    const bool full = records > outbox_records_ || (in_pieces && seconds > kOrderSeconds);
    if (full && !round.batches.empty()) break;
    waiting_.pop_front();
    if (!plan_.paired && CostSeconds(i) > seconds_left) continue;
    seconds_left -= CostSeconds(i);
    round.batches.push_back(batch);
  }
  return round;
}

bool Rounds::Precise(std::size_t case_index) const {
  const std::vector<double>& medians = book_.Current(case_index).round_medians_ns;
  return !medians.empty() &&
         stats::EstimateMedian(medians).relative_half_width() <= plan_.precision;
}

void Rounds::Close() {
  book_.CloseRound(plan_);
  const std::vector<std::size_t> running = Running();
  const bool all = std::ranges::all_of(running, [this](std::size_t i) { return Precise(i); });
  for (std::size_t i = 0; i < stopped_.size(); ++i) {
    if (!stopped_[i].empty()) continue;
    const CaseBook& book = book_.Current(i);
    if (plan_.iterations) {
      if (book.complete_rows() >= *plan_.iterations) stopped_[i] = "iterations";
      continue;
    }
    if (plan_.paired ? all : Precise(i)) stopped_[i] = "precision";
  }
}

void Rounds::StopAll(const std::string& reason) {
  for (std::size_t i = 0; i < stopped_.size(); ++i) {
    if (!stopped_[i].empty()) continue;
    stopped_[i] = book_.Current(i).complete_rows() > 0 ? reason : "not_run";
  }
}

std::size_t Rounds::visited() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < stopped_.size(); ++i) count += Known(i);
  return count;
}

std::vector<std::size_t> Rounds::Running() const {
  std::vector<std::size_t> cases;
  for (std::size_t i = 0; i < stopped_.size(); ++i) {
    if (stopped_[i].empty()) cases.push_back(i);
  }
  return cases;
}

// The interval shrinks with the square root of the rounds.
double Rounds::RoundsToGo(std::size_t case_index) const {
  const std::vector<double>& medians = book_.Current(case_index).round_medians_ns;
  const double done = static_cast<double>(medians.size());
  if (done < kUsualRounds) return kUsualRounds - done;
  const double ratio = stats::EstimateMedian(medians).relative_half_width() / plan_.precision;
  return std::isfinite(ratio) ? std::max(1.0, done * (ratio * ratio - 1)) : done;
}

double Rounds::SecondsToGo(double elapsed_seconds) const {
  const double left = std::max(BudgetSeconds() - elapsed_seconds, 0.0);
  const std::vector<std::size_t> running = Running();
  double seconds = 0, most_rounds = 0;
  for (const std::size_t i : running) {
    if (plan_.iterations || book_.Current(i).round_medians_ns.size() < kTellingRounds) return left;
    seconds += CostSeconds(i) * RoundsToGo(i);
    most_rounds = std::max(most_rounds, RoundsToGo(i));
  }
  return std::min(left, plan_.paired ? most_rounds * RoundSeconds() : seconds);
}

}  // namespace lockstep::bench::measure
