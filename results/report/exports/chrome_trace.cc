// Turns journals and samples into slices of the Trace Event Format. Collectives of one communicator
// may overlap, so each gets a lane. What never ended reaches to the last event and says so. In
// simulations each lifetime counts from 0, and they are laid one after the other.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/journal/purpose.h"
#include "core/verdict/wording.h"
#include "results/report/exports/exports.h"
#include "results/report/figures.h"

namespace lockstep::results::report::exports {
namespace {

using Json = nlohmann::ordered_json;

// Threads of a rank's process. Operations of one communicator that are under way together do not
// nest, so each gets a lane of its own.
constexpr int kProgramThread = 0;
constexpr int kIterationThread = 1;
constexpr int kFirstLane = 10;
constexpr int kLanes = 16;

struct Slice {
  double start_us = 0;
  double end_us = 0;
};

// To nanoseconds, which is what was measured.
double Rounded(double us) { return std::round(us * 1e3) / 1e3; }

class Trace {
 public:
  explicit Trace(const store::Run& run) : run_(run) {}

  double MicrosecondsOf(const journal::JournalEvent& event) const {
    return static_cast<double>(static_cast<std::int64_t>(event.ticks - run_.origin_ticks)) *
           run_.ns_per_tick * 1e-3;
  }

  void AddSlice(int rank, int thread, const std::string& name, Slice at, Json args) {
    ranks_.insert(rank);
    const double start_us = Rounded(at.start_us);  // both ends, so that neighbours touch
    Add({{"name", name},
         {"cat", thread >= kFirstLane ? "collective" : "program"},
         {"ph", "X"},
         {"ts", start_us},
         {"dur", Rounded(std::max(0.0, Rounded(at.end_us) - start_us))},
         {"pid", rank},
         {"tid", thread},
         {"args", std::move(args)}});
  }

  void AddInstant(int rank, const std::string& name, double at_us, Json args) {
    ranks_.insert(rank);
    Add({{"name", name},
         {"cat", "event"},
         {"ph", "i"},
         {"s", "p"},
         {"ts", Rounded(at_us)},
         {"pid", rank},
         {"tid", kProgramThread},
         {"args", std::move(args)}});
  }

  void NameThread(int rank, int thread, const std::string& name) {
    if (!named_.insert({rank, thread}).second) return;
    AddMetadata("thread_name", rank, thread, {{"name", name}});
    AddMetadata("thread_sort_index", rank, thread, {{"sort_index", thread}});
  }

  std::string Finish() {
    for (const int rank : ranks_) {
      const std::string host = ValueOf(run_.environment, fmt::format("ranks/{}/host", rank));
      AddMetadata("process_name", rank, 0,
                  {{"name", fmt::format("rank {}{}{}", rank, host.empty() ? "" : " on ", host)}});
      AddMetadata("process_sort_index", rank, 0, {{"sort_index", rank}});
    }
    const Json about = {{"run", run_.id},
                        {"program", run_.name},
                        {"lockstep", store::LockstepOf(run_)},
                        {"started_at", run_.started_at},
                        {"verdict", verdict::NameOf(run_.verdict)},
                        {"headline", run_.summary_line},
                        {"command_line", run_.command_line}};
    // By time; a slice stays before those inside it.
    std::ranges::stable_sort(events_, {}, &Event::ts_us);
    std::string text =
        "{\"displayTimeUnit\":\"ns\",\"otherData\":" + Text(about) + ",\"traceEvents\":[";
    for (const Event& event : events_) {
      text += &event == events_.data() ? "\n" : ",\n";
      text += event.text;
    }
    return text + "\n]}\n";
  }

 private:
  static std::string Text(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  struct Event {
    double ts_us = 0;  // of metadata before all
    std::string text;
  };

  void Add(const Json& event) {
    const auto at = event.find("ts");
    events_.push_back({at == event.end() ? -INFINITY : at->get<double>(), Text(event)});
  }
  void AddMetadata(const char* name, int rank, int thread, Json args) {
    Add({{"name", name}, {"ph", "M"}, {"pid", rank}, {"tid", thread}, {"args", std::move(args)}});
  }

  const store::Run& run_;
  std::vector<Event> events_;
  std::set<int> ranks_;
  std::set<std::pair<int, int>> named_;
};

Json ArgumentsOf(const journal::JournalEvent& event) {
  Json args = {{"sequence", event.sequence},
               {"communicator", event.communicator},
               {"bytes", event.count * collective::SizeOf(event.type)},
               {"type", collective::NameOf(event.type)},
               {"count", event.count}};
  const collective::CollectiveInfo& info = collective::InfoOf(event.collective);
  if (info.reduces) args["reduction"] = collective::NameOf(event.reduction);
  if (info.rooted) args["root"] = event.root;
  const std::string purpose = journal::Describe(journal::UnpackAnnotation(event.value));
  if (!purpose.empty()) args["purpose"] = purpose;
  return args;
}

// The journal of one rank in one lifetime of its worker, as slices and instants.
class JournalTrace {
 public:
  JournalTrace(const store::RankHistory& history, double shift_us, Trace& trace)
      : history_(history), shift_us_(shift_us), trace_(trace) {}

  void Write() {
    trace_.NameThread(history_.rank, kProgramThread, "program");
    for (const journal::JournalEvent& event : history_.events) Take(event);
    if (history_.events.empty()) return;
    const double last_us = TimeOf(history_.events.back());
    ClosePhase(last_us);
    // What never ended reaches to the last event of the journal, and says so.
    for (auto& [key, open] : open_) {
      WriteCollective(open, last_us, "not finished");
    }
  }

 private:
  using Key = std::pair<std::uint16_t, std::uint64_t>;  // communicator, sequence
  struct Open {
    journal::JournalEvent event;
    double enqueued_us = NAN;
    double started_us = NAN;
  };

  double TimeOf(const journal::JournalEvent& event) const {
    return trace_.MicrosecondsOf(event) + shift_us_;
  }
  static Key KeyOf(const journal::JournalEvent& event) {
    return {event.communicator, event.sequence};
  }

  void Take(const journal::JournalEvent& event) {
    const double at_us = TimeOf(event);
    switch (event.kind) {
      case journal::EventKind::kEnqueue:
        open_[KeyOf(event)] = {event, at_us, NAN};
        break;
      case journal::EventKind::kStart: {
        Open& open = open_[KeyOf(event)];  // whose enqueue may be overwritten
        open.event = event;
        open.started_us = at_us;
        break;
      }
      case journal::EventKind::kEnd:
        End(event, at_us, "");
        break;
      case journal::EventKind::kError:
        End(event, at_us, "error");
        break;
      case journal::EventKind::kPhase:
        BeginPhase(std::string(journal::NameOf(event.phase)), at_us);
        break;
      case journal::EventKind::kIdle:
        BeginPhase("waits for an order", at_us);
        break;
      case journal::EventKind::kFault:
        Instant(fmt::format("fault {}", event.value), at_us, {});
        break;
      case journal::EventKind::kCase:
        Instant(fmt::format("case {}", event.case_index), at_us, {{"case", event.case_index}});
        break;
      case journal::EventKind::kExit:
        Instant(fmt::format("exit, code {}", event.value), at_us, {{"exit_code", event.value}});
        break;
      case journal::EventKind::kDeath:
        Instant("death", at_us, {{"wait_status", event.value}});
        ClosePhase(at_us);
        break;
      case journal::EventKind::kSplit:
      case journal::EventKind::kSplitEnd:
        Instant(fmt::format("{} {}", event.kind == journal::EventKind::kSplit ? "begins" : "leaves",
                            verdict::DescribeInvocation(event)),
                at_us, {{"communicator", event.communicator}});
        break;
      case journal::EventKind::kNone:
        break;
    }
  }

  void Instant(const std::string& name, double at_us, Json args) {
    args["lifetime"] = history_.lifetime;
    trace_.AddInstant(history_.rank, name, at_us, std::move(args));
  }

  void BeginPhase(const std::string& name, double at_us) {
    ClosePhase(at_us);
    phase_ = name;
    phase_us_ = at_us;
  }

  void ClosePhase(double at_us) {
    if (phase_.empty()) return;
    trace_.AddSlice(history_.rank, kProgramThread, phase_, {phase_us_, at_us},
                    {{"lifetime", history_.lifetime}});
    phase_.clear();
  }

  void End(const journal::JournalEvent& event, double at_us, const std::string& problem) {
    const auto found = open_.find(KeyOf(event));
    if (!problem.empty()) Instant(verdict::DescribeInvocation(event) + ": error", at_us, {});
    if (found == open_.end()) return;  // its beginning was overwritten
    WriteCollective(found->second, at_us, problem);
    open_.erase(found);
  }

  void WriteCollective(const Open& open, double end_us, const std::string& problem) {
    const bool started = std::isfinite(open.started_us);
    const double start_us = started ? open.started_us : open.enqueued_us;
    Json args = ArgumentsOf(open.event);
    args["lifetime"] = history_.lifetime;
    if (started && std::isfinite(open.enqueued_us)) {
      args["queued_us"] = Rounded(start_us - open.enqueued_us);
    }
    if (!problem.empty()) args["problem"] = started ? problem : problem + ", only queued";
    std::string name(collective::NameOf(open.event.collective));
    if (const auto purpose = args.find("purpose"); purpose != args.end()) {
      name += " " + purpose->get<std::string>();
    }
    if (!problem.empty()) name += " (" + problem + ")";
    trace_.AddSlice(history_.rank, LaneFor(open.event.communicator, {start_us, end_us}), name,
                    {start_us, end_us}, std::move(args));
  }

  // The first lane of the communicator that is free; the last one when none is.
  int LaneFor(std::uint16_t communicator, Slice at) {
    std::vector<double>& busy = lanes_[communicator];
    std::size_t lane = 0;
    while (lane < busy.size() && busy[lane] > at.start_us) ++lane;
    lane = std::min<std::size_t>(lane, kLanes - 1);
    busy.resize(std::max(busy.size(), lane + 1));
    busy[lane] = at.end_us;
    const int thread = kFirstLane + communicator * kLanes + static_cast<int>(lane);
    trace_.NameThread(history_.rank, thread,
                      fmt::format("communicator {}{}", communicator,
                                  lane == 0 ? "" : fmt::format(", in flight {}", lane + 1)));
    return thread;
  }

  const store::RankHistory& history_;
  double shift_us_;
  Trace& trace_;
  std::map<Key, Open> open_;
  std::map<std::uint16_t, std::vector<double>> lanes_;
  std::string phase_;
  double phase_us_ = 0;
};

// Parts that follow each other: those of the slowest rank add up to its iteration. Communication
// runs beside them.
bool Follows(const store::Part& part, std::size_t samples) {
  return part.units == "ns" && part.over == "slowest" && part.name != "communication_ns" &&
         part.values.size() == samples;
}

// The parts of sample k inside its iteration; none where they do not fit into it.
void WriteParts(const store::CaseRecord& record, std::size_t k, int rank, Slice iteration,
                Trace& trace) {
  std::vector<const store::Part*> parts;
  double sum_us = 0;
  for (const store::Part& part : record.parts) {
    if (!Follows(part, record.samples.entry_ns.size()) || !(part.values[k] > 0)) continue;
    parts.push_back(&part);
    sum_us += part.values[k] * 1e-3;
  }
  if (sum_us > iteration.end_us - iteration.start_us + 1) return;  // stamps of 1 us apart
  double at_us = iteration.start_us;
  for (const store::Part* part : parts) {
    const double end_us = std::min(at_us + part->values[k] * 1e-3, iteration.end_us);
    trace.AddSlice(rank, kIterationThread, part->name.substr(0, part->name.rfind("_ns")),
                   {at_us, end_us}, Json::object());
    at_us = end_us;
  }
}

// Iterations of one case, with the parts that follow each other inside.
void WriteIterations(const store::CaseRecord& record, Trace& trace) {
  const store::Samples& samples = record.samples;
  const auto ranks = static_cast<std::size_t>(samples.ranks);
  for (std::size_t k = 0; k < samples.entry_ns.size(); ++k) {
    if (samples.exit_ns[k] == store::Samples::kNoTime) continue;
    const int rank = static_cast<int>(k % ranks);
    const Slice at = {static_cast<double>(samples.entry_ns[k]) * 1e-3,
                      static_cast<double>(samples.exit_ns[k]) * 1e-3};
    trace.NameThread(rank, kIterationThread, "iterations");
    trace.AddSlice(rank, kIterationThread, record.name, at,
                   {{"iteration", k / ranks}, {"round", samples.round[k / ranks]}});
    WriteParts(record, k, rank, at, trace);
  }
}

// Calls of a program that was watched; the part that waited for another rank inside.
void WriteWatched(const store::Watched& watched, Trace& trace) {
  for (const store::WatchedCall& call : watched.calls) {
    if (!std::isfinite(call.entered_ns) || !std::isfinite(call.left_ns)) continue;
    const store::WaitPlace& place = watched.places[static_cast<std::size_t>(call.place)];
    trace.NameThread(place.rank, call.thread, fmt::format("thread {}", call.thread));
    Json args = {{"at", place.site}, {"communicator", place.communicator}};
    if (call.peer >= 0) args["peer"] = call.peer;
    if (call.tag >= 0) args["tag"] = call.tag;
    const Slice at = {call.entered_ns * 1e-3, call.left_ns * 1e-3};
    trace.AddSlice(place.rank, call.thread, place.call, at, std::move(args));
    if (call.waited_for < 0) continue;
    trace.AddSlice(place.rank, call.thread, fmt::format("waits for rank {}", call.waited_for),
                   {at.start_us, at.start_us + call.waited_ns * 1e-3}, Json::object());
  }
}

// What is added to the times of each lifetime. A simulation counts virtual time from 0 in each:
// there they are laid one after the other, 1 ms apart.
std::map<int, double> ShiftsUs(const store::Run& run, const Trace& trace) {
  std::map<int, Slice> lifetimes;
  for (const store::RankHistory& history : run.history) {
    for (const journal::JournalEvent& event : history.events) {
      const double at_us = trace.MicrosecondsOf(event);
      Slice& span = lifetimes.emplace(history.lifetime, Slice{at_us, at_us}).first->second;
      span = {std::min(span.start_us, at_us), std::max(span.end_us, at_us)};
    }
    lifetimes.emplace(history.lifetime, Slice{});  // without an event
  }
  const bool simulated = std::ranges::any_of(
      run.cases, [](const auto& record) { return record.backend.starts_with("sim"); });
  std::map<int, double> shifts_us;
  double next_us = 0;
  for (const auto& [lifetime, span] : lifetimes) {
    shifts_us[lifetime] = simulated ? next_us - span.start_us : 0;
    next_us += span.end_us - span.start_us + 1e3;
  }
  return shifts_us;
}

}  // namespace

std::string FormatChromeTrace(const store::Run& run) {
  Trace trace(run);
  const std::map<int, double> shifts_us = ShiftsUs(run, trace);
  for (const store::RankHistory& history : run.history) {
    JournalTrace(history, shifts_us.at(history.lifetime), trace).Write();
  }
  for (const store::CaseRecord& record : run.cases) WriteIterations(record, trace);
  if (run.watched) WriteWatched(*run.watched, trace);
  return trace.Finish();
}

}  // namespace lockstep::results::report::exports
