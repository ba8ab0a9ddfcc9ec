// The parts of a run that are printed on demand: environment and history.
#include <fmt/core.h>

#include <algorithm>

#include "core/base/wrap.h"
#include "core/verdict/wording.h"
#include "results/report/figures.h"
#include "results/report/report.h"

namespace lockstep::results::report {
namespace {

bool HasInvocation(journal::EventKind kind) {
  return kind == journal::EventKind::kEnqueue || kind == journal::EventKind::kStart ||
         kind == journal::EventKind::kEnd || kind == journal::EventKind::kError ||
         journal::IsSplit(kind);
}

// Nanoseconds since the run began; the first ticks of a journal may lie before it.
double NsOf(const store::Run& run, const journal::JournalEvent& event) {
  return static_cast<double>(static_cast<std::int64_t>(event.ticks - run.origin_ticks)) *
         run.ns_per_tick;
}

std::string EventLine(const store::Run& run, const journal::JournalEvent& event) {
  std::string what;
  if (HasInvocation(event.kind)) what = verdict::DescribeInvocation(event);
  if (event.kind == journal::EventKind::kPhase) what = journal::NameOf(event.phase);
  if (event.kind == journal::EventKind::kCase) what = std::to_string(event.case_index);
  if (event.kind == journal::EventKind::kExit) what = fmt::format("code {}", event.value);
  if (event.kind == journal::EventKind::kDeath) what = fmt::format("wait status {}", event.value);
  return fmt::format("  {:14.6f} s  {:8}{}{}\n", NsOf(run, event) / 1e9,
                     journal::NameOf(event.kind), what.empty() ? "" : " ", what);
}

}  // namespace

std::string FormatEnvironment(const store::Run& run) {
  // Without a group; this one is not of the machine.
  std::string facts = fmt::format("  lockstep: {}\n", store::LockstepOf(run));
  std::string groups;
  std::string heading;
  for (const auto& [fact, value] : run.environment) {
    const std::size_t slash = fact.rfind('/');
    if (slash == std::string::npos) {
      facts += fmt::format("  {}: {}\n", fact, OneLine(value));
      continue;
    }
    const std::string group = fact.substr(0, slash);
    if (group != heading) groups += "  " + group + "\n";
    heading = group;
    groups += fmt::format("    {}: {}\n", fact.substr(slash + 1), OneLine(value));
  }
  return "Environment\n" + facts + groups;
}

std::string FormatHistory(const store::Run& run, std::size_t most) {
  std::string text = "History\n";
  for (const store::RankHistory& history : run.history) {
    const std::size_t shown = std::min(most, history.events.size());
    text += fmt::format("  rank {}, lifetime {}: {} events{}, {} before them\n",
                        history.rank, history.lifetime, history.events.size(),
                        shown < history.events.size() ? fmt::format(", the newest {}", shown) : "",
                        history.missed);
    for (std::size_t i = history.events.size() - shown; i < history.events.size(); ++i) {
      text += EventLine(run, history.events[i]);
    }
  }
  return text;
}

}  // namespace lockstep::results::report
