// A made-up run with given medians, for tests of compare and trend. Its slower rank takes exactly
// the given time in every iteration, so figures are exact.
#include "results/compare/testing/example_launch.h"

#include <fmt/core.h>
#include <time.h>

#include <cmath>

namespace lockstep::results::compare {
namespace {

store::CaseRecord CaseOf(const std::string& name, double median_ns) {
  store::CaseRecord record;
  record.name = name;
  record.backend = "mpi";
  record.device = "host";
  record.ranks = 2;
  record.operations = {{collective::Collective::kAllReduce, collective::DataType::kF32,
                        collective::Reduction::kSum, collective::Blocking::kBlocking, 1024, 0}};
  record.bytes = 4096;
  record.summary.iterations = record.summary.rounds = 5;
  record.summary.median_ns = median_ns;
  record.summary.stopped_by = "precision";
  record.judgement.verdict = verdict::Verdict::kPass;
  record.judgement.outcomes = {{0, verdict::Outcome::kFinished, 0, 0, "", 0, ""},
                               {1, verdict::Outcome::kFinished, 0, 0, "", 0, ""}};
  record.samples.ranks = 2;
  for (std::int64_t i = 0; i < 5; ++i) {
    record.samples.round.push_back(static_cast<std::int32_t>(i));
    const std::int64_t entry_ns = 1'000'000'000 * i;
    for (const double part : {0.95, 1.0}) {
      record.samples.entry_ns.push_back(entry_ns);
      record.samples.exit_ns.push_back(entry_ns + std::llround(part * median_ns));
    }
  }
  return record;
}

}  // namespace

store::Run RunOf(const ExampleLaunch& launch) {
  store::Run run;
  run.id = fmt::format("{:08x}", launch.number);
  run.name = "bench_allreduce";
  run.lockstep = launch.lockstep;
  run.started_at = launch.started_at;
  run.command_line = fmt::format("bench_allreduce -b 8 --output run{}.h5", launch.number);
  run.verdict = run.judgement.verdict = verdict::Verdict::kPass;
  run.environment = {{"host/driver", launch.driver},
                     {"host/memory_available", fmt::format("{}", 1000 + launch.number)},
                     {"ranks/0/host", launch.host},
                     {"ranks/1/host", launch.host}};
  run.floors = {{"copy_gbps_alone", 10}};
  run.plan_text = "{}";
  run.plan_hash = "0123456789abcdef";
  for (const auto& [name, median_ns] : launch.medians_ns) {
    run.cases.push_back(CaseOf(name, median_ns));
  }
  return run;
}

std::string TimeOf(int days, int minutes) {
  tm first{};
  first.tm_year = 126;
  first.tm_mon = 8;
  first.tm_mday = 1;
  const time_t seconds = timegm(&first) + 86'400 * static_cast<time_t>(days) + 60 * minutes;
  tm time{};
  gmtime_r(&seconds, &time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", time.tm_year + 1900, time.tm_mon + 1,
                     time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec);
}

}  // namespace lockstep::results::compare
