// kind = "sharded_loading" and "stream_race".
#include <fmt/format.h>

#include "core/base/named_members.h"
#include "stress/scenario/scenario_tables.h"

namespace lockstep::stress::scenario {
namespace {

constexpr std::int64_t kMostSeed = 1'000'000'000;
constexpr std::int64_t kMostEpochs = 1'000'000'000;
constexpr std::int64_t kMostSamples = 1'000'000;
void ReadSampler(TomlFields& fields, int ranks, LoadingProgram& program) {
  fields.ReadPerRank("samples", ranks, program.samples.values, {1, kMostSamples});
  fields.ReadPerRank("seed", ranks, program.seed.values, {0, kMostSeed});
  fields.Read("batch", program.batch, {1, kMostSamples});
  fields.Read("epochs", program.epochs, {1, kMostEpochs});
  LOCKSTEP_FIELDS(fields.Read, program, shuffle, drop_last, set_epoch, weighted);
  if (!program.weighted) return;
  for (const std::string_view other : {"shuffle", "drop_last"}) {
    if (fields.Has(other)) fields.Wrong(other, "a weighted sampler has no such thing; remove it");
  }
}

}  // namespace

LoadingProgram ReadLoading(TomlFields& fields, int ranks, const ScenarioOptions&) {
  constexpr std::string_view kBetween[] = {"barrier", "all_reduce", "none"};
  LoadingProgram program;
  ReadSampler(fields, ranks, program);
  fields.Read("workers", program.workers, {0, 64});
  fields.Read("decode_passes", program.decode_passes, 0, 1e4);
  std::vector<std::int64_t> slow_down;
  if (fields.ReadPerRank("slow_down", ranks, slow_down, {1, 1000})) {
    program.slow_down.values.assign(slow_down.begin(), slow_down.end());
  }
  fields.ReadEnum("between", kBetween, program.between);
  fields.ReadEnum("after_finish", kAfterFinishNames, program.after_finish);
  return program;
}

StreamRaceProgram ReadStreamRace(TomlFields& fields, int, const ScenarioOptions&) {
  StreamRaceProgram program;
  if (!fields.Has("pattern")) {
    fields.Wrong("pattern", "missing; choose from {}", fmt::join(kRacePatternNames, ", "));
  }
  fields.ReadEnum("pattern", kRacePatternNames, program.pattern);
  fields.ReadEnum("guard", kRaceGuardNames, program.guard);
  fields.Read("rounds", program.rounds, {1, 1'000'000});
  fields.Read("count", program.count, {1, 1 << 28});
  fields.Read("work_us", program.work_us, 0, 1e7);
  fields.Read("host_us", program.host_us, 0, 1e7);
  fields.ReadEnum("after_finish", kAfterFinishNames, program.after_finish);
  return program;
}

}  // namespace lockstep::stress::scenario
