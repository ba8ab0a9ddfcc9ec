// The size of batches and the choice of visitors, from what visits cost so far. Cases that are
// compared are all visited or none; giants have rounds of their own; a case that cannot fit into
// the time budget stops.
#include "bench/measure/rounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/stats/stats.h"

namespace lockstep::bench::measure {
namespace {

// A batch lasts about this long, within its bounds: a round of all sizes passes before the machine
// drifts.
constexpr double kBatchNs = 1'500'000;
constexpr std::int64_t kFewestIterations = 2;
constexpr std::int64_t kMostIterations = 64;
// Iterations before the timed ones of each visit. The rank was asleep between rounds and the caches
// held another case: measured here, 256 KiB is back after two iterations, 4 MiB after four, 16 MiB
// after nine.
constexpr std::int64_t kWarmup = 4;
constexpr std::int64_t kWarmupOfLarge = 8;
constexpr double kLargeNs = 700'000;
// A case that takes longer is a giant. It passes through the caches anyway, so one iteration is a
// batch, and it would leave them cold for all others (a message of 16 MiB after one of 64 MiB takes
// 7.9 ms, 6.3, 5.4, 4.8 … and 4.0 from the ninth on): giants have rounds of their own.
constexpr double kGiantNs = 15'000'000;
// A visit that costs less is light.
constexpr double kLightSeconds = 0.004;
// What a sweep may take when the user does not say.
constexpr double kLeastBudgetSeconds = 6;
constexpr double kVisits = 25;
constexpr double kShareOfGiants = 0.4;
// What an interval usually needs (see EstimateMedian): a guess for the progress line.
constexpr double kUsualRounds = 14;
// Of a step that was another's neighbour: it touches more memory than the caches hold, so that one
// iteration brings back what the processors remember at all.
constexpr std::uint32_t kWarmupOfSteps = 1;
constexpr std::int64_t kFewestSteps = 4;
// Of cases that need a number of rounds, also where a round takes long.
constexpr double kMostTimesTheBudget = 5;

}  // namespace

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
}

void Rounds::Wake(const std::vector<std::size_t>& cases) {
  for (const std::size_t i : cases) {
    if (stopped_[i] == "not_needed") stopped_[i].clear();
  }
}

// The time of an iteration decides the size of the batch; the first visit is a single one.
Batch Rounds::PlanBatch(std::size_t case_index) const {
  Batch batch;
  batch.case_index = static_cast<std::uint32_t>(case_index);
  if (plan_.iterations) {
    // Paired cases take turns, so that drift meets all of them.
    const auto most = plan_.paired ? std::int64_t{1} : static_cast<std::int64_t>(outbox_records_);
    const CaseBook& book = book_.Current(case_index);
    batch.iterations =
        static_cast<std::uint32_t>(std::min(*plan_.iterations - book.complete_rows(), most));
    batch.warmup = book.complete_rows() == 0 ? static_cast<std::uint32_t>(plan_.warmup) : 0;
    return batch;
  }
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
  batch.warmup = plan_.paired                         ? kWarmupOfSteps
                 : IterationNs(case_index) > kLargeNs ? kWarmupOfLarge
                                                      : kWarmup;
  return batch;
}

bool Rounds::Known(std::size_t case_index) const {
  return book_.Current(case_index).first_visit_ns > 0;
}

double Rounds::IterationNs(std::size_t case_index) const {
  const CaseBook& book = book_.Current(case_index);
  return book.round_medians_ns.empty() ? book.first_visit_ns : stats::Median(book.round_medians_ns);
}

// Judged by the first visit for good: a case does not change sides.
bool Rounds::IsGiant(std::size_t case_index) const {
  return book_.Current(case_index).first_visit_ns > kGiantNs;
}

// The cases of the next round: all for calibration, then giants until their share of the time is
// spent, then the others, then the rest of the giants.
std::vector<std::size_t> Rounds::Visitors(double seconds_left) const {
  if (plan_.paired) return Running();
  std::vector<std::size_t> unknown, giants, others;
  for (std::size_t i = 0; i < stopped_.size(); ++i) {
    if (!stopped_[i].empty()) continue;
    (!Known(i) ? unknown : IsGiant(i) ? giants : others).push_back(i);
  }
  if (!unknown.empty()) return unknown;
  // Every other round is for the light cases only: it costs little and they get twice the rounds.
  const bool heavy_too = next_number_ % 2 == 0;
  std::vector<std::size_t> light;
  for (const std::size_t i : others) {
    if (CostSeconds(i) < kLightSeconds) light.push_back(i);
  }
  const bool early = seconds_left > BudgetSeconds() * (1 - kShareOfGiants);
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

double Rounds::RoundSeconds() const {
  double seconds = 0;
  for (const std::size_t i : Running()) seconds += book_.Current(i).least_wall_ns * 1e-9;
  return seconds;
}

void Rounds::StopWhatDoesNotFit(double seconds_left) {
  if (plan_.paired) {  // half a round would compare nothing
    if (seconds_left <= 0 || RoundSeconds() > seconds_left) StopAll("time_budget");
    return;
  }
  for (std::size_t i = 0; i < stopped_.size(); ++i) {
    if (!stopped_[i].empty()) continue;
    if (seconds_left <= 0 || CostSeconds(i) > seconds_left) stopped_[i] = "time_budget";
  }
}

double Rounds::BudgetSeconds() const {
  if (plan_.time_budget_seconds) {
    const std::vector<std::size_t> running = Running();
    const bool few = std::any_of(running.begin(), running.end(), [this](std::size_t i) {
      return book_.Current(i).round_medians_ns.size() < plan_.cases[i].visits.fewest_rounds;
    });
    return (few ? kMostTimesTheBudget : 1) * *plan_.time_budget_seconds;
  }
  double round_seconds = 0;
  for (std::size_t i = 0; i < stopped_.size(); ++i) {
    if (stopped_[i] == "lost" || stopped_[i] == "not_needed") continue;
    if (!Known(i)) return std::numeric_limits<double>::infinity();
    // The first visit of a giant finds cold memory; that of others has fewer iterations.
    const double cost =
        plan_.paired || IsGiant(i) ? book_.Current(i).least_wall_ns * 1e-9 : CostSeconds(i);
    if (plan_.paired || cost >= kLightSeconds) round_seconds += cost;
  }
  return std::max(kLeastBudgetSeconds, kVisits * round_seconds);
}

Round Rounds::Next(double elapsed_seconds) {
  double seconds_left = BudgetSeconds() - elapsed_seconds;
  if (!plan_.iterations) StopWhatDoesNotFit(seconds_left);
  std::vector<std::size_t> order = plan_.iterations ? Running() : Visitors(seconds_left);
  if (!plan_.iterations) random_.Shuffle(order);
  Round round;
  round.number = next_number_++;
  std::size_t records = 0;
  for (const std::size_t i : order) {
    const Batch batch = PlanBatch(i);
    // The outbox is drained once a round: what does not fit waits for the next.
    const std::size_t needs = batch.iterations * RecordsOf(i);
    if (records + needs > outbox_records_ && !round.batches.empty()) continue;
    if (!plan_.iterations && !plan_.paired && CostSeconds(i) > seconds_left) continue;
    records += needs;
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
  book_.CloseRound();
  const std::vector<std::size_t> running = Running();
  const bool all =
      std::all_of(running.begin(), running.end(), [this](std::size_t i) { return Precise(i); });
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

void Rounds::Lose(std::size_t case_index) { stopped_[case_index] = "lost"; }

void Rounds::StopAll(const std::string& reason) {
  for (std::size_t i = 0; i < stopped_.size(); ++i) {
    if (!stopped_[i].empty()) continue;
    stopped_[i] = book_.Current(i).complete_rows() > 0 ? reason : "not_run";
  }
}

bool Rounds::finished() const { return running() == 0; }

std::size_t Rounds::running() const { return Running().size(); }

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

double Rounds::SecondsToGo() const {
  double seconds = 0;
  for (std::size_t i = 0; i < stopped_.size(); ++i) {
    if (stopped_[i].empty()) seconds += CostSeconds(i) * RoundsToGo(i);
  }
  return seconds;
}

}  // namespace lockstep::bench::measure
