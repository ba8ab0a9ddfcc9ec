// A case as its runner sees it, without ranks: the list of the fake coordinator is all that
// happens. The text is what tests compare; figures of time are of the coordinator's virtual clock.
#include "stress/run/testing/conduct.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "core/control/records.h"
#include "core/verdict/testing/history.h"
#include "stress/cases/assess.h"
#include "stress/cases/catalogue.h"
#include "stress/run/case_options.h"
#include "stress/run/case_runner.h"

namespace lockstep::stress::run {
namespace {

std::string PlaceOf(const Membership& place) {
  return fmt::format(
      "generation {} as {} of {} from {}{}", place.generation, place.rank, place.size,
      place.first_iteration,
      place.fired.empty() ? "" : fmt::format(" fired {}", fmt::join(place.fired, ",")));
}

std::string TextOf(const control::Message& message) {
  switch (message.type) {
    case kCaseMessage: {
      const Membership place = Understand<CaseOrder>(message.payload).value().membership;
      return "case: " + PlaceOf(place);
    }
    case kAppliedMessage:
      return "applied";
    case kAbortMessage:
      return "abort " + message.payload;
    case kRebuildMessage:
      return "rebuild: " + PlaceOf(Understand<Membership>(message.payload).value());
    default:
      return fmt::format("message {}", message.type);
  }
}

cases::StressCase CaseOf(const StressScript& script) {
  cases::StressCase made;
  made.text = fmt::format(
      "name = \"a/b\"\nranks = {}\n[workload]\nkind = \"all_reduce_loop\"\nrounds = 5\n{}{}",
      script.ranks, script.lingers ? "after_finish = \"linger\"\n" : "",
      script.recovery.empty() ? "" : fmt::format("[recovery]\nmode = \"{}\"\n", script.recovery));
  made.scenario = scenario::ParseScenario(made.text, "a.toml").value();
  made.faults = script.faults;
  made.seed = 1;
  return made;
}

// "rank_killed of 1, proved"
std::string TextOf(const verdict::Finding& finding) {
  return fmt::format(
      "{} of {}, {}", finding.cause.name(),
      finding.culprits.empty() ? "nobody" : fmt::format("{}", fmt::join(finding.culprits, ",")),
      finding.proved ? "proved" : "suspected");
}

std::string SecondsOf(double seconds) {
  return std::isnan(seconds) ? "-" : fmt::format("{:.3f}", seconds);
}

std::string TextOf(const cases::Recovery& recovery) {
  std::string text = fmt::format(
      "recovery {}: {}, lost {}, members {}, from {}; s: {} {} {} {}\n", recovery.generation,
      scenario::NameOf(recovery.outcome), fmt::join(recovery.lost, ","),
      fmt::join(recovery.members, ","), recovery.first_iteration,
      SecondsOf(recovery.detect_seconds), SecondsOf(recovery.abort_seconds),
      SecondsOf(recovery.rebuild_seconds), SecondsOf(recovery.resume_seconds));
  if (recovery.finding) text += fmt::format("  {}\n", TextOf(*recovery.finding));
  return text;
}

std::string TextOf(const cases::StressCase& stress_case, const cases::CaseResult& result) {
  std::string text;
  for (const cases::Recovery& recovery : result.facts.recoveries) text += TextOf(recovery);
  std::vector<std::string_view> outcomes;
  for (const verdict::RankOutcome& rank : result.judgement.outcomes)
    outcomes.push_back(verdict::NameOf(rank.outcome));
  text += fmt::format("{}: {}", verdict::NameOf(result.verdict), fmt::join(outcomes, ","));
  if (result.facts.detected_after_seconds) {
    text += fmt::format(" after {:.3f} s", *result.facts.detected_after_seconds);
  }
  text += "\n";
  for (const verdict::Finding& finding : result.judgement.findings) text += TextOf(finding) + "\n";
  if (result.verdict == verdict::Verdict::kUnknown) text += fmt::format("because {}\n", result.why);
  for (std::size_t i = 0; i < stress_case.faults.size(); ++i) {
    text += fmt::format("fault {} {}\n", i, result.facts.fired[i] ? "fired" : "did not fire");
  }
  return text;
}

}  // namespace

std::string Conduct(const StressScript& script, coordinator::Script steps) {
  const auto name = [](const control::Message& message) { return TextOf(message); };
  coordinator::FakeCoordinator coordinator(script.ranks, std::move(steps), name, script.hosts);
  CaseOptions options;
  options.backend = script.backend;
  options.limit_seconds = script.limit_seconds;
  const cases::StressCase stress_case = CaseOf(script);
  CaseRunner runner(coordinator, options);
  runner.SetSave([&coordinator] { coordinator.Note("save"); });
  const Result<cases::CaseResult> result = runner.Run(stress_case);
  std::string text;
  bool stacks = false;
  for (const std::string& command : coordinator.commands()) {
    const bool usual = command == "start" || command == "end" || command == "collect" ||
                       command.find(" case: generation 0 ") != std::string::npos ||
                       command.find(" use 0") != std::string::npos ||
                       command.find(" watch 0") != std::string::npos;
    stacks = stacks || command == "collect";
    if (!usual || script.all_commands) text += command + "\n";
  }
  if (!stacks) text += "no stacks\n";
  text += result.ok() ? TextOf(stress_case, *result) : result.status().message() + "\n";
  if (runner.terminated()) text += "no further case\n";
  if (coordinator.left() > 0) text += fmt::format("{} steps were not taken\n", coordinator.left());
  return text;
}

coordinator::ScriptStep Finished(int rank, std::int64_t completed) {
  return coordinator::Said(rank, kReportMessage,
                           control::Encode(workloads::ProgramReport{
                               .status = OkStatus(), .where = "script", .completed = completed}));
}

coordinator::ScriptStep Raised(int rank, const std::string& error, std::int64_t completed) {
  return coordinator::Said(
      rank, kReportMessage,
      control::Encode(workloads::ProgramReport{
          .status = SystemFailed(error), .where = "script", .completed = completed}));
}

coordinator::ScriptStep Aborted(int rank, int generation) {
  return coordinator::Said(rank, kAbortedMessage, fmt::format("{}", generation));
}

coordinator::ScriptStep Connecting(int rank, int generation, int place, int size) {
  return coordinator::Said(
      rank, kConnectingMessage,
      control::Encode(Membership{.generation = generation, .rank = place, .size = size}));
}

coordinator::ScriptStep Connected(int rank, int generation, double at_seconds) {
  return coordinator::Said(rank, kConnectedMessage,
                           fmt::format("{} {:.0f}", generation,
                                       at_seconds * 1e9 + coordinator::FakeCoordinator::kBeginNs));
}

coordinator::ScriptStep Fired(int rank, int fault) {
  return coordinator::Said(rank, kFiredMessage, fmt::format("{}", fault));
}

coordinator::ScriptStep Quiet(int rank) {
  return coordinator::Of(coordinator::EventKind::kQuiet, rank);
}

coordinator::ScriptStep Terminate() { return coordinator::Of(coordinator::EventKind::kTerminate); }

coordinator::ScriptStep BothDone() {
  return coordinator::Ranks({verdict::After49(0).Leaves(0), verdict::After49(1).Leaves(0)});
}

}  // namespace lockstep::stress::run
