// Runs written out field by field, for tests of reports and exports. Golden files hold what reports
// make of them, so a change here changes those.
#include "results/report/testing/literal_run.h"

#include <limits>
#include <string>
#include <tuple>

namespace lockstep::results::report {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

store::CaseRecord Measured(const std::string& name, std::vector<collective::Operation> operations,
                           double median_ns, double factor) {
  store::CaseRecord record;
  record.name = name;
  record.backend = "mpi";
  record.device = "host";
  record.ranks = 2;
  record.operations = std::move(operations);
  for (const collective::Operation& operation : record.operations) {
    record.bytes += operation.count * collective::SizeOf(operation.type);
  }
  store::Summary& s = record.summary;
  s.iterations = 1200;
  s.rounds = 24;
  s.median_ns = median_ns;
  s.interval_low_ns = 0.97 * median_ns;
  s.interval_high_ns = 1.05 * median_ns;
  s.rounds_low_ns = median_ns;  // a drift of 3 % makes the interval of them
  s.rounds_high_ns = 1.04 * median_ns;
  s.min_ns = 0.8 * median_ns;
  s.p99_ns = 1.5 * median_ns;
  s.max_ns = 40 * median_ns;
  s.max_rank = 1;
  s.rank_average_median_ns = 0.9 * median_ns;
  s.algorithm_gbps = static_cast<double>(record.bytes) / median_ns;
  s.bus_gbps = factor * s.algorithm_gbps;
  s.floor_ns = 0.5 * median_ns;
  s.percent_of_limit = 50;
  s.limit_low = 48;
  s.limit_high = 52;
  s.line_least_ns = 64;
  s.line_most_ns = 298;
  s.checked_elements = 4800;
  s.stopped_by = "precision";
  record.judgement.verdict = verdict::Verdict::kPass;
  record.judgement.outcomes = {{0, verdict::Outcome::kFinished, 0, 0, "", 0, ""},
                               {1, verdict::Outcome::kFinished, 0, 0, "", 0, ""}};
  return record;
}

collective::Operation AllReduce(std::int64_t count,
                                collective::DataType type = collective::DataType::kF32) {
  return {collective::Collective::kAllReduce, type,  collective::Reduction::kSum,
          collective::Blocking::kBlocking,    count, 0};
}

}  // namespace

store::Run PassingRun() {
  store::Run run;
  run.id = "1a2b3c4d";
  run.name = "bench_allreduce";
  run.lockstep = {"1.2.3", "1a2b3c4", true};
  run.started_at = "2026-11-21T10:44:25Z";
  run.duration_seconds = 2.34;
  run.command_line = "bench_allreduce -b 8";
  run.verdict = verdict::Verdict::kPass;
  run.summary_line = "5 cases measured on 2 ranks";
  run.environment = {{"host/0/cpu_model", "Some CPU"}, {"host/0/kernel", "6.1"}, {"mpi", "4.1.4"}};
  run.floors = {{"copy_gbps_alone", 9.8125},
                {"copy_gbps_together", 8.5},
                {"reduce_gbps_together", 6.25},
                {"line_round_trip_ns", 212.5}};
  run.plan_text = "{}";
  run.seed = 42;
  run.plan_hash = "0123456789abcdef";
  run.cases = {Measured("all_reduce/8B", {AllReduce(2)}, 850, 1),
               Measured("all_reduce/64MiB", {AllReduce(16777216)}, 21.4e6, 1),
               Measured("all_reduce/8B/in_place", {AllReduce(2)}, 800, 1),
               Measured("barrier", {{collective::Collective::kBarrier}}, 600, 1),
               Measured("resnet50/cap25/all",
                        {AllReduce(2049000), AllReduce(7875584), AllReduce(6563840)}, 25e6, 1)};
  run.cases[2].in_place = true;
  store::Summary& barrier = run.cases[3].summary;
  barrier.algorithm_gbps = barrier.bus_gbps = barrier.percent_of_limit = kNan;
  barrier.checked_elements = 0;
  run.cases[4].model = "resnet50";
  run.cases[4].bucket_cap_mb = 25;
  run.judgement.verdict = verdict::Verdict::kPass;
  run.judgement.outcomes = run.cases[0].judgement.outcomes;
  return run;
}

store::Run FailingRun() {
  store::Run run = PassingRun();
  run.verdict = verdict::Verdict::kFail;
  run.exit_code = 1;
  run.complete = false;
  run.summary_line = "rank 1 was killed by signal 9 in all_reduce/64MiB; look who sent it (dmesg)";
  const verdict::Judgement judgement = {
      verdict::Verdict::kFail,
      {{0, verdict::Outcome::kHung, 0, 0, "all_reduce 50 (sequence 101 of communicator 0)", 5.04,
        "running, no system call\n#0 main"},
       {1, verdict::Outcome::kKilled, 0, 9, "all_reduce 50 (sequence 101 of communicator 0)", 0,
        ""}},
      {{verdict::Cause::kRankKilled,
        {1},
        true,
        "rank 1 was killed by signal 9",
        "Look who sent it: dmesg."}}};
  run.judgement = judgement;
  run.cases.resize(2);
  store::CaseRecord& lost = run.cases[1];
  lost.judgement = judgement;
  lost.summary = store::Summary();
  lost.summary.iterations = 3;
  lost.summary.rounds = 1;
  lost.summary.median_ns = 21e6;
  lost.summary.interval_low_ns = lost.summary.interval_high_ns = kNan;
  lost.summary.p99_ns = lost.summary.percent_of_limit = kNan;
  lost.summary.algorithm_gbps = lost.summary.bus_gbps = 3.2;
  lost.summary.max_ns = 22e6;
  lost.summary.max_rank = 0;
  lost.summary.stopped_by = "lost";
  journal::JournalEvent start;
  start.index = 1;
  start.ticks = 1500;
  start.kind = journal::EventKind::kStart;
  start.sequence = 101;
  start.nth = 50;
  start.count = 256;
  journal::JournalEvent death = start;
  death.index = 2;
  death.ticks = 2500;
  death.kind = journal::EventKind::kDeath;
  death.value = 9;
  run.history = {{1, 0, 7, {start, death}}};
  run.origin_ticks = 500;
  run.ns_per_tick = 1000;
  return run;
}

store::Run StepsRun() {
  store::Run run = PassingRun();
  run.name = "bench_ddp_step";
  run.cases.clear();
  for (const auto& [cap, median_ns] : {std::pair("25", 20e6), std::pair("10", 16e6)}) {
    store::CaseRecord& record = run.cases.emplace_back(
        Measured(std::string("ddp_step/resnet50/cap:") + cap, {AllReduce(25557032)}, median_ns, 1));
    record.model = "resnet50";
    record.settings = {{"bucket_cap_mb", cap}, {"comm_hook", "none"}};
    record.summary.algorithm_gbps = record.summary.bus_gbps = kNan;
    record.summary.floor_ns = record.summary.percent_of_limit = kNan;
    for (const auto& [name, units, share] :
         {std::tuple("forward_ns", "ns", 0.25 * median_ns),
          std::tuple("exposed_communication_ns", "ns", 0.125 * median_ns),
          std::tuple("overlap", "", 0.75)}) {
      record.parts.push_back({name, units, "slowest", {}, share, 0.98 * share, 1.03 * share});
    }
  }
  run.effects = {{"bucket_cap_mb", "10", "25", 1, 0, 24, 1.25, 1.2, 1.3}};
  run.recommendation =
      "bucket_cap_mb=10: 1.25 times faster than the default 25 (95 %: 1.20 to 1.30)";
  run.summary_line = "2 cases measured on 2 ranks";
  return run;
}

store::Run LinksRun() {
  store::Run run = PassingRun();
  run.name = "bench_links";
  run.verdict = verdict::Verdict::kFail;
  run.exit_code = 1;
  run.summary_line = "slow_link node2 -> node3 and back: half round trip 10.1 ms, 50 us is usual";
  run.environment.clear();
  for (int rank = 0; rank < 4; ++rank) {
    run.environment.emplace_back("ranks/" + std::to_string(rank) + "/host",
                                 "node" + std::to_string(rank + 1));
  }
  const std::vector<collective::Operation> messages = {
      {collective::Collective::kSend, collective::DataType::kU8, collective::Reduction::kSum,
       collective::Blocking::kBlocking, 1 << 20, -1},
      {collective::Collective::kRecv, collective::DataType::kU8, collective::Reduction::kSum,
       collective::Blocking::kBlocking, 1 << 20, -1}};
  run.cases.clear();
  store::CaseRecord& record = run.cases.emplace_back(Measured("links/round:0", messages, 2.6e6, 1));
  record.ranks = 4;
  record.parts = {{"half_round_trip_ns", "ns", "max", {}, 60e3, 58e3, 62e3}};
  store::LinkMatrix links;
  links.bytes = 1 << 20;
  links.slow_factor = 1.5;
  links.usual_latency_ns = 50e3;
  links.usual_gbps = 0.8;
  for (int a = 0; a < 4; ++a) {
    for (int b = a + 1; b < 4; ++b) {
      const double latency_ns = 48e3 + 1e3 * (a + b);
      links.pairs.push_back({a, b, 12, latency_ns, 0.97 * latency_ns, 1.02 * latency_ns,
                             0.8 + 0.01 * a, 0.79 + 0.01 * b, kNan, kNan, kNan, "usual"});
    }
  }
  store::LinkPair& slow = links.pairs[3];  // 1 - 2
  slow.latency_ns = 10.2e6;
  slow.forward_gbps = slow.back_gbps = 0.004;
  slow.retest_latency_ns = 10.1e6;
  slow.retest_forward_gbps = slow.retest_back_gbps = 0.0041;
  slow.standing = "slow_link";
  links.pairs[5].standing = "not_measured";
  links.pairs[5].rounds = 0;
  for (double* figure :
       {&links.pairs[5].latency_ns, &links.pairs[5].latency_low_ns, &links.pairs[5].latency_high_ns,
        &links.pairs[5].forward_gbps, &links.pairs[5].back_gbps}) {
    *figure = kNan;
  }
  links.all_at_once_gbps = {1.1, 0.6, 0.7, 1.2};
  run.links = links;
  run.judgement.verdict = verdict::Verdict::kFail;
  run.judgement.findings = {
      {verdict::Cause::kSlowLink, {1, 2}, true, run.summary_line, "See the cables."}};
  return run;
}

store::Run WatchedRun() {
  store::Run run = PassingRun();
  run.name = "watch";
  run.command_line = "lockstep watch --report -- mpirun -np 2 ./solver";
  run.summary_line = "2 ranks, no finding";
  run.cases.clear();
  run.floors.clear();
  run.history.clear();
  store::Watched watched;
  watched.ranks = {{0, 4711, 0, 10e9, 101, 0, true}, {1, 4712, 1e6, 10e9, 101, 2, true}};
  const std::string half = "MPI_Comm_split at a_file_with_quite_a_long_name_for_a_solver.c:12";
  watched.places = {{0, "MPI_Allreduce", "solver.c:31", "world", 100, 10, 4e9, 1e9},
                    {1, "MPI_Allreduce", "solver.c:31", "world", 100, 90, 5e8, 2e8},
                    {0, "MPI_Recv", "solver.c:40", half, 1, 0, 1e6, 1e6},
                    {1, "MPI_Send", "solver.c:41", half, 1, 0, 0, 0}};
  watched.blamed = {{0, 1, 90, 4e9}, {1, 0, 10, 5e8}, {2, 1, 1, 1e6}};
  watched.calls = {{0, 1, -1, -1, 1e6, 2e6, 5e5, 1},
                   {2, 1, 1, 7, 3e6, 4e6, 1e6, 1},
                   {3, 1, 0, 7, 3.9e6, 4e6, 0, -1}};
  run.watched = watched;
  return run;
}

store::Run CorruptRun() {
  store::Run run = PassingRun();
  run.verdict = verdict::Verdict::kFail;
  run.exit_code = 1;
  run.summary_line = "";
  run.cases.resize(1);
  store::CaseRecord& record = run.cases[0];
  record.summary.wrong_elements = 2;
  record.wrong = {{1, 49, 0, 1, "3 (0x40400000)", "3.5 (0x40600000)"}};
  record.judgement.verdict = verdict::Verdict::kFail;
  record.judgement.outcomes[1].outcome = verdict::Outcome::kCorrupt;
  record.judgement.findings = {{verdict::Cause::kDataCorruption,
                                {1},
                                true,
                                "rank 1 received 2 wrong elements",
                                "Replace the machine."}};
  record.judgement.findings[0].headline = verdict::Headline("rank 1 received 2 wrong elements");
  return run;
}

store::Run InterruptedRun() {
  store::Run run = PassingRun();
  run.verdict = verdict::Verdict::kUnknown;
  run.exit_code = 3;
  run.complete = false;
  run.summary_line = "1 of 5 cases measured before the run was ended; run it again";
  for (std::size_t i = 1; i < run.cases.size(); ++i) {
    run.cases[i].judgement.verdict = verdict::Verdict::kUnknown;
    run.cases[i].summary.stopped_by = i == 1 ? "interrupted" : i == 2 ? "time_budget" : "not_run";
    if (i == 1) continue;
    store::Summary none;
    none.stopped_by = run.cases[i].summary.stopped_by;
    run.cases[i].summary = none;
  }
  // Little is known of it, so its interval reaches below zero.
  store::Summary& partly = run.cases[1].summary;
  partly.interval_low_ns = partly.rounds_low_ns = -0.5 * partly.median_ns;
  partly.interval_high_ns = partly.rounds_high_ns = 3 * partly.median_ns;
  run.judgement.verdict = verdict::Verdict::kUnknown;
  return run;
}

namespace {

constexpr int kHangingRanks = 8;
constexpr int kHangs = 6;
constexpr std::uint64_t kHangsIn = 678;

// Addresses and shares of a processor differ from rank to rank.
std::string HangingEvidence(int rank) {
  const std::string below =
      "ompi_request_default_wait@libmpi.so.40 < PMPI_Allreduce@libmpi.so.40 < "
      "lockstep::comm::mpi::BlockingCall@stress < lockstep::comm::RecordedCommunicator::Call@stress"
      " < main@stress; thread 2: epoll_wait@libc.so.6 < event_base_loop@libevent.so.7";
  if (rank == kHangs) {
    return "asleep in pause [do_sys_pause]; stack: pause@libc.so.6 < " + below;
  }
  return "running in sched_yield, " + std::to_string(97 - rank) +
         " % CPU; stack: sched_yield@libc.so.6 < 0x7f12ab" + std::to_string(rank) + "0@? < " +
         below;
}

verdict::Judgement HangingJudgement() {
  verdict::Judgement judgement{verdict::Verdict::kFail, {}, {}};
  for (int rank = 0; rank < kHangingRanks; ++rank) {
    judgement.outcomes.push_back(
        {rank, verdict::Outcome::kHung, 0, 0,
         "all_reduce 678 (sequence 678 of communicator 0) f32 x 2359296 sum, bucket 3 of iteration "
         "12",
         rank == kHangs ? 10.2 : 10.1, HangingEvidence(rank)});
  }
  verdict::Finding& finding = judgement.findings.emplace_back();
  finding.cause = verdict::Cause::kTransportStall;
  finding.culprits = {kHangs};
  finding.message =
      "all ranks entered all_reduce 678 (sequence 678 of communicator 0) f32 x 2359296 sum and 8 "
      "of 8 did not leave it for 10 s; rank 6 is asleep while the others try to go on (asleep in "
      "pause [do_sys_pause])";
  finding.remedy = "See in rank 6's stored stack what it sleeps in.";
  finding.headline = verdict::Headline(
      "rank 6 (host node2, pid 4711) hangs in all_reduce 678: asleep in pause(), silent 10 s; "
      "ranks 0-5 and 7 wait for it");
  return judgement;
}

store::RankHistory HangingHistory(int rank, int lifetime) {
  store::RankHistory history{rank, lifetime, 0, {}};
  journal::JournalEvent event;
  for (std::uint64_t sequence = kHangsIn - 3; sequence <= kHangsIn; ++sequence) {
    event.sequence = event.nth = static_cast<std::uint32_t>(sequence);
    event.count = 2359296;
    event.value = (std::int64_t{13} << 32) + (3 << 8) + 6;  // bucket 3 of iteration 12
    event.case_index = static_cast<std::uint32_t>(lifetime);
    for (const journal::EventKind kind : {journal::EventKind::kStart, journal::EventKind::kEnd}) {
      if (sequence == kHangsIn && kind == journal::EventKind::kEnd) continue;
      ++event.index;
      event.ticks = 1000 * event.index;
      event.kind = kind;
      history.events.push_back(event);
    }
  }
  return history;
}

}  // namespace

store::Run HangingRun() {
  store::Run run = PassingRun();
  run.name = "stress";
  run.verdict = verdict::Verdict::kFail;
  run.exit_code = 1;
  run.plan_text = R"({"cases": [{"text": ""}, {"text": ""}, {"text": ""}]})";
  run.cases.resize(3);
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    store::CaseRecord& record = run.cases[i];
    const bool hangs = i < 2;
    record.name = hangs ? "hang/asleep" + std::to_string(i) : "hang/none";
    record.ranks = kHangingRanks;
    record.settings = {{"scenario", record.name}, {"seed", "1"}};
    record.summary = store::Summary();
    record.summary.stopped_by = "over";
    store::Trial& trial = record.trial.emplace();
    trial.expected_outcomes = "finished,finished";
    trial.why = hangs ? "expected all ranks to finish; ranks 0-7 hung" : "all ranks finished";
    record.judgement = hangs ? HangingJudgement() : verdict::Judgement();
    if (!hangs) record.judgement.verdict = verdict::Verdict::kPass;
    for (int rank = 0; hangs && rank < kHangingRanks; ++rank) {
      run.history.push_back(HangingHistory(rank, static_cast<int>(i)));
    }
  }
  run.judgement = HangingJudgement();
  run.summary_line = run.judgement.findings.front().headline.text();
  return run;
}

}  // namespace lockstep::results::report
