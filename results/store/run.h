// A run in memory, exactly what its file holds: reporters see nothing else.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/version.h"
#include "core/collective/collective.h"
#include "core/journal/event.h"
#include "core/journal/gpu_sample.h"
#include "core/journal/worker_log.h"
#include "core/verdict/judge.h"
#include "core/verdict/outcome.h"

namespace lockstep::results::store {

inline constexpr int kSchemaVersion = 4;

// Times of one case: row = iteration, column = rank, on the run's common clock in nanoseconds
// since the run began. kNoTime: that rank did not get there.
struct Samples {
  static constexpr std::int64_t kNoTime = -1;
  int ranks = 0;
  std::vector<std::int64_t> entry_ns;  // iterations x ranks
  std::vector<std::int64_t> exit_ns;   // iterations x ranks
  std::vector<std::int32_t> round;     // iterations: the round that took it
  std::int64_t iterations() const { return static_cast<std::int64_t>(round.size()); }
};

// A named figure of every iteration beside its duration: where the time of a step went. Ranks
// become one value by `over`: "slowest" (that of the rank whose sample is the maximum, so that
// parts add up to it), "mean" or "max".
struct Part {
  std::string name;   // "forward_ns"
  std::string units;  // "ns"; "" for a ratio
  std::string over;
  std::vector<double> values;  // iterations x ranks; NaN: that rank did not get there
  double median = 0;           // over iterations, with its 95 % confidence interval
  double interval_low = 0;
  double interval_high = 0;
};

// What an option does: the ratio of two cases' times, from rounds that visited both.
struct OptionEffect {
  std::string option;  // "bucket_cap_mb"
  std::string value;   // of the case
  std::string baseline_value;
  std::int32_t case_index = 0;
  std::int32_t baseline = 0;  // the case that differs from it in this option only
  std::int64_t rounds = 0;    // that visited both
  double ratio = 0;           // baseline's time / the case's time: > 1 is faster than the baseline
  double interval_low = 0;    // 95 % confidence interval
  double interval_high = 0;
};

// A wrong result, where and what.
struct WrongResult {
  int rank = 0;
  std::int64_t iteration = 0;  // row of the samples; -1: a warm-up iteration
  std::int64_t operation = 0;  // index in the case's sequence of operations
  std::int64_t element = 0;    // of the receive buffer
  std::string expected;
  std::string got;
};

// The numbers of a case that tables show. A sample is the maximum over ranks of exit - entry;
// NaN where the samples cannot support the figure.
struct Summary {
  std::int64_t iterations = 0;
  std::int64_t rounds = 0;
  double median_ns = 0;
  // 95 % confidence interval of the median: what the rounds tell, with the drift of the machine
  // that a few seconds cannot tell; and of the rounds alone. Older files lack the latter: NaN.
  double interval_low_ns = 0;
  double interval_high_ns = 0;
  double rounds_low_ns = std::numeric_limits<double>::quiet_NaN();
  double rounds_high_ns = std::numeric_limits<double>::quiet_NaN();
  // Half the interval of the rounds, its longer side; in older files, of the other.
  double half_width_ns() const {
    return std::isnan(rounds_high_ns)
               ? std::max(interval_high_ns - median_ns, median_ns - interval_low_ns)
               : std::max(rounds_high_ns - median_ns, median_ns - rounds_low_ns);
  }
  double min_ns = 0;
  double p99_ns = 0;
  double max_ns = 0;
  int max_rank = -1;                  // the rank whose time was the maximum
  double rank_average_median_ns = 0;  // OSU's definition: median of the average over ranks
  double algorithm_gbps = 0;          // 1e9 bytes a second, as in nccl-tests
  double bus_gbps = 0;
  double floor_ns = 0;          // this host's limit for the case
  double percent_of_limit = 0;  // 100 * floor / median
  // Its 95 % interval, by those of the median and of the floor; older files lack it: NaN.
  double limit_low = std::numeric_limits<double>::quiet_NaN();
  double limit_high = std::numeric_limits<double>::quiet_NaN();
  // A cache line there and back just before the rounds: the least and the most. Where these differ,
  // processors moved or others used them, and the median is of two machines. NaN: not known.
  double line_least_ns = std::numeric_limits<double>::quiet_NaN();
  double line_most_ns = std::numeric_limits<double>::quiet_NaN();
  std::int64_t checked_elements = 0;
  std::int64_t wrong_elements = 0;
  std::string stopped_by;  // "precision", "time_budget", "iterations", "lost", "not_run"
};

// A case that had an expectation: what should have come of it, and how it was found out. What was
// found is in the case's judgement.
struct Trial {
  // The outcomes that are right for each rank: "hung|failed,finished"; empty: not said.
  std::string expected_outcomes;
  std::string expected_cause;  // empty: not said
  std::vector<int> expected_culprits;
  std::int32_t faults = 0;  // that were to be injected
  std::int32_t faults_fired = 0;
  std::string why;  // the verdict in words; of an unknown one what is missing
  // From the newest event of any rank to the finding; NaN: nothing was found.
  double detected_after_seconds = std::numeric_limits<double>::quiet_NaN();
  double seconds = 0;  // the whole case
  // The collective that the first finding names: its communicator, -1 when it names none.
  std::int32_t communicator = -1;
  std::int64_t sequence = -1;
};

// How the ranks of a case came by another communicator, or did not, after they had lost one.
struct RecoveryRecord {
  std::string mode;             // "shrink", "restart"
  std::string outcome;          // "resumed", "abort_hung", "rebuild_failed", "cut_short"
  std::string cause;            // of the failure: that of its first finding
  std::int32_t generation = 0;  // of the new communicator; the first of a case is 0
  std::vector<int> lost;
  std::vector<int> members;  // of the new communicator; empty: it was not begun
  std::int64_t first_iteration = 0;
  // One after the other, from the fault to the first collective that was complete on all members;
  // NaN: it did not get there, or is not known.
  double detect_seconds = std::numeric_limits<double>::quiet_NaN();
  double abort_seconds = std::numeric_limits<double>::quiet_NaN();
  double rebuild_seconds = std::numeric_limits<double>::quiet_NaN();
  double resume_seconds = std::numeric_limits<double>::quiet_NaN();
};

// What was measured between two ranks, a < b. NaN: it was not.
struct LinkPair {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  int a = 0;
  int b = 0;
  std::int64_t rounds = 0;       // that the medians are of
  double latency_ns = kUnknown;  // half round trip of 8 bytes: median, its 95 % confidence interval
  double latency_low_ns = kUnknown;
  double latency_high_ns = kUnknown;
  double forward_gbps = kUnknown;  // a to b, 1e9 bytes a second
  double back_gbps = kUnknown;     // b to a
  // The same when it was measured again, alone, because it or a partner's pair looked slow.
  double retest_latency_ns = kUnknown;
  double retest_forward_gbps = kUnknown;
  double retest_back_gbps = kUnknown;
  // "usual", "slow_link", "slow_host", "slow_rank", "unsteady" (slow, but not when measured again),
  // "too_busy" (its ranks waited for a processor in nearly all rounds), "not_judged",
  // "not_measured".
  std::string standing;
};

// All pairs of ranks that met.
struct LinkMatrix {
  std::int64_t bytes = 0;                        // of the messages that tell the bandwidth
  double slow_factor = 0;                        // slower than usual by less is not slow
  double usual_latency_ns = LinkPair::kUnknown;  // of the pairs that are judged
  double usual_gbps = LinkPair::kUnknown;
  std::vector<LinkPair> pairs = {};  // ascending
  // A rank, with all others at once: what it sent a second; NaN: not measured. Empty: nobody did.
  std::vector<double> all_at_once_gbps;
};

// Who waited for whom: on the run's common clock, medians over the iterations that every rank
// completed; of loads, over the means of visits.
struct Arrivals {
  double skew_ns = 0;         // last entry - first entry: ranks came so far apart
  double transfer_ns = 0;     // last exit - last entry: what was left to do when all were there
  double clock_error_ns = 0;  // so far both can be off, because ranks on two hosts have two clocks
  int last_rank = -1;         // that came last most often
  double last_share = 0;      // … in this part of the iterations
};

struct CaseRecord {
  std::string name;  // unique in the run
  std::string backend;
  std::string device;  // "host"
  int ranks = 0;
  int repetition = 0;
  std::vector<collective::Operation> operations;  // one, or a bucket sequence in launch order
  bool in_place = false;
  std::int64_t bytes = 0;  // of all operations
  std::string model;       // "" when not from a model
  int bucket = -1;         // index in the model's sequence; -1: the whole sequence or no model
  double bucket_cap_mb = 0;
  std::vector<std::pair<std::string, std::string>> settings;  // options of a step; read sorted
  Samples samples;
  std::optional<Arrivals> arrivals = std::nullopt;  // none: one rank, or no whole iteration
  std::vector<Part> parts;
  Summary summary;
  std::vector<WrongResult> wrong;  // the first ones; summary.wrong_elements counts all
  verdict::Judgement judgement;
  std::optional<Trial> trial = std::nullopt;
  std::vector<RecoveryRecord> recoveries;
};

// Events of one rank's journal, one lifetime of its worker.
struct RankHistory {
  int rank = 0;
  int lifetime = 0;
  std::uint64_t missed = 0;
  std::vector<journal::JournalEvent> events;  // ticks of the coordinator's counter
};

// What a judge knew of one rank, beside the events of its journal: with them it can judge again.
struct EvidenceRecord {
  std::int32_t case_index = -1;  // whose judgement it led to; -1: that of the launch
  std::int32_t lifetime = 0;     // of the worker
  double deadline_seconds = 0;   // the judge's
  // As it was judged. Its journal has no events; of its device there are words only (`gpu`), of its
  // sockets the counters.
  verdict::RankEvidence known;
  // The events that were judged are those of the history from one index to the other.
  std::uint64_t first_event = 1;
  std::uint64_t last_event = 0;  // below the first: none were
  bool left = false;             // judged as if it had left in order after them
};

// A host's clock beside that of the coordinator's host, by which the run goes. How it is measured,
// and what the bounds of error mean: core/stats/clock_fit.h.
struct HostClock {
  std::string host;
  std::vector<int> ranks;
  // "reference" (the coordinator's), "estimated", "inconsistent" (it was set, or stood still) or
  // "unknown" (its agent did not answer). Moments of the last two do not compare with others.
  std::string state;
  double drift_ppm = 0;  // how much more it counts than the reference
  double drift_error_ppm = 0;
  double error_ns = 0;       // a bound for every stamp of this host
  double day_offset_ns = 0;  // its time of day minus the reference's, at the start
  double day_offset_error_ns = 0;
  double shortest_round_trip_ns = 0;
  std::int64_t exchanges = 0;
  std::int64_t probes = 0;
};

// Between two moments of the run the counter of a host showed `ticks`.
struct ClockAnchorPoint {
  std::int32_t host = 0;  // row of the clocks
  std::uint64_t ticks = 0;
  double low_ns = 0;  // since the run began
  double high_ns = 0;
};

// What `lockstep watch --report` keeps of a program: how long ranks waited for each other, and
// their newest calls. Moments are nanoseconds since watching began.
struct WatchedRank {
  std::int32_t rank = 0;
  std::int32_t pid = 0;
  double begun_ns = 0;  // its first and its last event
  double ended_ns = 0;
  std::int64_t calls = 0;      // that returned
  std::int64_t uncounted = 0;  // of these: the rank that they needed was not seen
  bool complete = true;        // false: watching ended before the program did
};

// The calls of one rank at one place of the program.
struct WaitPlace {
  std::int32_t rank = 0;
  std::string call;          // "MPI_Recv"
  std::string site;          // "solver.c:31"; "": not known
  std::string communicator;  // "world", "MPI_Comm_split at solver.c:12"; "": the call has none
  std::int64_t calls = 0;
  std::int64_t came_last = 0;  // collectives that it entered last of all members
  double waited_ns = 0;        // all of them together; the longest
  double longest_ns = 0;
};

struct WaitedFor {
  std::int32_t place = 0;  // row of the places
  std::int32_t rank = 0;   // the rank that was waited for
  std::int64_t times = 0;
  double waited_ns = 0;
};

struct WatchedCall {
  std::int32_t place = 0;  // row of the places
  std::int32_t thread = 0;
  std::int32_t peer = -1;  // rank in the communicator, or the root; -1: none, or any
  std::int32_t tag = -1;
  double entered_ns = 0;
  double left_ns = 0;
  double waited_ns = 0;
  std::int32_t waited_for = -1;
};

struct Watched {
  std::vector<WatchedRank> ranks;
  std::vector<WaitPlace> places;
  std::vector<WaitedFor> blamed;
  std::vector<WatchedCall> calls;  // the newest of each rank
};

struct Run {
  int schema_version = kSchemaVersion;
  Version lockstep;        // that measured it; no number: an older file, which does not tell
  std::string id;          // 8 hexadecimal digits
  std::string name;        // "bench_allreduce"
  std::string started_at;  // "2026-11-21T10:44:25Z"
  double duration_seconds = 0;
  std::string command_line;
  int exit_code = 0;
  verdict::Verdict verdict = verdict::Verdict::kUnknown;
  std::string summary_line;  // the first line a person reads
  // Facts of the machine and the software: {"host/0/cpu_model", "Intel …"}; the path before the
  // last slash is a group of /environment. Sorted when read; a path given twice keeps the last.
  std::vector<std::pair<std::string, std::string>> environment;
  // The machine's floors and the clock, numbers with units in the name: {"copy_gbps_alone", 9.8}.
  std::vector<std::pair<std::string, double>> floors;
  std::string plan_text;  // JSON
  std::uint64_t seed = 0;
  std::string plan_hash;  // 16 hexadecimal digits
  std::vector<CaseRecord> cases;
  std::vector<OptionEffect> effects;
  std::string recommendation;  // what a person should do, by the effects; "" where there is none
  std::vector<RankHistory> history;
  std::vector<EvidenceRecord> evidence;  // of lifetimes that were judged
  std::optional<LinkMatrix> links;
  std::optional<Watched> watched;  // of a program that is not ours
  std::vector<HostClock> clocks;   // one a host, the reference first
  std::vector<ClockAnchorPoint> clock_anchors;
  std::vector<journal::PlacedGpuSample> gpu_samples;  // of every host, oldest first on each
  std::vector<journal::WorkerLog> logs;               // what libraries wrote of their errors
  verdict::Judgement judgement;                       // of the launch: the outcome of every rank
  double ns_per_tick = 1.0;
  std::uint64_t origin_ticks = 0;
  bool complete = true;  // false: saved on the way out (a signal, a lost coordinator)
};

// What measured it, in words.
inline std::string LockstepOf(const Run& run) {
  return run.lockstep.number.empty() ? "not recorded" : TextOf(run.lockstep);
}

}  // namespace lockstep::results::store
